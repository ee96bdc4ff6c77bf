import type { Redis } from 'ioredis';
import { shareWhilePending } from '../async/share-while-pending.js';
import { withTimeout } from '../async/with-timeout.js';
import { requireForm } from './reply.js';

/** Not every user may run scripts, and a full Redis or a replica answers reads but refuses writes. */
const PROBE = `return redis.call('set', KEYS[1], '', 'px', 1000)`;

let sessions = 0;

/** @returns a number that is higher than that of any session before */
export function newSession(): number {
  sessions += 1;
  return sessions;
}

/** The connection to one server of Redis. Once it has failed, it is lost until the server has passed a trial. */
export class RedisServer {
  state: 'connecting' | 'lost' | 'up' = 'connecting';
  /** The first error since it was up. */
  reason: unknown;
  /** Ends when the server is lost. */
  session = newSession();

  /**
   * @param name - for metrics and the log
   * @param probeKeys - chooses the keys of a trial
   * @param timeoutMs - bound on a trial, in milliseconds
   * @param onChange - called when the server is lost, and when it is up
   */
  constructor(
    readonly name: string,
    readonly client: Redis,
    private readonly probeKeys: () => readonly string[],
    private readonly timeoutMs: number,
    private readonly onChange: () => void,
  ) {
    // Without a listener, ioredis would write errors to the console.
    for (const event of ['error', 'sentinelError']) {
      client.on(event, (error: unknown) => {
        this.reason ??= error;
        // Where there is no database of that number, ioredis would use database 0.
        if (client.status === 'connect') client.disconnect(true);
      });
    }
    for (const event of ['close', 'end']) client.on(event, () => this.lose(new Error('the connection was closed')));
    client.on('ready', () => void this.tend());
  }

  lose(reason: unknown): void {
    if (this.state === 'lost') return;
    this.session = newSession();
    this.reason ??= reason;
    this.state = 'lost';
    this.onChange();
  }

  /** Keeps the connection in use, or tries the server if it is not up. */
  readonly tend = shareWhilePending(async () => {
    // ioredis gives up when no Sentinel names a master, or when a failover is announced while it looks for one.
    if (this.client.status === 'end') this.client.connect().catch(() => undefined);
    if (this.client.status !== 'ready') return;
    if (this.state === 'up') {
      // Keeps Redis, and proxies before it, from closing a connection that idles. Any reply will do.
      this.client.ping().catch(() => undefined);
      return;
    }
    try {
      const keys = this.probeKeys();
      requireForm((await withTimeout(this.client.eval(PROBE, keys.length, ...keys), this.timeoutMs)) === 'OK');
      this.reason = undefined;
      this.state = 'up';
      this.onChange();
    } catch (error) {
      this.lose(error);
    }
  });
}
