import assert from 'node:assert/strict';
import { MICROS_PER_SECOND, systemClock, toSeconds } from '../../src/platform/time/micros.js';
import { runCommand } from '../support/programs/command.js';
import { startReplica } from '../support/postgres/replica.js';
import { addTitleAt } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const DAY = 86_400n * MICROS_PER_SECOND;

describe('an export of titles from a replica', () => {
  const world = testWorld({ ownServer: true });

  it('has a position before every entry that the replica lacks, even if it lags by days', async () => {
    const replica = await startReplica(world.postgres);
    world.defer(() => replica.kill());
    const now = systemClock();
    await addTitleAt(world.db, 'old', now - 40n * DAY);
    await replica.caughtUp();
    await replica.pauseReplay();
    const missing = now - 3n * DAY;
    await addTitleAt(world.db, 'missing', missing);
    const { code, stderr } = await runCommand(['export', '--kind', 'titles', '--json'], {
      DATABASE_URL: replica.url,
    });
    assert.equal(code, 0, stderr);
    const { rows, follow_from: since } = JSON.parse(stderr) as { rows: number; follow_from: number };
    assert.equal(rows, 1);
    assert.ok(since < toSeconds(missing) && since > toSeconds(now - 30n * DAY), String(since));
  });
});
