/** A process that uses the embedded PostgreSQL, driven by messages from its parent: see users.ts. Its arguments are JSON. */
import pg from 'pg';
import { openEmbeddedPostgres } from '../../src/embedded-postgres/index.js';
import type { Report, UserOptions } from './users.js';

const { serves, ...options } = JSON.parse(process.argv[2] ?? '') as UserOptions & { packageRoot: string };

function report(message: Report): void {
  process.send?.(message);
}

try {
  const onLost = serves ? (reason: Error) => report({ kind: 'lost', message: reason.message }) : undefined;
  const postgres = await openEmbeddedPostgres({ ...options, onLost });
  const { address } = postgres;

  const visit = async (): Promise<void> => {
    const client = new pg.Client({ ...address, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
    client.on('error', () => undefined);
    await client.connect();
    await client.query('create table if not exists visits (); insert into visits default values');
    const { rows } = await client.query<{ started: string; visits: number }>(
      'select pg_postmaster_start_time()::text as started, (select count(*)::int from visits) as visits',
    );
    await client.end();
    report({ kind: 'visit', started: rows[0]?.started ?? '', visits: rows[0]?.visits ?? 0 });
  };

  const leave = async (): Promise<void> => {
    await postgres.close();
    process.disconnect();
  };
  process.on('message', (order: 'visit' | 'leave') => void (order === 'visit' ? visit() : leave()));
  process.on('disconnect', () => process.exit());
  report({ kind: 'ready' });
} catch (error) {
  report({ kind: 'failure', message: (error as Error).message });
  process.disconnect();
}
