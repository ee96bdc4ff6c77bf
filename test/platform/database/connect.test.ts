import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { connectDatabase } from '../../../src/platform/database/connect.js';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database.js';
import { eventually } from '../../support/eventually.js';
import { TcpProxy } from '../../support/proxies/tcp-proxy.js';

/** Bound on a connection from the pool and on a statement, in milliseconds. */
const TIMEOUT_MS = 50;

describe('the connection to a database that is slow at the start', () => {
  let database: OpenTestDatabase;
  let network: TcpProxy;

  before(async () => {
    database = await openTestDatabase();
    network = await TcpProxy.start(database.url);
  });

  after(async () => {
    await network.stop();
    await database.close();
  });

  for (const migrate of [false, true]) {
    it(`is made, whatever the bounds of later requests are, ${migrate ? 'with' : 'without'} --migrate`, async () => {
      network.delayMs = 2 * TIMEOUT_MS;
      const connected = await connectDatabase({
        databaseUrl: network.url,
        dataDir: undefined,
        packageRoot: fileURLToPath(new URL('../../../', import.meta.url)),
        pid: process.pid,
        applicationName: 'catalog test',
        poolSize: 1,
        acquireTimeoutMs: TIMEOUT_MS,
        statementTimeoutMs: TIMEOUT_MS,
        migrate,
      });
      try {
        await assert.rejects(connected.db.raw('select 1'), /timeout/i);
        network.delayMs = 0;
        await eventually('requests have an answer', () => connected.db.raw('select 1'));
      } finally {
        await connected.close();
      }
    });
  }
});
