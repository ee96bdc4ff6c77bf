import { OperatorError } from '../../errors.js';
import { withTimeout } from '../../platform/async/with-timeout.js';
import { openSession, type Connection } from '../../platform/postgres/connection.js';
import { DatabaseTimeout, LOCK_NOT_AVAILABLE, sqlState } from '../../platform/postgres/errors.js';
import { requireTables } from './tables.js';

/** Another session has the lock of the schema. */
export class MirrorLocked extends OperatorError {}

/** Limits that a role or a database may have, and which bulk work exceeds. Not every version has each. */
const UNLIMITED = ['idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout'];

/** Bound on a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Bound on an answer that takes little work, in milliseconds. A repair or a migration may hold a lock meanwhile. */
const ANSWER_TIMEOUT_MS = 120_000;

/** Bound on the wait for another mirror that is ending, in milliseconds. */
const MIRROR_LOCK_MS = 5_000;

/** Bound on any other lock, in milliseconds. Losing the staged rows would cost more than waiting. */
const LOCK_TIMEOUT_MS = 600_000;

/** The first part of the advisory lock, so that it is no other program's: "mirr" in ASCII. */
const LOCK_CLASS = 0x6d697272;

/** Encodings that can hold any title. */
const ENCODINGS = ['UTF8', 'SQL_ASCII'];

/** Bounds the wait for work that may be silent because the network has lost the connection, and closes the session. */
export function bounded<T>(session: Connection, work: Promise<T>): Promise<T> {
  return withTimeout(work, ANSWER_TIMEOUT_MS, () => {
    session.destroy();
    return new DatabaseTimeout("the mirror's database did not answer in time");
  });
}

/**
 * Prepares a session: its settings, the tables, and for a mirror the lock that one mirror at a time has, which the
 * session keeps.
 *
 * @param isMirror - whether to take the lock, and to create tables that are missing
 * @throws MirrorLocked, OperatorError, DatabaseUnavailable, or the database's error
 */
export async function openTables(session: Connection, schema: string, isMirror: boolean): Promise<void> {
  await setUp(session);
  if (isMirror) await lock(session, schema);
  await requireTables(session, schema, isMirror);
}

async function setUp(session: Connection): Promise<void> {
  const { rows } = await session.query<{ encoding: string }>(
    `select current_setting('server_encoding') as encoding, set_config(name, '0', false)
         from pg_settings where name = any($1)`,
    [UNLIMITED],
  );
  const { encoding = '' } = rows[0] ?? {};
  if (!ENCODINGS.includes(encoding)) {
    throw new OperatorError(`The mirror's database has the encoding ${encoding}, which cannot hold every title.`, {
      advice: 'Use one with UTF8.',
    });
  }
  // A policy that hides rows would look like missing ones.
  await session.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}; set row_security = off`);
  // Ends the work, and with it the lock, of a mirror that is gone. Not every system supports it.
  await session.query("set client_connection_check_interval = '1s'").catch(() => undefined);
}

/** @throws MirrorLocked when another mirror writes this schema */
async function lock(session: Connection, schema: string): Promise<void> {
  try {
    await session.query(`set lock_timeout = ${MIRROR_LOCK_MS}`);
    await session.query('select pg_advisory_lock($1, hashtext($2))', [LOCK_CLASS, schema]);
    await session.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    throw new MirrorLocked(`Another mirror is writing to the schema ${schema}.`, {
      advice: 'Stop it, or choose another --schema.',
    });
  }
}

/**
 * @throws OperatorError for a missing password or a pooler that lends its sessions; DatabaseUnavailable, or the error
 *   of the database or the driver
 */
export function connect(databaseUrl: string, applicationName: string): Promise<Connection> {
  const options = {
    address: databaseUrl,
    applicationName,
    acquireTimeoutMs: CONNECT_TIMEOUT_MS,
    statementTimeoutMs: 0,
  };
  const needs = 'A mirror needs a session of its own, for temporary tables and its lock.';
  return openSession(options, 'MIRROR_DATABASE_URL or --into', needs).catch((error: unknown) => {
    if (!(error as Error).message.includes('client password must be a string')) throw error;
    const advice = 'Set PGPASSWORD, or MIRROR_DATABASE_URL to a URL with the password.';
    throw new OperatorError("The mirror's database requires a password.", { advice, cause: error });
  });
}
