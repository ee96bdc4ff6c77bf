import { connect, type Socket } from 'node:net';
import { eventually, GIVE_UP_MS } from '../eventually.js';

/** The number of each outcome: a status, or the reason for none. */
export type Tally = Readonly<Record<string, number>>;

/** Connections in use at a time: fewer than may wait for a server to accept them. */
const AT_A_TIME = 200;

/** Connections that a client keeps open and uses from time to time. */
export class KeptConnections {
  readonly #connections: readonly KeptConnection[];

  /** @param url - of a server on this machine */
  constructor(
    url: string,
    count: number,
    /** A whole request, as its bytes. */
    private readonly request: string,
  ) {
    const port = Number(new URL(url).port);
    this.#connections = Array.from({ length: count }, () => new KeptConnection(port));
  }

  /**
   * Sends the request on each of them. The first call opens them, and closed ones are not opened again.
   *
   * @returns the number of each status, and of each reason for no answer
   */
  async ask(atATime = AT_A_TIME): Promise<Tally> {
    const outcomes: string[] = [];
    const waiting = this.#connections.values();
    const askInTurn = async (): Promise<void> => {
      for (const connection of waiting) outcomes.push(await connection.ask(this.request));
    };
    await Promise.all(Array.from({ length: atATime }, askInTurn));
    return tallyOf(outcomes);
  }

  /** The state of each: `open`, `ended` in order by the server, `closed`, or the code of an error. */
  get states(): Tally {
    return tallyOf(this.#connections.map(({ state }) => state));
  }

  /** Waits until none is open. Returns their states. */
  async over(): Promise<Tally> {
    await eventually('all connections are closed', () => this.states.open === undefined);
    return this.states;
  }

  /** Closes the open ones, or a number of them. */
  close(count = Infinity): void {
    const open = this.#connections.filter(({ state }) => state === 'open');
    for (const connection of open.slice(0, count)) connection.close();
  }
}

/** A request as its bytes. */
export function requestFor(path: string, key: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
}

class KeptConnection {
  state = 'not made';
  readonly #reader = new AnswerReader();
  #socket: Socket | undefined;
  #answer: (outcome: string) => void = () => undefined;

  constructor(private readonly port: number) {}

  /** @returns the status, or why there is none */
  ask(request: string): Promise<string> {
    this.#socket ??= this.#connect();
    const socket = this.#socket;
    if (this.state !== 'open') return Promise.resolve(this.state);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve('no answer'), GIVE_UP_MS);
      this.#answer = (outcome) => {
        clearTimeout(timer);
        resolve(outcome);
      };
      socket.write(request);
    });
  }

  close(): void {
    this.#end('closed');
    this.#socket?.destroy();
  }

  #connect(): Socket {
    this.state = 'open';
    const socket = connect(this.port, '127.0.0.1');
    socket.on('data', (bytes) => {
      const status = this.#reader.read(bytes);
      if (status !== undefined) this.#answer(String(status));
    });
    socket.on('end', () => this.#end('ended'));
    socket.on('error', (error: NodeJS.ErrnoException) => this.#end(error.code ?? error.message));
    return socket;
  }

  /** Only the first reason counts. */
  #end(state: string): void {
    if (this.state === 'open') this.state = state;
    this.#answer(this.state);
  }
}

function tallyOf(outcomes: readonly string[]): Tally {
  const tally: Record<string, number> = {};
  for (const outcome of outcomes) tally[outcome] = (tally[outcome] ?? 0) + 1;
  return tally;
}

const HEAD_END = '\r\n\r\n';
const LENGTH = /\r\ncontent-length: (\d+)/i;
const STATUS_AT = 'HTTP/1.1 '.length;

/** Reads as much of the answers on one connection as it takes to know where each one ends. They give their length. */
class AnswerReader {
  #head = '';
  #status = 0;
  /** Bytes of the body still to come; undefined before the head is complete. */
  #left: number | undefined;

  /** @returns the status when these bytes complete an answer */
  read(bytes: Buffer): number | undefined {
    if (this.#left === undefined) {
      // One character a byte.
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return undefined;
      const head = this.#head.slice(0, end);
      this.#status = Number(head.slice(STATUS_AT, STATUS_AT + 3));
      this.#left = Number(LENGTH.exec(head)?.[1] ?? 0) - (this.#head.length - end - HEAD_END.length);
    } else {
      this.#left -= bytes.length;
    }
    if (this.#left > 0) return undefined;
    this.#head = '';
    this.#left = undefined;
    return this.#status;
  }
}
