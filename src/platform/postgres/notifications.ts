import { setTimeout as delay } from 'node:timers/promises';
import { backoff } from '../async/backoff.js';
import type { Connection } from './connection.js';

/** Where changes are announced. */
export interface Announcements {
  /**
   * A table of our own. In its column `txid` are the transactions that have changed something lately. A row stays for
   * five minutes after another transaction has found it committed.
   */
  readonly table: string;
  /** The column with the id of what was changed; 0 for everything. */
  readonly subject: string;
  /** A notification channel. A notification makes listeners read the table at once. */
  readonly channel: string;
}

/** Reports changes, and whether they are announced. */
export interface AnnouncementHandlers {
  /** From now on no change is missed. */
  readonly onListening: () => void;
  /** @param subjects - what was changed; 0 for everything */
  readonly onChange: (subjects: readonly number[]) => void;
  /** Changes may be missed until it listens again. Called after each failed attempt, with the reason. */
  readonly onLost: (error: unknown) => void;
}

/**
 * How often the table is read, in milliseconds. PostgreSQL takes no notifications while their queue is full, and a
 * connection that died silently would never bring any.
 */
const POLL_INTERVAL_MS = 1_000;

/** After so long without a look, in milliseconds, rows may have gone unseen, and everything counts as changed. */
const LONGEST_GAP_MS = 60_000;

/** Above this number of changed subjects, everything counts as changed. */
const MOST_SUBJECTS = 1_000;

/** The waits between attempts to listen. */
const RETRY = { firstMs: 100, longestMs: 5_000 } as const;

interface Poll {
  readonly snapshot: string;
  /** By the database's clock, in milliseconds since 1970. */
  readonly read_at: number;
  readonly changed: readonly number[];
  readonly queue_usage: number;
}

/**
 * Finds the rows that an earlier snapshot lacks, also those of a transaction that was open for long. In a restored dump
 * there may be transactions that are yet to come.
 */
const poll = ({ table, subject }: Announcements): string => `
  select pg_current_snapshot()::text as snapshot, pg_notification_queue_usage() as queue_usage,
         extract(epoch from clock_timestamp())::float8 * 1000 as read_at,
         array(select distinct ${subject} from ${table}
                where txid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(txid, $1)
                  and txid < pg_snapshot_xmax(pg_current_snapshot())
                limit ${MOST_SUBJECTS + 1}) as changed`;

/** Listens for announcements on a connection of its own. It connects again after a loss. */
export class AnnouncementListener {
  /** The part of PostgreSQL's queue of notifications that is in use, from 0 to 1, when it was read last. */
  queueUsage = 0;
  readonly #stopping = new AbortController();
  readonly #isStopping = (): boolean => this.#stopping.signal.aborted;
  #running: Promise<void> = Promise.resolve();

  /** @param connect - opens a connection on which every query has a bound */
  constructor(
    private readonly connect: () => Promise<Connection>,
    private readonly announcements: Announcements,
    private readonly handlers: AnnouncementHandlers,
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
    let failures = 0;
    while (!this.#isStopping()) {
      try {
        await this.#session(() => {
          failures = 0;
          this.handlers.onListening();
          onFirstOutcome();
        });
      } catch (error) {
        if (this.#isStopping()) return;
        failures += 1;
        this.handlers.onLost(error);
        onFirstOutcome();
        await delay(backoff(failures, RETRY), undefined, { signal }).catch(() => undefined);
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
    const { channel } = this.announcements;
    const client = await this.connect();
    let timer: NodeJS.Timeout | undefined;
    let onStop = (): void => undefined;
    let seen: Poll | undefined;
    let [isPolling, isDue] = [false, false];

    /** Reads the table, once more for a notification that arrives meanwhile. */
    const readTable = async (): Promise<void> => {
      isDue = true;
      if (isPolling) return;
      isPolling = true;
      while (isDue) {
        isDue = false;
        const { rows } = await client.query<Poll>(poll(this.announcements), [seen?.snapshot]);
        const [now] = rows as [Poll];
        this.queueUsage = now.queue_usage;
        if (seen === undefined) onListening();
        else if (now.read_at - seen.read_at > LONGEST_GAP_MS || now.changed.length > MOST_SUBJECTS) {
          this.handlers.onChange([0]);
        } else if (now.changed.length > 0) this.handlers.onChange(now.changed);
        seen = now;
      }
      isPolling = false;
    };
    try {
      // One promise serves the whole connection: a race at each poll would leave something behind each time.
      await new Promise<void>((resolve, reject) => {
        onStop = resolve;
        signal.addEventListener('abort', onStop);
        client.on('error', reject);
        client.on('end', () => reject(new Error('the connection was closed')));
        client.on('notification', () => void readTable().catch(reject));
        client.query(`listen ${client.escapeIdentifier(channel)}`).then(() => {
          if (this.#isStopping()) return;
          timer = setInterval(() => void readTable().catch(reject), POLL_INTERVAL_MS);
          readTable().catch(reject);
        }, reject);
        if (this.#isStopping()) resolve();
      });
    } finally {
      signal.removeEventListener('abort', onStop);
      clearInterval(timer);
      client.end().catch(() => undefined);
      // A frozen server would never close its side.
      client.destroy();
    }
  }
}
