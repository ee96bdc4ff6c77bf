import assert from 'node:assert/strict';
import { temporaryFolder } from '../support/temporary-folder.js';
import { readHistory, type HistoryEvent } from './history.js';
import { renderReport } from './report/report.js';
import { soak } from './soak.js';

/** One of each kind: a process, a dependency and a client. */
const FAULTS = ['a server is killed', 'Redis is killed', 'the followers are killed'];

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const TIMEOUT_MS = 120_000;

describe('a short soak', function () {
  this.timeout(TIMEOUT_MS);

  it('every promise is kept in the recorded history of a run with faults', async () => {
    const result = await soak({
      seconds: 9,
      faultSeconds: 3,
      lastsSeconds: 0.7,
      faults: FAULTS,
      rate: 25,
      seed: SEED,
      folder: await temporaryFolder(),
      isBalanced: false,
      pace: 0.7,
      say: () => undefined,
    });
    const { history, verdicts } = result;
    assert.deepEqual(
      verdicts.flatMap(({ violations }) => violations),
      [],
    );
    const page = await renderReport(result);
    for (const fault of FAULTS) assert.ok(page.includes(`<td>${fault}</td>`), fault);
    const counts: Partial<Record<HistoryEvent['kind'], number>> = {};
    for (const { kind } of readHistory(history)) counts[kind] = (counts[kind] ?? 0) + 1;
    // A run in which little happens would prove little.
    for (const [kind, least] of [
      ['call', 30],
      ['view', 1],
      ['commit', 3],
      ['key', 5],
      ['mirror', 3],
      ['fault', FAULTS.length],
      ['sample', 1],
    ] as const) {
      assert.ok((counts[kind] ?? 0) >= least, `${kind}: ${counts[kind]}`);
    }
  });
});
