import pg from 'pg';
import { OperatorError } from '../errors.js';
import type { ChangesPage } from '../follower/client.js';
import { withTimeout } from '../platform/async/with-timeout.js';
import { openConnection, type Connection } from '../platform/postgres/connection.js';
import { DatabaseTimeout, LOCK_NOT_AVAILABLE, sqlState } from '../platform/postgres/errors.js';

/** The schema and the tables that are there, by their names. */
type Found = Partial<Record<'schema' | 'state' | 'titles', string | null>>;

/** A title as the feed has it. */
export type Entry = ChangesPage['data'][number];

export interface StoreOptions {
  /** The database of the mirror. */
  readonly databaseUrl: string;
  /** The schema of its tables. */
  readonly schema: string;
}

/** Which service a mirror is of, and how far it is. Positions are in seconds. */
export interface SavedState {
  readonly baseUrl: string;
  /** Where it follows the feed from. */
  readonly position: number;
  /** The furthest position, which is later than `position` after a repair. */
  readonly reached: number;
  /** The position of what it has loaded: from there, it has followed the feed. */
  readonly copyPosition: number;
  /** The last comparison with a copy, and how many rows differed. */
  readonly verified: { readonly copyOf: string; readonly at: number; readonly differences: number } | undefined;
}

/** Another session has the lock of the schema. */
export class MirrorLocked extends OperatorError {}

/** Another session has changed the position, as a repair does. */
export class PositionMoved extends OperatorError {}

/** The columns of the titles besides the key, with their types. */
const CONTENT_TYPES = { media_type: 'text', title: 'text', updated_at: 'timestamptz', has_bundles: 'boolean' };
export const CONTENT = Object.keys(CONTENT_TYPES);

/** Those of them that are text. */
export const TEXTS: readonly string[] = Object.entries(CONTENT_TYPES).flatMap(([name, type]) =>
  type === 'text' ? [name] : [],
);

const typed = (constraint: string): string =>
  Object.entries(CONTENT_TYPES)
    .map(([name, type]) => `, ${name} ${type}${constraint}`)
    .join('');

/** The columns of a table of titles, as SQL. */
export const TITLE_COLUMNS = `svc_id text collate "C" primary key${typed(' not null')}`;

/** The fields of an entry with their types, in the order of the columns. */
export const ENTRY = `svc_id text${typed('')}`;

/** Limits that a role or a database may have, and which bulk work exceeds. Not every version has each. */
const UNLIMITED = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
  'transaction_timeout',
];

/** Bound on a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Bound on a query that needs no work, in milliseconds. */
const QUERY_TIMEOUT_MS = 10_000;

/** Bound on the wait for another mirror that is ending, in milliseconds. */
const MIRROR_LOCK_MS = 5_000;

/** Bound on any other lock, in milliseconds. To lose what is staged would cost more than to wait. */
const LOCK_TIMEOUT_MS = 600_000;

/** Bounds on a small change and on its lock, in milliseconds. A repair in another session may hold that. */
const CHANGE_TIMEOUT_MS = 120_000;
const CHANGE_LOCK_MS = 100_000;

/** The first part of the advisory lock, so that it is no other program's: "mirr" in ASCII. */
const LOCK_CLASS = 0x6d697272;

/** Encodings that hold any title as it is. */
const ENCODINGS = ['UTF8', 'SQL_ASCII'];

/**
 * The tables of a mirror, in one session of its database. Rows and position change together, in one transaction. When
 * the signal is aborted, the session is closed at once, which undoes what is not committed.
 */
export class MirrorStore {
  /** As SQL. */
  readonly schema: string;

