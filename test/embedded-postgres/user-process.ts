/**
 * A process that uses the embedded PostgreSQL, driven by messages from its parent: see users.ts. Argument: the options of
 * acquireEmbeddedPostgres as JSON.
 */
import pg from 'pg';
import { acquireEmbeddedPostgres, type EmbeddedPostgresOptions } from '../../src/embedded-postgres/index.js';
import type { Command, Report, Sight } from './users.js';

const options = JSON.parse(process.argv[2] ?? '') as EmbeddedPostgresOptions;

function report(message: Report): void {
  process.send?.(message);
}

try {
  const postgres = await acquireEmbeddedPostgres({
    ...options,
    pid: process.pid,
    onEvent: (event, detail) => report({ kind: 'event', event, detail }),
  });

  const look = async (): Promise<Sight> => {
    const client = new pg.Client({ ...postgres.address, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query('create table if not exists visits ()');
      await client.query('insert into visits default values');
      const { rows } = await client.query<{ started: string; visits: number }>(
        'select pg_postmaster_start_time()::text as started, (select count(*)::int from visits) as visits',
      );
      const { started = '', visits = 0 } = rows[0] ?? {};
      return { dataDir: postgres.dataDir, host: postgres.address.host, started, visits };
    } finally {
      await client.end();
    }
  };

  const leave = async () => {
    await postgres.release();
    process.disconnect();
  };
  process.on('message', (command: Command) => {
    if (command === 'leave') void leave();
    else {
      void look().then(
        (sight) => report({ kind: 'sight', sight }),
        (error: unknown) => report({ kind: 'failure', message: String(error) }),
      );
    }
  });
  // A parent that is gone takes us along, without ceremony.
  process.on('disconnect', () => process.exit());
  report({ kind: 'ready' });
} catch (error) {
  report({ kind: 'failure', message: error instanceof Error ? error.message : String(error) });
  process.disconnect();
}
