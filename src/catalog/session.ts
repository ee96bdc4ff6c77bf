import type { Knex } from 'knex';
import type { ClientBase } from 'pg';

/** A connection of the pool, for one piece of work alone. */
type OwnConnection = ClientBase & { readonly processID: number; end(): Promise<void> };

/** The part of Knex's client that hands out connections. */
interface ConnectionSource {
  acquireConnection(): Promise<OwnConnection>;
  releaseConnection(connection: OwnConnection): Promise<void>;
}

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
  const source = db.client as ConnectionSource;
  signal?.throwIfAborted();
  const connection = await source.acquireConnection();
  let cancelling: Promise<unknown> = Promise.resolve();
  const cancel = (): void => {
    // If it cannot be sent, the statement runs to its end; what follows it does not.
    cancelling = db.raw('select pg_cancel_backend(?)', [connection.processID]).then(undefined, () => undefined);
  };
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    await connection.query('set statement_timeout = 0');
    return await work(connection);
  } finally {
    signal?.removeEventListener('abort', cancel);
    await cancelling;
    // The pool sees that it has ended and opens another when it needs one.
    await connection.end();
    await source.releaseConnection(connection);
  }
}
