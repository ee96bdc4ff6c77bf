import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** What a server sends: a text, a whole number, nothing, an error, a list of such, or bytes as they are. */
export type ScriptedReply = string | number | null | Error | Buffer | readonly ScriptedReply[];

/**
 * Replies to a command, whose name is in small letters.
 *
 * @returns undefined to reply as an empty Redis does
 */
export type Script = (name: string, ...args: string[]) => ScriptedReply | Promise<ScriptedReply> | undefined;

/** A server that speaks the protocol of Redis, with the replies of a script. */
export class ScriptedRedis {
  /** The commands that it got, without the first ones of each connection. */
  readonly commands: string[] = [];
  /** How many connections it has accepted. */
  connections = 0;
  readonly #sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    public script: Script,
  ) {
    server.on('connection', (socket) => this.#serve(socket));
  }

  /** @param port - a free one by default */
  static async start(script: Script, port = 0): Promise<ScriptedRedis> {
    const server = createServer();
    const scripted = new ScriptedRedis(server, script);
    await once(server.listen(port, '127.0.0.1'), 'listening');
    return scripted;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.disconnect();
    await closed;
  }

  /** Closes all connections. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket)).on('error', () => undefined);
    let unread = '';
    let sent = Promise.resolve();
    socket.setEncoding('latin1').on('data', (text: string) => {
      unread += text;
      for (let command = readCommand(unread); command !== undefined; command = readCommand(unread)) {
        unread = unread.slice(command.length);
        const [name = '', ...args] = command.words;
        const reply = this.#replyTo(name.toLowerCase(), args);
        sent = sent.then(async () => void socket.write(encode(await reply)));
      }
    });
  }

  #replyTo(name: string, args: string[]): ScriptedReply | Promise<ScriptedReply> {
    if (name === 'hello') return new Error('NOPROTO unsupported protocol version');
    if (name === 'client' || name === 'ping') return 'OK';
    this.commands.push([name, ...args].join(' '));
    const reply = this.script(name, ...args);
    if (reply !== undefined) return reply;
    return name === 'subscribe' ? [name, args[0] ?? '', 1] : 'OK';
  }
}

/** @returns the first command, a list of texts, and the length of it; undefined if it is not complete */
function readCommand(text: string): { readonly words: string[]; readonly length: number } | undefined {
  const [start = '', count] = /^\*(\d+)\r\n/.exec(text) ?? [];
  if (count === undefined) return undefined;
  const words: string[] = [];
  let length = start.length;
  while (words.length < Number(count)) {
    const [head = '', size] = /^\$(\d+)\r\n/.exec(text.slice(length, length + 20)) ?? [];
    const end = length + head.length + Number(size);
    if (size === undefined || end + 2 > text.length) return undefined;
    words.push(text.slice(length + head.length, end));
    length = end + 2;
  }
  return { words, length };
}

function encode(reply: ScriptedReply): string {
  if (reply === null) return '*-1\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`;
  if (Buffer.isBuffer(reply)) return reply.toString();
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  return `*${reply.length}\r\n${reply.map(encode).join('')}`;
}
