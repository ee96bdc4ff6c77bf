import pg from 'pg';
import { OperatorError } from '../errors.js';
import { openConnection, type Connection } from '../platform/postgres/connection.js';
import { withTimeout } from '../platform/async/with-timeout.js';
import { DatabaseTimeout, LOCK_NOT_AVAILABLE, sqlState } from '../platform/postgres/errors.js';
import type { ChangesPage } from '../follower/client.js';

/** A title as the feed has it. */
export type Entry = ChangesPage['data'][number];

export interface StoreOptions {
  /** The database of the mirror. */
  readonly databaseUrl: string;
  /** The schema of its tables. */
  readonly schema: string;
}

/** What a mirror holds, and how far it is. Positions are in seconds. */
export interface MirrorState {
  readonly baseUrl: string;
  readonly position: number;
  /** The position of the copy that it began with, or where it began to follow the feed. */
  readonly copyPosition: number;
  /** The last comparison with a copy, and how many rows differed. */
  readonly verified: { readonly copyOf: string; readonly at: number; readonly differences: number } | undefined;
}

/** Another session has the lock of the schema. */
export class MirrorLocked extends OperatorError {}

/** The columns of the titles, as SQL. */
export const TITLE_COLUMNS = `
  svc_id text collate "C" primary key,
  media_type text not null,
  title text not null,
  updated_at timestamptz not null,
  has_bundles boolean not null`;

/** Limits that a role or a database may have, and which bulk work exceeds. Not every version has each. */
const UNLIMITED = ['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'];

/** Bound on a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Bound on a query that needs no work, in milliseconds. */
const PING_TIMEOUT_MS = 10_000;

/** Bound on writing a page, in milliseconds. A repair in another session may hold the lock. */
const PAGE_TIMEOUT_MS = 120_000;

/** Bound on the wait for another mirror that is ending, in milliseconds. */
const MIRROR_LOCK_MS = 5_000;

/** Bound on any other lock, in milliseconds, such as that of a migration of the operator's own. */
const LOCK_TIMEOUT_MS = 600_000;

/** The first part of the advisory lock, so that it is no other program's: "mirr" in ASCII. */
const LOCK_CLASS = 0x6d697272;

/** All columns of the titles but the key. */
export const CONTENT = ['media_type', 'title', 'updated_at', 'has_bundles'] as const;

/** The fields of an entry with their types, in the order of the columns. */
export const ENTRY = 'svc_id text, media_type text, title text, updated_at timestamptz, has_bundles boolean';

/** The tables of a mirror, in one session of its database. All changes are transactions of rows and position together. */
export class MirrorStore {
  /** As SQL. */
  readonly schema: string;

  private constructor(
    readonly session: Connection,
    schema: string,
  ) {
    this.schema = pg.escapeIdentifier(schema);
  }

  /**
   * Opens the tables, and creates them where they are missing.
   *
   * @param isMirror - takes the lock that one mirror at a time has; the session keeps it
   * @throws OperatorError when another mirror has the lock; DatabaseUnavailable, or the database's error
   */
  static async open({ databaseUrl, schema }: StoreOptions, isMirror: boolean): Promise<MirrorStore> {
    const session = await openConnection({
      address: databaseUrl,
      applicationName: isMirror ? 'catalog mirror' : 'catalog mirror verify',
      acquireTimeoutMs: CONNECT_TIMEOUT_MS,
      statementTimeoutMs: 0,
    });
    try {
      const store = new MirrorStore(session, schema);
      await store.#setUp();
      if (isMirror) {
        await store.#lock(schema);
        await store.#createTables();
      } else if (!(await store.#find()).tables) {
        throw new OperatorError(
          `The schema ${schema} of this database has no mirror. Create one with "catalog mirror".`,
        );
      }
      return store;
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  async #setUp(): Promise<void> {
    await this.session.query("select set_config(name, '0', false) from pg_settings where name = any($1)", [UNLIMITED]);
    // Ends the work, and with it the lock, of a mirror that is gone. Only Linux and BSD can do so.
    await this.session.query("set client_connection_check_interval = '1s'").catch(() => undefined);
  }

  /** @throws MirrorLocked when another mirror writes this schema */
  async #lock(schema: string): Promise<void> {
    try {
      await this.session.query(`set lock_timeout = ${MIRROR_LOCK_MS}`);
      await this.session.query('select pg_advisory_lock($1, hashtext($2))', [LOCK_CLASS, schema]);
      await this.session.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      throw new MirrorLocked(`Another mirror is writing to the schema ${schema}. Stop it, or choose another --schema.`);
    }
  }

  /** Looks for the schema and the tables. */
  async #find(): Promise<Partial<Record<'schema' | 'tables', string | null>>> {
    const { rows } = await this.session.query<Record<'schema' | 'tables', string | null>>(
      'select to_regnamespace($1)::text as schema, to_regclass($2)::text as tables',
      [this.schema, `${this.schema}.state`],
    );
    return rows[0] ?? {};
  }

