import { Agent, get } from 'node:http';

/** A request, and what became of it. */
export interface Exchange {
  readonly id: string;
  /** Number of the connection, which is opened again only when it broke. */
  readonly connection: number;
  /** Undefined when there was no whole answer. */
  readonly status: number | undefined;
  /** What went wrong then. */
  readonly error?: string;
}

/** Requests that never cease, on many connections at once, one after the other on each. */
export interface Load {
  readonly exchanges: Exchange[];
  stop(): Promise<void>;
}

/** An answer that takes longer counts as never given, in milliseconds. */
const PATIENCE_MS = 15_000;

let loads = 0;

/** Begins to send requests for `/me`. */
export function startLoad(url: string, key: string, connections: number): Load {
  const name = `load${++loads}`;
  const exchanges: Exchange[] = [];
  let isOver = false;
  const loops = Array.from({ length: connections }, async (_, connection) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; !isOver; i += 1) {
      const id = `${name}-${connection}-${i}`;
      const outcome = await exchange(url, { authorization: `Bearer ${key}`, 'x-request-id': id }, agent);
      exchanges.push({ id, connection, ...outcome });
      // Nobody listens any more.
      if (outcome.error === 'ECONNREFUSED') break;
    }
    agent.destroy();
  });
  return {
    exchanges,
    async stop() {
      isOver = true;
      await Promise.all(loops);
    },
  };
}

function exchange(
  url: string,
  headers: Record<string, string>,
  agent: Agent,
): Promise<Pick<Exchange, 'status' | 'error'>> {
  return new Promise((resolve) => {
    const fail = (error: NodeJS.ErrnoException): void =>
      resolve({ status: undefined, error: error.code ?? error.message });
    const request = get(`${url}/api/v1/me`, { agent, headers, timeout: PATIENCE_MS }, (response) => {
      response.resume().once('error', fail);
      response.once('end', () => resolve({ status: response.statusCode }));
    });
    request.once('timeout', () => request.destroy(new Error('no answer')));
    request.once('error', fail);
  });
}
