import assert from 'node:assert/strict';
import { MICROS_PER_SECOND, systemClock } from '../../src/catalog/timestamps.js';
import { openDatabase } from '../../src/platform/database.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { startReplica, type TestReplica } from '../support/replica.js';
import { addTitleAt } from '../support/titles.js';
import { exportText } from './exporting.js';

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

  function open(address: string): ReturnType<typeof openDatabase> {
    return openDatabase({
      address,
      applicationName: 'test',
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
  }

  it('that lags for days gives a position before all that the replica does not have', async () => {
    const [onPrimary, onReplica] = [open(primary.url), open(replica.url)];
    try {
      const now = systemClock();
      await addTitleAt(onPrimary, 'old', now - 40n * DAY);
      await replica.caughtUp();
      await replica.pauseReplay();
      const missing = now - 3n * DAY;
      await addTitleAt(onPrimary, 'missing', missing);
      const { rows, position = 0n } = await exportText(onReplica);
      assert.equal(rows, 1);
      assert.ok(position < missing && position > now - 30n * DAY, String(position));
    } finally {
      await onReplica.destroy();
      await onPrimary.destroy();
    }
  });
});
