import pg from 'pg';
import { OperatorError } from '../../errors.js';
import type { ChangesPage } from '../client.js';
import type { StoreOptions } from './options.js';
import { Semaphore } from '../../platform/async/semaphore.js';
import type { Connection } from '../../platform/postgres/connection.js';
import { CONTENT, contentOf, ENTRY, type Entry } from './tables.js';
import { bounded, connect, openTables } from './session.js';

/** Which service a mirror is of, and how far it is. Positions are in seconds. */
export interface SavedState {
  readonly baseUrl: string;
  /** Where it follows the feed from. */
  readonly position: number;
  /** The identity of the feed that the positions are of; undefined while unknown. */
  readonly feedId: string | undefined;
  /** The furthest position, which is later than `position` after a repair. */
  readonly reached: number;
  /** The furthest position after which the feed had nothing more: the mirror has whatever was committed by then. */
  readonly caughtUp: number;
  /** The position that it was loaded at: from there, it has followed the feed. */
  readonly copyPosition: number;
}

/** Another session has changed the position, as a repair does. */
export class PositionMoved extends OperatorError {}

/**
 * The tables of a mirror, in one session of its database. Rows and position change together, in one transaction. When
 * the signal is aborted, the session is closed at once, which undoes everything uncommitted.
 */
export class MirrorStore {
  /** As SQL. */
  readonly schema: string;
  readonly #turns = new Semaphore(1);

  private constructor(
    private readonly session: Connection,
    name: string,
    private readonly signal: AbortSignal,
  ) {
    this.schema = pg.escapeIdentifier(name);
    signal.addEventListener('abort', this.close, { once: true });
  }

  /**
   * Opens the tables, and creates them where they are missing.
   *
   * @param isMirror - takes the lock that one mirror at a time has; the session keeps it
   * @throws MirrorLocked, OperatorError, DatabaseUnavailable, the database's error, or the signal's reason
   */
  static async open(
    { databaseUrl, schema }: StoreOptions,
    isMirror: boolean,
    signal: AbortSignal,
  ): Promise<MirrorStore> {
    const session = await connect(databaseUrl, isMirror ? 'catalog mirror' : 'catalog mirror verify');
    const store = new MirrorStore(session, schema, signal);
    try {
      signal.throwIfAborted();
      await bounded(session, openTables(session, schema, isMirror));
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  /**
   * Sends a query once those before it have their answers: the driver takes one at a time, and the parts of a load query
   * independently.
   *
   * @throws DatabaseUnavailable, or the database's error
   */
  async query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<Row>> {
    await this.#turns.acquire();
    try {
      return await this.session.query<Row>(text, values);
    } finally {
      this.#turns.release();
    }
  }

  /** @returns undefined before the first copy is complete @throws DatabaseUnavailable, or the database's error */
  async readState(): Promise<SavedState | undefined> {
    const { rows } = await bounded(
      this.session,
      this.query<Omit<SavedState, 'feedId'> & { feedId: string | null }>(
        `select base_url as "baseUrl", position::float8, reached::float8, caught_up::float8 as "caughtUp",
                copy_position::float8 as "copyPosition", feed_id as "feedId"
           from ${this.schema}.state`,
      ),
    );
    return rows[0] && { ...rows[0], feedId: rows[0].feedId ?? undefined };
  }

  /**
   * Commits the entries of a page, with the feed and the position that it has, unless nothing is new.
   *
   * @param from - the position that the page was requested from, in seconds
   * @param feedId - the identity of the feed that the page is of
   * @throws PositionMoved, DatabaseUnavailable, or the database's error
   */
  async savePage({ data: entries, meta }: ChangesPage, from: number, feedId: string | undefined): Promise<void> {
    const [before, after] = [from.toFixed(6), meta.next_since.toFixed(6)];
    if (entries.length === 0 && before === after) {
      const state = await this.readState();
      const isCaughtUp = state?.caughtUp.toFixed(6) === after;
      const isKnown = state?.position.toFixed(6) === before && state.feedId === feedId;
      if (isKnown && (meta.has_more || isCaughtUp)) return;
    }
    await this.#changeQuickly(async () => {
      if (entries.length > 0) await this.#upsert(entries);
      const { rowCount } = await this.query(
        `update ${this.schema}.state
            set position = $2, reached = greatest(reached, $2), caught_up = case when $3 then caught_up else $2 end,
                feed_id = $4
          where position = $1`,
        [before, after, meta.has_more, feedId],
      );
      if (rowCount !== 1) throw new PositionMoved("The mirror's position was changed.");
    });
  }

  /**
   * Records that the mirror equals the load, within a transaction.
   *
   * @param position - of the load, in seconds
   * @param feedId - the identity of the feed that the position is of; undefined when unknown
   */
  async recordLoad(baseUrl: string, position: number, feedId: string | undefined): Promise<void> {
    await this.query(
      `insert into ${this.schema}.state (base_url, position, reached, caught_up, copy_position, feed_id)
       values ($1, $2, $2, $2, $2, $3)
       on conflict (singleton) do update
          set (base_url, position, reached, caught_up, copy_position, feed_id) = (excluded.base_url, $2, $2, $2, $2, $3)`,
      [baseUrl, position.toFixed(6), feedId],
    );
  }

  /** Moves the mirror back after a repair, within a transaction. @param from - the position to follow the feed from */
  async moveBack(from: number): Promise<void> {
    await this.query(
      `update ${this.schema}.state set position = least(position, $1), caught_up = least(caught_up, $1)`,
      [from.toFixed(6)],
    );
  }

  /** Runs a small change. */
  #changeQuickly<T>(work: () => Promise<T>): Promise<T> {
    return bounded(this.session, this.transaction('write', work));
  }

  /**
   * Runs work in a transaction, which either sees a single moment or writes. Writing transactions take turns, so they
   * never meet rows that another has locked.
   *
   * @throws the error of the work, after a rollback
   */
  async transaction<T>(mode: 'read' | 'write', work: () => Promise<T>): Promise<T> {
    try {
      await this.query(
        mode === 'read'
          ? 'begin isolation level repeatable read'
          : `begin isolation level read committed; lock table ${this.schema}.state in share row exclusive mode`,
      );
      const result = await work();
      await this.query('commit');
      return result;
    } catch (error) {
      // Also after a lost connection, where it fails.
      await this.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  /** Closes the session, which ends its transaction and releases its lock. */
  readonly close = (): void => {
    this.signal.removeEventListener('abort', this.close);
    this.session.destroy();
  };

  /** Writes entries in place of earlier ones of the same titles. @throws the database's error */
  async #upsert(entries: readonly Entry[]): Promise<void> {
    await this.query(
      `insert into ${this.schema}.titles (svc_id, ${CONTENT})
       select distinct on (svc_id) svc_id, ${CONTENT} from json_to_recordset($1) as entry(${ENTRY})
        order by svc_id, updated_at desc
       on conflict (svc_id) do update
          set (${CONTENT}) = (${contentOf('excluded')})`,
      [JSON.stringify(entries)],
    );
  }
}
