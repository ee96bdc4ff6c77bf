import pg from 'pg';
import { OperatorError } from '../errors.js';
import { openConnection, type Connection } from '../platform/postgres/connection.js';
import { withTimeout } from '../platform/async/with-timeout.js';
import { DatabaseTimeout, LOCK_NOT_AVAILABLE, sqlState } from '../platform/postgres/errors.js';
import type { Manifest } from '../copies/manifest.js';
import { showPosition } from '../follower/client.js';
import type { Entry } from './rows.js';

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
  /** When the copy that it was last compared with was created. */
  readonly verifiedCopy: string | undefined;
}

/** Bound on a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Bound on writing a page, in milliseconds. A repair in another session may hold the lock. */
const PAGE_TIMEOUT_MS = 120_000;

/** Bound on the wait for another mirror that is ending, in milliseconds. */
const MIRROR_LOCK_MS = 3_000;

/** Bound on any other lock, in milliseconds, such as that of a migration of the operator's own. */
const LOCK_TIMEOUT_MS = 600_000;

/** The first part of the advisory lock, so that it is no other program's: "mirr" in ASCII. */
const LOCK_CLASS = 0x6d697272;

/** The columns of the titles. */
const FIELDS = 'svc_id, media_type, title, updated_at, has_bundles';
/** All columns but the key. */
export const CONTENT = ['media_type', 'title', 'updated_at', 'has_bundles'] as const;

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
      if (isMirror) {
        await store.#lock(schema);
        await store.#createTables();
      } else if (!(await store.#find()).tables) {
        throw new OperatorError(
          `There is no mirror in the schema ${schema} of this database. Begin one with "catalog mirror".`,
        );
      }
      return store;
    } catch (error) {
      session.destroy();
      throw error;
    }
  }

  /** @throws OperatorError when another mirror writes this schema */
  async #lock(schema: string): Promise<void> {
    try {
      await this.session.query(`set lock_timeout = ${MIRROR_LOCK_MS}`);
      await this.session.query('select pg_advisory_lock($1, hashtext($2))', [LOCK_CLASS, schema]);
      await this.session.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      throw new OperatorError(`Another mirror writes the schema ${schema}. Stop it, or choose another --schema.`);
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

  /** Creates what is missing. What is there needs no privilege to create. */
  async #createTables(): Promise<void> {
    const found = await this.#find();
    if (found.tables) return;
    if (!found.schema) await this.session.query(`create schema ${this.schema}`);
    // Several statements in one query are one transaction.
    await this.session.query(`
      create table ${this.schema}.titles (
        svc_id text collate "C" primary key,
        media_type text not null,
        title text not null,
        updated_at timestamptz not null,
        has_bundles boolean not null
      );
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
      `select base_url, position, copy_position, verified_copy from ${this.schema}.state`,
    );
    const [row] = rows;
    if (row === undefined) return undefined;
    return {
      baseUrl: row.base_url ?? '',
      position: Number(row.position),
      copyPosition: Number(row.copy_position),
      verifiedCopy: row.verified_copy ?? undefined,
    };
  }

  /**
   * Requires that a copy can be compared with the mirror: that the mirror did not begin with a later one.
   *
   * @returns the mirror's position
   * @throws OperatorError
   */
  async requireComparable(manifest: Manifest): Promise<number> {
    const state = await this.readState();
    if (state === undefined) throw new OperatorError('The mirror has not begun yet: its first copy is not complete.');
    if (state.baseUrl !== manifest.base_url) {
      throw new OperatorError(`The mirror is of ${state.baseUrl}, and the copy of ${manifest.base_url}.`);
    }
    if (manifest.position < state.copyPosition) {
      throw new OperatorError(
        `The newest copy is of ${showPosition(manifest.position)}, older than the beginning of the mirror, ` +
          `${showPosition(state.copyPosition)}. They can be compared once the operator of the service publishes another.`,
      );
    }
    return state.position;
  }

  /** Commits the entries of a page and the position after it. */
  async savePage(entries: readonly Entry[], position: number): Promise<void> {
    const save = async (): Promise<void> => {
      if (entries.length > 0) await this.upsert(`${this.schema}.titles`, entries);
      await this.session.query(`update ${this.schema}.state set position = $1, followed_at = clock_timestamp()`, [
        position.toFixed(6),
      ]);
    };
    await withTimeout(this.change(save), PAGE_TIMEOUT_MS, () => {
      this.session.destroy();
      return new DatabaseTimeout("the mirror's database did not commit a page in time");
    });
  }

  /** Records the result of a comparison with a copy. */
  async saveVerification({ created_at: copy }: Manifest, differences: number): Promise<void> {
    await this.session.query(
      `update ${this.schema}.state set verified_copy = $1, verified_at = now(), differences = $2`,
      [copy, differences],
    );
  }

  /** Changes the titles and the state in one transaction. These take turns: none meets rows that another has locked. */
  async change<T>(work: () => Promise<T>): Promise<T> {
    await this.session.query('begin');
    try {
      await this.session.query(`lock table ${this.schema}.state in share row exclusive mode`);
      const result = await work();
      await this.session.query('commit');
      return result;
    } catch (error) {
      // Also after a lost connection, where it fails.
      await this.session.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  /** Closes the session, which ends its transaction and releases its lock. */
  close(): void {
    this.session.destroy();
  }

  /** Writes entries into a table like the titles, in place of earlier ones of the same titles. */
  async upsert(table: string, entries: readonly Entry[]): Promise<void> {
    await this.session.query(
      `insert into ${table} (${FIELDS})
       select distinct on (svc_id) ${FIELDS}
         from json_to_recordset($1) as e(svc_id text, media_type text, title text, updated_at timestamptz, has_bundles boolean)
        order by svc_id, updated_at desc
       on conflict (svc_id) do update
          set (${CONTENT.join(', ')}) = (${CONTENT.map((name) => `excluded.${name}`).join(', ')})`,
      [JSON.stringify(entries)],
    );
  }
}
