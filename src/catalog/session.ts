import type { Knex } from 'knex';
import type { ClientBase } from 'pg';
import { poolOf } from '../platform/postgres/database.js';
import type { PooledConnection } from '../platform/postgres/pool.js';

/**
 * Runs work in a session of its own, which ends with it, and with it all that it made: temporary tables, settings, and an
 * open transaction.
 *
 * @param signal - when aborted, the statement that runs is cancelled, so the work fails at once
 */
export async function withSession<T>(
  db: Knex,
  signal: AbortSignal | undefined,
  work: (session: ClientBase) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const connection = await poolOf(db).connect();
  let cancelling: Promise<unknown> = Promise.resolve();
  const cancel = (): void => {
    // If it cannot be sent, the statement runs to its end; what follows it does not.
    const { processID } = connection as PooledConnection & { readonly processID: number };
    cancelling = db.raw('select pg_cancel_backend(?)', [processID]).then(undefined, () => undefined);
  };
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    await connection.query('set statement_timeout = 0');
    return await work(connection);
  } catch (error) {
    throw connection.explain(error);
  } finally {
    signal?.removeEventListener('abort', cancel);
    await cancelling;
    // The pool opens another when it needs one.
    await connection.end();
    connection.release();
  }
}
