import { setTimeout as delay } from 'node:timers/promises';
import type { Connection } from './connections/connection.js';

/** Reports the state of a channel. */
export interface NotificationHandlers {
  /** From now on no notification is missed. */
  readonly onListening: () => void;
  readonly onNotification: () => void;
  /** Notifications may be missed until it listens again. Called once each time, with the reason. */
  readonly onLost: (error: unknown) => void;
}

/** The two numbers of an advisory lock of PostgreSQL. */
export type AdvisoryLock = readonly [number, number];

/** How often the connection is checked, in milliseconds: a connection that died silently would never bring anything. */
const HEARTBEAT_MS = 2_000;

/** The shortest and the longest wait before the next attempt, in milliseconds. It doubles each time. */
const RETRY_MS = { first: 100, most: 5_000 } as const;

/** Listens to a notification channel of PostgreSQL on a connection of its own. It connects again after a loss. */
export class NotificationListener {
  readonly #stopping = new AbortController();
  readonly #isStopping = (): boolean => this.#stopping.signal.aborted;
  #running: Promise<void> = Promise.resolve();

  /**
   * @param connect - opens a connection on which every query has a bound
   * @param presence - a lock that it shares with others while it listens, so that `pg_locks` shows that somebody
   *   listens
   */
  constructor(
    private readonly connect: () => Promise<Connection>,
    private readonly channel: string,
    private readonly presence: AdvisoryLock,
    private readonly handlers: NotificationHandlers,
  ) {}

  /**
   * Begins to listen.
   *
   * @returns when it listens, or when the first attempt has failed
   */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#running = this.#run(resolve);
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(onFirstOutcome: () => void): Promise<void> {
    const { signal } = this.#stopping;
    let retryMs: number = RETRY_MS.first;
    let isKnownLost = false;
    while (!this.#isStopping()) {
      try {
        await this.#session(() => {
          retryMs = RETRY_MS.first;
          isKnownLost = false;
          this.handlers.onListening();
          onFirstOutcome();
        });
      } catch (error) {
        if (this.#isStopping()) return;
        if (!isKnownLost) this.handlers.onLost(error);
        isKnownLost = true;
        onFirstOutcome();
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
        retryMs = Math.min(2 * retryMs, RETRY_MS.most);
      }
    }
  }

  /**
   * Listens until it is stopped.
   *
   * @throws when the connection is lost
   */
  async #session(onListening: () => void): Promise<void> {
    const { signal } = this.#stopping;
    const client = await this.connect();
    let heartbeat: NodeJS.Timeout | undefined;
    let onStop = (): void => undefined;
    try {
      // One promise serves the whole connection: a race at each heartbeat would leave something behind each time.
      await new Promise<void>((resolve, reject) => {
        onStop = resolve;
        signal.addEventListener('abort', onStop);
        client.on('error', reject);
        client.on('end', () => reject(new Error('the connection was closed')));
        client.on('notification', () => this.handlers.onNotification());
        // Only a session that holds the lock exclusively could prevent it; `pg_locks` then shows that session instead.
        const takePresenceLock = `select pg_catalog.pg_try_advisory_lock_shared(${this.presence.join(', ')})`;
        client.query(`${takePresenceLock}; listen ${client.escapeIdentifier(this.channel)}`).then(() => {
          if (this.#isStopping()) return;
          onListening();
          heartbeat = setInterval(() => void client.query('select 1').catch(reject), HEARTBEAT_MS);
        }, reject);
        if (this.#isStopping()) resolve();
      });
    } finally {
      signal.removeEventListener('abort', onStop);
      clearInterval(heartbeat);
      client.end().catch(() => undefined);
      // A frozen server would never close its side.
      client.destroy();
    }
  }
}
