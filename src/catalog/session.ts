import type { Knex } from 'knex';
import type { ClientBase } from 'pg';
import { poolOf } from '../platform/postgres/database.js';
import type { PooledConnection } from '../platform/postgres/pool.js';

/**
 * Runs work in a separate database session, which ends with its temporary tables, settings and open transaction. Bulk
 * work needs a pool whose statements have no bound.
 *
 * @param signal - when aborted, PostgreSQL cancels the current statement, so the work fails at once
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
    // If the request to cancel fails, the statement completes and the next one does not start.
    const { processID } = connection as PooledConnection & { readonly processID: number };
    cancelling = db.raw('select pg_cancel_backend(?)', [processID]).then(undefined, () => undefined);
  };
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    return await work(connection);
  } catch (error) {
    throw connection.toOwnError(error);
  } finally {
    signal?.removeEventListener('abort', cancel);
    await cancelling;
    // The pool replaces it on demand.
    await connection.end();
    connection.release();
  }
}
