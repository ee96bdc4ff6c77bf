import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { backoff } from '../async/backoff.js';
import type { SteadyClock } from '../time/steady-clock.js';
import type { Connection } from './connection.js';

/** The tables in which changes are announced. */
export interface Announcements {
  /**
   * Its column `txid` lists the recent transactions that changed something. A row stays for at least five minutes after
   * its commit.
   */
  readonly table: string;
  /** The column with the id of the changed subject; 0 for all subjects. */
  readonly subject: string;
  /**
   * A table of one row. Its column `read_until` is the time until which processes may read the announcements. A change
   * need not wait for readers after it.
   */
  readonly readers: string;
}

/** Reports looks at the announcements. */
export interface AnnouncementHandlers {
  /**
   * Called after each look.
   *
   * @param changed - the subjects changed since the previous look; 0 for all of them
   * @param beganAt - when the look began: it has found every change that was committed by then
   */
  readonly onLook: (changed: readonly number[], beganAt: number) => void;
  /** Called after each attempt that failed, with the reason. */
  readonly onFailure: (error: unknown) => void;
}

/** From the beginning of a look to that of the next, in milliseconds, unless a look takes longer. */
const INTERVAL_MS = 1_000;

/** Bound on a look, in milliseconds. A look that takes longer has failed. */
const BOUND_MS = 2_000;

/** After this long without a look, in milliseconds, rows may have gone unseen, so everything counts as changed. */
const LONGEST_GAP_MS = 60_000;

/** Above this number of changed subjects, everything counts as changed. */
const MOST_SUBJECTS = 1_000;

/** The waits after failures. */
const RETRY = { firstMs: 100, longestMs: 2_000 } as const;

interface Look {
  readonly snapshot: string;
  /** By the database's clock, in milliseconds since 1970. */
  readonly read_at: number;
  readonly changed: readonly number[];
  /** Whether the row of the readers covers the next hours. */
  readonly is_registered: boolean;
}

/**
 * Finds the rows that an earlier snapshot lacks, including those of a transaction that was open for a long time. A
 * restored dump may contain transactions with ids that are yet to come.
 */
const look = ({ table, subject, readers }: Announcements): string => `
  select pg_current_snapshot()::text as snapshot, extract(epoch from clock_timestamp())::float8 * 1000 as read_at,
         exists (select from ${readers} where read_until > clock_timestamp() + interval '12 hours') as is_registered,
         array(select distinct ${subject} from ${table}
                where txid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(txid, $1)
                  and txid < pg_snapshot_xmax(pg_current_snapshot())
                limit ${MOST_SUBJECTS + 1}) as changed`;

const register = ({ readers }: Announcements): string => `
  insert into ${readers} (read_until) values (clock_timestamp() + interval '24 hours')
  on conflict (singleton) do update set read_until = excluded.read_until`;

/** Whether a process may read the announcements. In doubt one may. */
export async function mayBeRead(db: Knex, { readers }: Announcements): Promise<boolean> {
  try {
    const reader = await db(readers).whereRaw('read_until > clock_timestamp()').first<object | undefined>('singleton');
    return reader !== undefined;
  } catch {
    return true;
  }
}

/** Looks at announcements every second, on a separate connection. It reconnects after a failure. */
export class AnnouncementReader {
  readonly #stopping = new AbortController();
  readonly #isStopping = (): boolean => this.#stopping.signal.aborted;
  #running: Promise<void> = Promise.resolve();
  #connection: Connection | undefined;
  /** The look before, on the same connection. */
  #last: Look | undefined;

  /**
   * @param connect - opens a connection with a bound on connecting and on every statement
   * @param clock - the clock of `beganAt`
   */
  constructor(
    private readonly connect: (boundMs: number) => Promise<Connection>,
    private readonly announcements: Announcements,
    private readonly clock: SteadyClock,
    private readonly handlers: AnnouncementHandlers,
  ) {}

  /** Begins to look. @returns when the first look is done, or has failed */
  start(): Promise<void> {
    return new Promise((resolve) => {
      this.#running = this.#run(resolve);
    });
  }

  /** Looks on a new connection from here on, since the open one may lead to a database that was replaced. */
  reconnect(): void {
    // A frozen server would never close its side.
    this.#connection?.destroy();
    this.#connection = this.#last = undefined;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.reconnect();
    await this.#running;
    this.reconnect();
  }

  async #run(onFirstOutcome: () => void): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    while (!this.#isStopping()) {
      const beganAt = this.clock.now();
      try {
        await this.#look(beganAt);
        failures = 0;
      } catch (error) {
        this.reconnect();
        failures += 1;
        if (!this.#isStopping()) this.handlers.onFailure(error);
      }
      onFirstOutcome();
      const left = Math.max(0, beganAt + INTERVAL_MS - this.clock.now());
      await delay(failures === 0 ? left : backoff(failures, RETRY), undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(beganAt: number): Promise<void> {
    const connection = (this.#connection ??= await this.connect(BOUND_MS));
    const last = this.#last;
    const { rows } = await connection.query<Look>(look(this.announcements), [last?.snapshot]);
    const [now] = rows as [Look];
    if (!now.is_registered) await connection.query(register(this.announcements));
    // Another connection may lead to another server, whose snapshots mean nothing here.
    if (connection !== this.#connection) throw new Error('the connection was replaced during a look');
    const isGap = last === undefined || now.read_at - last.read_at > LONGEST_GAP_MS;
    this.#last = now;
    this.handlers.onLook(isGap || now.changed.length > MOST_SUBJECTS ? [0] : now.changed, beganAt);
  }
}
