import { Agent, get } from 'node:http';
import { eventually } from '../eventually.js';
import { startServer, type RunningProgram, type ServerProcess } from '../program.js';
import { isAlive } from '../programs/server-processes.js';

/** One line of a server's log; what tests look at. */
export interface Line {
  readonly msg: string;
  readonly worker?: number;
  readonly pid?: number;
  readonly request_id?: string;
  readonly aborted?: boolean;
  readonly code?: number | null;
  readonly signal?: string | null;
  readonly reason?: string;
  readonly restart_in_ms?: number;
}

/** A server's log so far. @throws when the lines of several processes are mixed up */
export function logOf({ output }: RunningProgram): Line[] {
  return output.stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

/** The lines with this message. */
export function linesOf(server: RunningProgram, message: string): Line[] {
  return logOf(server).filter(({ msg }) => msg === message);
}

/** The process numbers of the workers that listen now, according to the log. */
export function workersOf(server: RunningProgram): number[] {
  const gone = linesOf(server, 'worker ended').map(({ pid }) => pid);
  return linesOf(server, 'worker listening').flatMap(({ pid }) => (pid === undefined || gone.includes(pid) ? [] : pid));
}

/** Starts a server, and waits until all of its workers listen. */
export async function startWorkers(
  environment: Readonly<Record<string, string>>,
  count: number,
  flags: readonly string[] = [],
  options: Parameters<typeof startServer>[2] = {},
): Promise<ServerProcess> {
  const server = await startServer({ ...environment, WORKERS: String(count) }, flags, options);
  if (count > 1) await eventually('all workers listen', () => workersOf(server).length === count);
  return server;
}

/** Waits until processes are gone. */
export function areGone(pids: readonly number[]): Promise<unknown> {
  return eventually('all processes are gone', () => !pids.some(isAlive));
}

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