  private constructor(
    readonly session: Connection,
    private readonly name: string,
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
    const session = await connect(databaseUrl, isMirror ? 'catalog mirror' : 'catalog mirror verify', signal);
    const store = new MirrorStore(session, schema, signal);
    try {
      await store.#bounded(store.#setUp(), QUERY_TIMEOUT_MS);
      if (isMirror) await store.#lock();
      const found = await store.#bounded(store.#find(), QUERY_TIMEOUT_MS);
      if (isMirror) await store.#bounded(store.#create(found), CHANGE_TIMEOUT_MS);
      else if (!found.state) {
        throw new OperatorError(
          `The schema ${schema} of this database has no mirror. Create one with "catalog mirror".`,
        );
      }
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  async #setUp(): Promise<void> {
    const { rows } = await this.session.query<{ encoding: string }>(
      `select current_setting('server_encoding') as encoding, set_config(name, '0', false)
         from pg_settings where name = any($1)`,
      [UNLIMITED],
    );
    const { encoding = '' } = rows[0] ?? {};
    if (!ENCODINGS.includes(encoding)) {
      throw new OperatorError(
        `The mirror's database has the encoding ${encoding}, which cannot hold every title. Use one with UTF8.`,
      );
    }
    // A policy that hides rows would look like missing ones.
    await this.session.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}; set row_security = off`);
    // Ends the work, and with it the lock, of a mirror that is gone. Not every system supports it.
    await this.session.query("set client_connection_check_interval = '1s'").catch(() => undefined);
  }

  /** @throws MirrorLocked when another mirror writes this schema */
  async #lock(): Promise<void> {
    try {
      await this.session.query(`set lock_timeout = ${MIRROR_LOCK_MS}`);
      const locked = this.session.query('select pg_advisory_lock($1, hashtext($2))', [LOCK_CLASS, this.name]);
      await this.#bounded(locked, MIRROR_LOCK_MS + QUERY_TIMEOUT_MS);
      await this.session.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      throw new MirrorLocked(
        `Another mirror is writing to the schema ${this.name}. Stop it, or choose another --schema.`,
      );
    }
  }

  /** Looks for the schema and the tables. */
  async #find(): Promise<Found> {
    const { rows } = await this.session.query<Required<Found>>(
      'select to_regnamespace($1)::text as schema, to_regclass($2)::text as state, to_regclass($3)::text as titles',
      [this.schema, `${this.schema}.state`, `${this.schema}.titles`],
    );
    return rows[0] ?? {};
  }

  /** Creates what is missing, so that a role without the privilege to create can use existing tables. */
  async #create({ schema, state, titles }: Found): Promise<void> {
    if (state) return;
    if (titles) {
      throw new OperatorError(
        `The schema ${this.name} has a table titles that is not a mirror's. Choose another --schema.`,
      );
    }
    if (!schema) await this.session.query(`create schema ${this.schema}`);
    // Several statements in one query are one transaction.
    await this.session.query(`
      create table ${this.schema}.titles (${TITLE_COLUMNS});
      create table ${this.schema}.state (
        singleton boolean primary key default true check (singleton),
        base_url text not null,
        position numeric(16, 6) not null,
        reached numeric(16, 6) not null,
        copy_position numeric(16, 6) not null,
        verified_copy timestamptz,
        verified_at timestamptz,
        differences bigint
      );
      comment on schema ${this.schema} is ${pg.escapeLiteral('Written by "catalog mirror" alone')}`);
  }

  /** @returns undefined before the first copy is complete @throws DatabaseUnavailable, or the database's error */
  async readState(): Promise<SavedState | undefined> {
    const { rows } = await this.#bounded(
      this.session.query<Record<string, string | null>>(
        `select base_url, position, reached, copy_position, verified_copy, verified_at, differences from ${this.schema}.state`,
      ),
      QUERY_TIMEOUT_MS,
    );
    const [row] = rows;
    if (row === undefined) return undefined;
    return {
      baseUrl: row.base_url ?? '',
      position: Number(row.position),
      reached: Number(row.reached),
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

  /**
   * Commits the entries of a page and the position after it.
   *
   * @param from - the position that the page was read from, in seconds
   * @param position - the position after it, in seconds
   * @throws PositionMoved, DatabaseUnavailable, or the database's error
   */
  async savePage(entries: readonly Entry[], from: number, position: number): Promise<void> {
    const save = async (): Promise<void> => {
      if (entries.length > 0) await this.upsert(`${this.schema}.titles`, entries);
      const { rowCount } = await this.session.query(
        `update ${this.schema}.state set position = $2, reached = greatest(reached, $2) where position = $1`,
        [from.toFixed(6), position.toFixed(6)],
      );
      if (rowCount === 0) throw new PositionMoved("The mirror's position was changed.");
    };
    await this.#changeQuickly(save);
  }

  /** Requires that the mirror is still at a position, in seconds. @throws as savePage() does */
  async requirePosition(position: number): Promise<void> {
    const saved = await this.readState();
    if (saved?.position.toFixed(6) !== position.toFixed(6))
      throw new PositionMoved("The mirror's position was changed.");
  }

  /**
   * Records that the mirror is what was loaded, within a transaction: nothing is known of comparisons any more.
   *
   * @param position - of what was loaded, in seconds
   */
  async recordLoad(baseUrl: string, position: number): Promise<void> {
    await this.session.query(
      `insert into ${this.schema}.state (base_url, position, reached, copy_position) values ($1, $2, $2, $2)
       on conflict (singleton) do update
          set (base_url, position, reached, copy_position) = (excluded.base_url, $2, $2, $2),
              (verified_copy, verified_at, differences) = (null, null, null)`,
      [baseUrl, position.toFixed(6)],
    );
  }

  /**
   * Records a repair by a copy, within a transaction.
   *
   * @param copyOf - when the copy was created
   * @param from - the position to follow the feed from, in seconds, unless the mirror is not as far
   */
  async recordRepair(copyOf: string, from: number): Promise<void> {
    await this.session.query(
      `update ${this.schema}.state
          set position = least(position, $1), (verified_copy, verified_at, differences) = ($2, now(), 0)`,
      [from.toFixed(6), copyOf],
    );
  }

  /**
   * Records the result of a comparison with a copy.
   *
   * @param compared - the state of the mirror that was compared
   * @returns false if the mirror was loaded, repaired or compared since: the result may no longer be about it
   * @throws DatabaseUnavailable, or the database's error
   */
  async saveVerification(
    copyOf: string,
    { copyPosition, verified }: SavedState,
    differences: number,
  ): Promise<boolean> {
    const save = (): Promise<pg.QueryResult> =>
      this.session.query(
        `update ${this.schema}.state set (verified_copy, verified_at, differences) = ($1, now(), $3)
          where copy_position = $2 and verified_copy is not distinct from $4 and differences is not distinct from $5`,
        [copyOf, copyPosition.toFixed(6), differences, verified?.copyOf, verified?.differences],
      );
    const { rowCount } = await this.#changeQuickly(save);
    return rowCount === 1;
  }

  /** Runs a small change. Its lock is not waited for as long as that of a load, which would cost more to repeat. */
  #changeQuickly<T>(work: () => Promise<T>): Promise<T> {
    return this.#bounded(this.transaction('write', work, CHANGE_LOCK_MS), CHANGE_TIMEOUT_MS);
  }

  /** Bounds the wait for work that may be silent because the network has lost the connection. */
  async #bounded<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    return withTimeout(work, timeoutMs, () => {
      this.close();
      return new DatabaseTimeout("the mirror's database did not answer in time");
    });
  }

  /**
   * Runs work in a transaction: one that sees a single moment, or one that writes. Writing transactions take turns, so
   * none meets rows that another has locked.
   *
   * @throws the error of the work, after a rollback
   */
  async transaction<T>(mode: 'read' | 'write', work: () => Promise<T>, lockTimeoutMs = LOCK_TIMEOUT_MS): Promise<T> {
    try {
      await this.session.query(
        mode === 'read'
          ? 'begin isolation level repeatable read'
          : `begin isolation level read committed; set local lock_timeout = ${lockTimeoutMs};
             lock table ${this.schema}.state in share row exclusive mode`,
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

  /** Closes the session, which ends its transaction and releases its lock. */
  readonly close = (): void => {
    this.signal.removeEventListener('abort', this.close);
    this.session.destroy();
  };

  /**
   * Writes entries into a table with the columns of the titles, in place of earlier ones of the same titles.
   *
   * @throws the database's error
   */
  async upsert(table: string, entries: readonly Entry[]): Promise<void> {
    const content = CONTENT.join(', ');
    await this.session.query(
      `insert into ${table} (svc_id, ${content})
       select distinct on (svc_id) svc_id, ${content} from json_to_recordset($1) as entry(${ENTRY})
        order by svc_id, updated_at desc
       on conflict (svc_id) do update set (${content}) = (${CONTENT.map((name) => `excluded.${name}`).join(', ')})`,
      [JSON.stringify(entries)],
    );
  }
}

/** @throws OperatorError for a URL that the driver cannot use; DatabaseUnavailable, the database's error, or the signal's reason */
async function connect(databaseUrl: string, applicationName: string, signal: AbortSignal): Promise<Connection> {
  signal.throwIfAborted();
  const opening = openConnection({
    address: databaseUrl,
    applicationName,
    acquireTimeoutMs: CONNECT_TIMEOUT_MS,
    statementTimeoutMs: 0,
  }).catch((error: unknown) => {
    if ((error as Error).message.includes('client password must be a string')) {
      throw new OperatorError(
        "The mirror's database asks for a password. Set PGPASSWORD, or MIRROR_DATABASE_URL to a URL with the password.",
        { cause: error },
      );
    }
    // A part of the URL that cannot be decoded, or a file that it names and that cannot be read.
    if (error instanceof URIError || (error as NodeJS.ErrnoException).syscall === 'open') {
      throw new OperatorError(`The URL of the mirror's database cannot be used: ${(error as Error).message}.`, {
        cause: error,
      });
    }
    throw error;
  });
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
      void opening.then(
        (session) => session.destroy(),
        () => undefined,
      );
    };
    signal.addEventListener('abort', abort, { once: true });
    void opening.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
