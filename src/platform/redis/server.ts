import type { Redis } from 'ioredis';
import { shareWhilePending } from '../async/share-while-pending.js';
import { withTimeout } from '../async/with-timeout.js';

/** The connection to one server of Redis. Once it has failed, it is lost until the server has passed a trial. */
export class RedisServer {
  state: 'connecting' | 'lost' | 'up' = 'connecting';
  /** The first error of the current connection, or of the attempts since the last one. */
  reason: unknown;

  /**
   * @param tryOut - fails for a server that cannot be used
   * @param timeoutMs - bound on a trial, in milliseconds
   * @param onChange - called with the reason when the server is lost, and without one when it is up
   */
  constructor(
    readonly client: Redis,
    private readonly tryOut: () => Promise<unknown>,
    private readonly timeoutMs: number,
    private readonly onChange: (reason?: unknown) => void,
  ) {
    // Without a listener, ioredis would write errors to the console.
    for (const event of ['error', 'sentinelError']) client.on(event, (error: unknown) => (this.reason ??= error));
    client.on('connect', () => (this.reason = undefined));
    client.on('ready', () => void this.tend());
    for (const event of ['close', 'end']) {
      client.on(event, () => this.lose(this.reason ?? new Error('the connection was closed')));
    }
    // The client of a node in a cluster is there already, and connects when it is first used.
    if (client.status === 'wait') client.connect().catch(() => undefined);
    // Not at once: the code that creates this server does not have it until the constructor returns.
    else if (client.status === 'ready') queueMicrotask(() => void this.tend());
  }

  lose(reason: unknown): void {
    this.#change('lost', reason);
  }

  /** Keeps the connection in use, or tries the server if it is not up. */
  readonly tend = shareWhilePending(async () => {
    if (!this.#isConnected()) return;
    if (this.state === 'up') {
      // Keeps Redis, and proxies before it, from closing a connection that idles. Any reply will do.
      this.client.ping().catch(() => undefined);
      return;
    }
    if (this.reason !== undefined) {
      // The connection could not be set up, such as for want of that database. ioredis would use database 0.
      this.lose(this.reason);
      this.client.disconnect(true);
      return;
    }
    try {
      await withTimeout(this.tryOut(), this.timeoutMs);
      if (this.#isConnected()) this.#change('up');
    } catch (error) {
      this.lose(error);
    }
  });

  #isConnected(): boolean {
    return this.client.status === 'ready';
  }

  #change(state: 'lost' | 'up', reason?: unknown): void {
    if (state === this.state) return;
    this.state = state;
    this.onChange(reason);
  }
}
