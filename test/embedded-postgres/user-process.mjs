// A process that uses the embedded PostgreSQL, driven by messages from its parent: see users.ts. Its argument is JSON.

import process from 'node:process';
import pg from 'pg';
import { openEmbeddedPostgres } from '../../src/embedded-postgres/index.ts';

const { serves, ...options } = JSON.parse(process.argv[2] ?? '');

try {
  const onLost = serves ? ({ message }) => process.send({ kind: 'lost', message }) : undefined;
  const postgres = await openEmbeddedPostgres({ ...options, onLost });

  const visit = async () => {
    const client = new pg.Client({ ...postgres.address, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
    client.on('error', () => undefined);
    await client.connect();
    await client.query('create table if not exists visits (); insert into visits default values');
    const { rows } = await client.query(
      'select pg_postmaster_start_time()::text as started, (select count(*)::int from visits) as visits',
    );
    await client.end();
    process.send({ kind: 'visit', ...rows[0] });
  };

  const leave = async () => {
    await postgres.close();
    process.disconnect();
  };
  process.on('message', (order) => void (order === 'visit' ? visit() : leave()));
  process.on('disconnect', () => process.exit());
  process.send({ kind: 'ready' });
} catch (error) {
  process.send({ kind: 'failure', message: error.message });
  process.disconnect();
}
