import assert from 'node:assert/strict';
import { pino } from 'pino';
import { lossLog } from '../../src/service/parts/jobs.js';
import { FailureLog } from '../../src/usage/failure-log.js';

describe('records of requests that had no room in memory', () => {
  it('are counted, and logged once with their number, without those that would not have been kept', () => {
    const at = Date.now();
    const lines: string[] = [];
    const report = lossLog(pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) }), 'missing');
    const failures = new FailureLog();
    const fail = (keys: number): void => {
      for (let keyId = 1; keyId <= keys; keyId += 1) {
        const kind = { developerId: 1, keyId, code: 'not_found', operation: '' } as const;
        const request = { requestId: 'r', method: 'GET', path: '/', durationMs: 1, status: 404, detail: '' };
        failures.add(kind, at, () => request);
      }
      report(failures.lost);
      report(failures.lost);
    };
    fail(9_999);
    assert.deepEqual(lines, []);
    fail(4);
    fail(12);
    // Of a kind, 20 are kept of an hour, and this one had three.
    for (let more = 0; more < 30; more += 1) fail(1);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as unknown),
      [3, 12, ...Array.from({ length: 17 }, () => 1)].map((requests) => ({ level: 50, requests, msg: 'missing' })),
    );
  });
});