  /** Creates what is missing, so that a role without the privilege to create can use existing tables. */
  async #createTables(): Promise<void> {
    const found = await this.#find();
    if (found.tables) return;
    if (!found.schema) await this.session.query(`create schema ${this.schema}`);
    // Several statements in one query are one transaction.
    await this.session.query(`
      create table ${this.schema}.titles (${TITLE_COLUMNS});
      create table ${this.schema}.state (
        singleton boolean primary key default true check (singleton),
        base_url text not null,
        position numeric(16, 6) not null,
        copy_position numeric(16, 6) not null,
        copied_at timestamptz not null default now(),
        followed_at timestamptz not null default now(),
        verified_copy timestamptz,
        verified_at timestamptz,
        differences bigint
      );
      comment on schema ${this.schema} is ${pg.escapeLiteral('Written by "catalog mirror" alone')}`);
  }

  /** @returns undefined before the first copy is complete */
  async readState(): Promise<MirrorState | undefined> {
    const { rows } = await this.session.query<Record<string, string | null>>(
      `select base_url, position, copy_position, verified_copy, verified_at, differences from ${this.schema}.state`,
    );
    const [row] = rows;
    if (row === undefined) return undefined;
    return {
      baseUrl: row.base_url ?? '',
      position: Number(row.position),
      copyPosition: Number(row.copy_position),
      verified: row.verified_copy
        ? {
            copyOf: new Date(row.verified_copy).toISOString(),
            at: Date.parse(row.verified_at ?? ''),
            differences: Number(row.differences),
          }
        : undefined,
    };
  }

  /** Commits the entries of a page and the position after it. */
  async savePage(entries: readonly Entry[], position: number): Promise<void> {
    const save = async (): Promise<void> => {
      if (entries.length > 0) await this.upsert(`${this.schema}.titles`, entries);
      await this.session.query(`update ${this.schema}.state set position = $1, followed_at = clock_timestamp()`, [
        position.toFixed(6),
      ]);
    };
    await this.#bounded(this.transaction('write', save), PAGE_TIMEOUT_MS);
  }

  /** Requires that the session still works. @throws DatabaseUnavailable, or the database's error */
  async ping(): Promise<void> {
    await this.#bounded(this.session.query('select'), PING_TIMEOUT_MS);
  }

  /** Records the result of a comparison with a copy. */
  async saveVerification(copyOf: string, differences: number): Promise<void> {
    await this.session.query(
      `update ${this.schema}.state set verified_copy = $1, verified_at = now(), differences = $2`,
      [copyOf, differences],
    );
  }

  async #bounded<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return withTimeout(work, timeoutMs, () => {
      this.session.destroy();
      return new DatabaseTimeout("the mirror's database did not answer in time");
    });
  }

  /**
   * Runs work in a transaction: one that sees a single moment, or one that writes. Writing transactions take turns, so
   * none meets rows that another has locked.
   */
  async transaction<T>(mode: 'read' | 'write', work: () => Promise<T>): Promise<T> {
    try {
      await this.session.query(
        mode === 'read'
          ? 'begin isolation level repeatable read'
          : `begin; lock table ${this.schema}.state in share row exclusive mode`,
      );
      const result = await work();
      await this.session.query('commit');
      return result;
    } catch (error) {
      // Also after a lost connection, where it fails.
      await this.session.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  /** Runs work that the signal ends at once, by closing the session. What is not committed is undone. */
  async interruptible<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const interrupt = (): void => this.close();
    signal.addEventListener('abort', interrupt, { once: true });
    try {
      signal.throwIfAborted();
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', interrupt);
    }
  }

  /** Closes the session, which ends its transaction and releases its lock. */
  close(): void {
    this.session.destroy();
  }

  /** Writes entries into a table like the titles, in place of earlier ones of the same titles. */
  async upsert(table: string, entries: readonly Entry[]): Promise<void> {
    await this.session.query(
      `insert into ${table} select distinct on (svc_id) * from json_to_recordset($1) as entry(${ENTRY})
        order by svc_id, updated_at desc
       on conflict (svc_id) do update
          set (${CONTENT.join(', ')}) = (${CONTENT.map((name) => `excluded.${name}`).join(', ')})`,
      [JSON.stringify(entries)],
    );
  }
}
