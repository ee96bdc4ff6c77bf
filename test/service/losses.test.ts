import assert from 'node:assert/strict';
import { pino } from 'pino';
import { savingJob } from '../../src/service/parts/jobs.js';
import { FailureLog } from '../../src/usage/failure-log.js';
import { testWorld } from '../support/world.js';

describe('records of requests that had no room in memory', () => {
  const world = testWorld();

  it('are counted and logged once with their number, if they would have been kept', async () => {
    const at = Date.now();
    const lines: string[] = [];
    const log = pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) });
    const failures = new FailureLog();
    // Nothing leaves it.
    const full = { save: () => Promise.resolve(false), lost: 0 };
    const { step } = savingJob('save', full, log, 'a record');
    const fail = async (keys: number): Promise<void> => {
      for (let keyId = 1; keyId <= keys; keyId += 1) {
        const kind = { developerId: 1, keyId, code: 'not_found', operation: '' } as const;
        const request = { requestId: 'r', method: 'GET', path: '/', durationMs: 1, status: 404, detail: '' };
        failures.add(kind, at, () => request);
      }
      full.lost = failures.lost;
      for (let round = 0; round < 2; round += 1) await step(world.db, 1, new AbortController().signal);
    };
    await fail(9_999);
    assert.deepEqual(lines, []);
    await fail(4);
    await fail(12);
    // Of a kind, 20 are kept of an hour, and this one had three.
    for (let more = 0; more < 30; more += 1) await fail(1);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as unknown),
      [3, 12, ...Array.from({ length: 17 }, () => 1)].map((requests) => ({
        level: 50,
        requests,
        msg: 'requests are missing in a record: too many waited',
      })),
    );
  });
});
