import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { MirrorStore } from '../../../src/client/mirror/store.js';
import { openConnection } from '../../../src/platform/postgres/connection.js';
import { connectDatabase, type ConnectedDatabase } from '../../../src/platform/postgres/connect.js';
import { isTimeout } from '../../../src/platform/postgres/errors.js';
import { eventually } from '../../support/eventually.js';
import { startPooler } from '../../support/proxies/pgbouncer.js';
import { skipWithout } from '../../support/programs/skip.js';
import { findProgram, PGBOUNCER } from '../../support/programs/system-program.js';
import { TcpProxy } from '../../support/proxies/tcp-proxy.js';
import { testWorld } from '../../support/world.js';

/** Bound on a connection from the pool and on a statement, in milliseconds. */
const TIMEOUT_MS = 50;

function connect(
  databaseUrl: string,
  timeoutMs: number,
  migrate = false,
  applicationName = 'catalog test',
): Promise<ConnectedDatabase> {
  return connectDatabase({
    databaseUrl,
    dataDir: undefined,
    packageRoot: fileURLToPath(new URL('../../../', import.meta.url)),
    applicationName,
    poolSize: 1,
    acquireTimeoutMs: timeoutMs,
    statementTimeoutMs: timeoutMs,
    migrate,
  });
}

describe('the connection to a database that is slow at the start', () => {
  const world = testWorld();
  let network: TcpProxy;

  before(async () => {
    network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
  });

  it('a slow database is connected to, whatever the bounds of later requests, with --migrate and without', async () => {
    for (const migrate of [false, true]) {
      network.delayMs = 2 * TIMEOUT_MS;
      const connected = await connect(network.url, TIMEOUT_MS, migrate);
      try {
        await assert.rejects(connected.db.raw('select 1'), isTimeout);
        network.delayMs = 0;
        await eventually('requests have an answer', () => connected.db.raw('select 1'));
      } finally {
        await connected.close();
      }
    }
  });

  it('a start that fails because one of its first sessions was ended leaves no connection open', async () => {
    const sessions = (): Promise<number[]> =>
      world
        .db('pg_stat_activity')
        .where({ application_name: 'catalog test of sessions' })
        .orderBy('backend_start')
        .pluck<number[]>('pid');
    network.delayMs = 2 * TIMEOUT_MS;
    const failing = assert.rejects(connect(network.url, TIMEOUT_MS, false, 'catalog test of sessions'), {
      name: 'OperatorError',
    });
    await eventually('both sessions are open', async () => (await sessions()).length === 2);
    await world.db.raw('select pg_terminate_backend(?)', [(await sessions())[0] ?? 0]);
    await failing;
    await eventually('both are closed', async () => (await sessions()).length === 0);
  });
});

describe('a connection to a database with a bound of its own on statements', () => {
  const world = testWorld();

  it('bounds statements as it was asked to, also by nothing', async () => {
    await world.db.raw(
      `do $$ begin execute format('alter database %I set statement_timeout = 12000', current_database()); end $$`,
    );
    for (const [statementTimeoutMs, bound] of [
      [0, '0'],
      [34_000, '34s'],
    ] as const) {
      const connection = await openConnection({
        address: world.url,
        applicationName: 'catalog test',
        acquireTimeoutMs: 10_000,
        statementTimeoutMs,
      });
      const { rows } = await connection.query('show statement_timeout');
      await connection.end();
      assert.deepEqual(rows, [{ statement_timeout: bound }]);
    }
  });
});

describe('the connection to a database behind PgBouncer', () => {
  const world = testWorld();
  let program: string;

  before(function () {
    program = findProgram(PGBOUNCER) ?? skipWithout(PGBOUNCER.title, this);
  });

  const openMirror = (databaseUrl: string): Promise<MirrorStore> =>
    MirrorStore.open({ databaseUrl, schema: 'catalog_mirror' }, true, new AbortController().signal);

  it('PgBouncer in session mode is accepted without settings of startup parameters, and the server bounds statements', async () => {
    const pooler = await startPooler(program, world.url, 'session', 5);
    const connected = await connect(pooler.url, 1_000);
    try {
      const { rows } = await connected.db.raw<{ rows: unknown[] }>('show statement_timeout');
      assert.deepEqual(rows, [{ statement_timeout: '1s' }]);
      (await openMirror(pooler.url)).close();
    } finally {
      await connected.close();
      await pooler.stop();
    }
  });

  it('PgBouncer in any other mode is refused, with an error that names session mode', async () => {
    for (const [mode, poolSize] of [
      ['transaction', 5],
      ['transaction', 1],
      ['statement', 5],
    ] as const) {
      const pooler = await startPooler(program, world.url, mode, poolSize);
      try {
        const refusal = { name: 'OperatorError', advice: /session mode/ };
        await assert.rejects(connect(pooler.url, 1_000), refusal);
        await assert.rejects(openMirror(pooler.url), refusal);
      } finally {
        await pooler.stop();
      }
    }
  });
});
