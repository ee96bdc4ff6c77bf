import { DatabaseUnavailable } from './errors.js';

/**
 * Reads whether a server accepts writes, and which timeline of which database it has. A standby and a server set to
 * read-only do not accept any. A primary reports its current timeline, a standby that of the last WAL it has written.
 */
export const READ_STATE = `select pg_is_in_recovery() as is_standby,
       current_setting('transaction_read_only')::boolean as is_read_only,
       (select system_identifier::text from pg_control_system()) as system,
       case when pg_is_in_recovery() then (select greatest(timeline_id, min_recovery_end_timeline) from pg_control_checkpoint(), pg_control_recovery())
            else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline`;

/** The answer to {@link READ_STATE}. */
export interface ServerState {
  readonly is_standby: boolean;
  /** Also true of a standby. */
  readonly is_read_only: boolean;
  readonly system: string;
  readonly timeline: number;
}

/** The server that should be the primary is read-only. A standby may be out of date. */
export class DatabaseNotWritable extends DatabaseUnavailable {
  override readonly name = 'DatabaseNotWritable';

  constructor(readonly isStandby: boolean) {
    super(
      isStandby
        ? 'the database is a standby, which may not know the latest changes'
        : 'the database takes no writes: default_transaction_read_only is on',
    );
  }
}

/** One history of one database. Each promotion of a standby begins the next timeline of the same system. */
export interface Timeline {
  /** PostgreSQL's system identifier, which all copies of a database share. */
  readonly system: string;
  readonly number: number;
}

/** This server was the primary. Another one has been promoted since, so anything written here is lost. */
export class DatabaseSuperseded extends DatabaseUnavailable {
  override readonly name = 'DatabaseSuperseded';

  constructor(readonly newest: number) {
    super(`the database is no longer the primary: another server was promoted and began timeline ${newest}`);
  }
}

/**
 * Keeps a process off a primary that was replaced, even while that primary runs and its connections stay open. It
 * remembers the newest timeline that the process has connected to, or that others have published, and refuses
 * connections to an older one. Timelines of different systems cannot be compared: the latest connection counts.
 */
export class Fence {
  #newest: Timeline | undefined;
  readonly #listeners: (() => void)[] = [];
  /** When a newer timeline was found, after the first one, in milliseconds since 1970. */
  promotedAt: number | undefined;

  /** Undefined until the first connection. A new object for each new timeline. */
  get newest(): Timeline | undefined {
    return this.#newest;
  }

  /** @param listener - called when a newer timeline is found: anything read on open connections may be out of date */
  onRaised(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Accepts a connection to the primary.
   *
   * @throws DatabaseNotWritable, DatabaseSuperseded
   */
  accept(state: ServerState): void {
    if (state.is_read_only) throw new DatabaseNotWritable(state.is_standby);
    const timeline = { system: state.system, number: state.timeline };
    const newest = this.#newest;
    if (newest?.system !== timeline.system) this.#raise(timeline);
    else if (newest.number > timeline.number) throw new DatabaseSuperseded(newest.number);
    else this.observe(timeline);
  }

  /**
   * Accepts a connection to a replica. A standby reports a new timeline minutes late, after its next restart
   * point.
   *
   * @throws DatabaseUnavailable if it is not a standby of the primary
   */
  acceptReplica({ is_standby: isStandby, system, timeline }: ServerState): void {
    const newest = this.#newest;
    if (isStandby && newest?.system === system && newest.number === timeline) return;
    const reason = !isStandby
      ? 'it is no standby'
      : newest?.system !== system
        ? 'it is a copy of another database'
        : `it is on timeline ${timeline}, and the primary on ${newest.number}`;
    throw new DatabaseUnavailable(`the replica does not follow the primary: ${reason}`);
  }

  /** Records a timeline that another process has published. */
  observe({ system, number }: Timeline): void {
    const newest = this.#newest;
    if (newest?.system === system && newest.number < number) this.#raise({ system, number });
  }

  /**
   * Confirms that nothing since a moment was read from or written to a timeline that is known to be older.
   *
   * @param since - {@link newest} at that moment
   * @throws DatabaseSuperseded
   */
  confirm(since: Timeline | undefined): void {
    if (since !== this.#newest) throw new DatabaseSuperseded(this.#newest?.number ?? 0);
  }

  #raise(timeline: Timeline): void {
    if (this.#newest !== undefined) this.promotedAt = Date.now();
    this.#newest = timeline;
    for (const listener of this.#listeners) listener();
  }
}
