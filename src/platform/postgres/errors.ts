import pg from 'pg';

/** PostgreSQL cannot be reached, or does not answer in time. The same query may succeed a little later. */
export class DatabaseUnavailable extends Error {
  override readonly name: string = 'DatabaseUnavailable';
}

/** A connection, an answer or a turn did not come in time. */
export class DatabaseTimeout extends DatabaseUnavailable {
  override readonly name = 'DatabaseTimeout';
}

/** Connection exceptions, insufficient resources, and a server that starts or stops (PostgreSQL, appendix A). */
const UNAVAILABLE_SQLSTATE = /^(?:08|53|57P0[1-5]|57014|3D000|28|25006)/;

/**
 * Distinguishes an outage (the database is away or too slow) from a bug (the database refused the query).
 *
 * @param error - any value that a query threw
 * @returns true when the same query may succeed a little later
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || UNAVAILABLE_SQLSTATE.test(sqlState(error));
}

/** @returns whether a statement was canceled for its bound: the same work in smaller parts may succeed */
export function isTimeout(error: unknown): boolean {
  return error instanceof DatabaseTimeout || sqlState(error) === '57014';
}

/** SQLSTATE of a lock that was not granted in time. */
export const LOCK_NOT_AVAILABLE = '55P03';

/** SQLSTATE of a missing privilege. */
export const INSUFFICIENT_PRIVILEGE = '42501';

/** SQLSTATE of a statement that needs more space than the disk has. */
export const DISK_FULL = '53100';

/** SQLSTATE of the warnings that our own functions raise: db/migrations. */
export const OWN_WARNING = '01CAT';

/** The messages that PostgreSQL sent, by their errors: Knex writes the statement before the message of an error. */
const SENT_MESSAGES = new WeakMap<object, string>();

/** Keeps the message of an error that PostgreSQL has just sent. */
export function keepMessage(error: unknown): void {
  if (error instanceof pg.DatabaseError) SENT_MESSAGES.set(error, error.message);
}

/** @returns the message that PostgreSQL sent, without the statement; empty for an error of another origin */
export function sentMessage(error: unknown): string {
  return error instanceof pg.DatabaseError ? (SENT_MESSAGES.get(error) ?? error.message) : '';
}

/** @returns PostgreSQL's code of an error (appendix A); empty for an error of another origin */
export function sqlState(error: unknown): string {
  return error instanceof pg.DatabaseError ? (error.code ?? '') : '';
}

/** The driver and its pool have no code for a connection that was not free, or not made, in time. */
const TIMEOUT_OF_DRIVER = /^(?:timeout exceeded|timeout expired|Connection terminated due to connection timeout)/;

/**
 * Gives the error of a failed connection its type. The driver and the operating system have many errors for that.
 *
 * @returns PostgreSQL's own error unchanged; any other error as the cause of a DatabaseUnavailable or DatabaseTimeout
 */
export function toConnectionError(error: unknown): Error {
  if (error instanceof pg.DatabaseError || error instanceof DatabaseUnavailable) return error;
  const reason =
    error instanceof AggregateError ? error.errors.map(String).join(', ') : error instanceof Error ? error.message : '';
  const Unavailable = TIMEOUT_OF_DRIVER.test(reason) ? DatabaseTimeout : DatabaseUnavailable;
  return new Unavailable(reason, { cause: error });
}
