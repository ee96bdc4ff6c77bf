import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { OperatorError } from '../errors.js';
import type { Cluster } from './cluster/cluster.js';
import type { EventListener } from './events.js';

/** The service's database in the cluster. */
export const DATABASE = 'catalog';

/** Leases connect to this database, so that the service's own database can be dropped and made. */
const MAINTENANCE_DATABASE = 'postgres';

const APPLICATION_NAME_PREFIX = 'catalog lease ';

const CONNECT_TIMEOUT_MS = 5_000;
const QUERY_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2_000;

/** How often to connect while a server stops or starts. */
const MAX_CONNECT_ATTEMPTS = 5;
const POLL_INTERVAL_MS = 100;

/** How long closed connections may stay in the server's list, in milliseconds. */
const DEPARTURE_MS = 2_000;

/** SQLSTATE (PostgreSQL, appendix A). */
const DUPLICATE_DATABASE = '42P04';

/**
 * Opens the connection of a lease. Starts the server first when it does not run. Call it under the mutex.
 *
 * @param holder - the owner of the lease, shown in `pg_stat_activity`
 * @throws OperatorError when the server cannot be started, does not answer or refuses the connection
 */
export async function openClient(cluster: Cluster, holder: string, onEvent: EventListener): Promise<pg.Client> {
  for (let attempt = 1; ; attempt++) {
    const started = await cluster.ensureRunning();
    const address = await cluster.address();
    if (started) onEvent('postgres_started', { dataDirectory: cluster.dataDirectory });
    const client = new pg.Client({
      ...address,
      database: MAINTENANCE_DATABASE,
      ssl: false,
      options: '-c search_path=pg_catalog',
      application_name: APPLICATION_NAME_PREFIX + holder,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
    });
    // The event 'end' always follows, and is handled.
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await close(client);
      if (error instanceof OperatorError) throw error;
      if (attempt === MAX_CONNECT_ATTEMPTS) {
        throw new OperatorError(
          `The PostgreSQL of ${cluster.dataDirectory} runs but does not answer: ` +
            (error instanceof Error ? error.message : String(error)),
          { cause: error },
        );
      }
      await delay(POLL_INTERVAL_MS);
    }
  }
}

/** Makes the service's database unless it exists. */
export async function createDatabase(client: pg.Client): Promise<void> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
  if (rowCount === 1) return;
  try {
    // From template0, to which nobody can be connected: PostgreSQL cannot copy a template in use.
    await client.query(`create database ${DATABASE} template template0`);
  } catch (error) {
    if ((error as { code?: string }).code !== DUPLICATE_DATABASE) throw error;
  }
}

/**
 * Counts the other connections of the server. Connections that are no leases may belong to a pool that was just closed.
 * They get a moment to disappear.
 */
export async function countOthers(client: pg.Client): Promise<number> {
  const deadline = Date.now() + DEPARTURE_MS;
  for (;;) {
    const { rows } = await client.query<{ others: number; leases: number }>(
      `select count(*)::int as others, (count(*) filter (where starts_with(application_name, $1)))::int as leases
       from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
      [APPLICATION_NAME_PREFIX],
    );
    const { others, leases } = rows[0] ?? { others: 0, leases: 0 };
    if (others === 0 || leases > 0 || Date.now() > deadline) return others;
    await delay(POLL_INTERVAL_MS);
  }
}

/** Closes a connection within a bound, also when the server does not answer. */
export async function close(client: pg.Client): Promise<void> {
  const cancellation = new AbortController();
  const timeout = delay(CLOSE_TIMEOUT_MS, undefined, { signal: cancellation.signal }).then(
    () => client.connection.stream.destroy(),
    () => undefined,
  );
  await Promise.race([client.end().catch(() => undefined), timeout]);
  cancellation.abort();
}
