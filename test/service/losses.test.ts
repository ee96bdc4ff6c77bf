import assert from 'node:assert/strict';
import { pino } from 'pino';
import { lossLog } from '../../src/service/parts/jobs.js';
import { FailureLog } from '../../src/usage/failure-log.js';

describe('records of requests that had no room in memory', () => {
  it('are counted, and logged once with their number', () => {
    const lines: string[] = [];
    const report = lossLog(pino({ base: null, timestamp: false }, { write: (line) => lines.push(line) }), 'missing');
    const failures = new FailureLog();
    const fail = (times: number): void => {
      for (let keyId = 1; keyId <= times; keyId += 1) {
        const kind = { developerId: 1, keyId, code: 'not_found', operation: '' } as const;
        const request = { requestId: 'r', method: 'GET', path: '/', durationMs: 1, status: 404, detail: '' };
        failures.add(kind, Date.now(), () => request);
      }
      report(failures.lost);
      report(failures.lost);
    };
    fail(9_999);
    assert.deepEqual(lines, []);
    fail(4);
    fail(12);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as unknown),
      [3, 12].map((requests) => ({ level: 50, requests, msg: 'missing' })),
    );
  });
});
