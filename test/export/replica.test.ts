import assert from 'node:assert/strict';
import { MICROS_PER_SECOND, systemClock, toSeconds } from '../../src/platform/time/micros.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { runCommand } from '../support/programs/command.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { addTitleAt } from '../support/titles.js';

const DAY = 86_400n * MICROS_PER_SECOND;

describe('export of titles from a replica', () => {
  let primary: TestPostgres;
  let replica: TestReplica;

  before(async () => {
    primary = await startPostgres();
    replica = await startReplica(primary);
  });

  after(async () => {
    await replica.kill();
    await primary.stop();
  });

  it('has a position before everything that the replica lacks, even if it lags by days', async () => {
    const onPrimary = openDatabase({
      address: primary.url,
      applicationName: 'test',
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    try {
      const now = systemClock();
      await addTitleAt(onPrimary, 'old', now - 40n * DAY);
      await replica.caughtUp();
      await replica.pauseReplay();
      const missing = now - 3n * DAY;
      await addTitleAt(onPrimary, 'missing', missing);
      const { code, stderr } = await runCommand(['export', '-', '--kind', 'titles', '--format', 'csv', '--json'], {
        DATABASE_URL: replica.url,
      });
      assert.equal(code, 0, stderr);
      const { rows, follow_from: since } = JSON.parse(stderr) as { rows: number; follow_from: number };
      assert.equal(rows, 1);
      assert.ok(since < toSeconds(missing) && since > toSeconds(now - 30n * DAY), String(since));
    } finally {
      await onPrimary.destroy();
    }
  });
});
