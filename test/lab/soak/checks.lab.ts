import assert from 'node:assert/strict';
import { flatCheck, healingCheck, keysCheck, type Check } from './checks.js';
import type { HistoryEvent } from './history.js';

const call = (start: number, end: number, status: number): HistoryEvent => {
  return { kind: 'call', path: '/api/v1/me', status, subjects: ['svc_a', 'developer 1'], start, end };
};

const change = (subject: string, isRefused: boolean, start: number, isApplied = true): HistoryEvent => {
  return { kind: 'change', subject, isRefused, isApplied, start, end: start + 10 };
};

const CREATED = [change('svc_a', false, 0), change('developer 1', false, 0)];
const REVOKED = [...CREATED, change('svc_a', true, 20)];
const SUSPENDED = [...CREATED, change('developer 1', true, 20)];

const fault = (isHealed: boolean): HistoryEvent => ({
  ...{ kind: 'fault', name: 'PostgreSQL restarts', allows: ['unavailable'], boundMs: 5_000, isHealed },
  ...{ start: 10_000, end: 12_000 },
});

/** Half an hour of samples. */
const samples = (figure: string, value: (minute: number) => number): HistoryEvent[] =>
  Array.from({ length: 180 }, (_, i) => {
    const at = { start: i * 10_000, end: i * 10_000 };
    return { kind: 'sample', subject: 'server', figures: { [figure]: value(i / 6) }, ...at };
  });

/** Something that has gone wrong in a service like this one, the history that it leaves, and what the check says. */
type Bug = readonly [what: string, history: readonly HistoryEvent[], says: RegExp];

const TABLE: readonly (readonly [Check, fine: readonly HistoryEvent[], bugs: readonly Bug[]])[] = [
  [
    keysCheck,
    [
      ...CREATED,
      call(11, 12, 200),
      // Both answers are right while a change is being made.
      call(19, 40, 200),
      change('svc_a', true, 20, false),
      call(31, 32, 401),
      call(33, 34, 200),
      change('svc_a', true, 40),
      call(51, 52, 401),
    ],
    [
      ['a cached caller that outlives its key', [...REVOKED, call(31, 32, 200)], /had ended/],
      ['304 before the key is checked', [...REVOKED, call(31, 32, 304)], /was accepted \(304\)/],
      ['a suspension that is ignored', [...SUSPENDED, call(31, 32, 200)], /was accepted/],
      [
        'a reinstatement that only some servers apply',
        [...SUSPENDED, change('developer 1', false, 40), call(51, 52, 401)],
        /was refused \(401\), but its key svc_a was active/,
      ],
      ['an outage taken for a wrong key', [...CREATED, fault(true), call(10_500, 10_600, 401)], /was refused/],
    ],
  ],
  [
    healingCheck,
    [call(9_900, 10_100, 503), fault(true), call(13_000, 13_900, 503), call(14_000, 14_001, 200)],
    [
      [
        'a pool that keeps dead connections',
        [fault(true), ...[17_100, 18_000, 19_000, 20_000].map((time) => call(time, time + 1, 503))],
        /at 17\.10 s got 503 outside of faults/,
      ],
      ['a server error during an outage', [fault(true), call(10_500, 10_501, 500)], /at 10\.50 s got 500\./],
      ['a connection that is cut', [fault(true), call(10_500, 10_501, 0)], /got no whole answer outside of faults/],
      ['a dependency that is not tried again', [fault(false)], /not ready in time after PostgreSQL restarts/],
    ],
  ],
  [
    flatCheck,
    [
      ...samples('memory, MiB', (minute) => (minute < 2 ? 60 + 20 * minute : 100 + (minute % 5))),
      ...samples('descriptors', (minute) => (minute > 10 && minute < 12 ? 90 : 40)),
    ],
    [
      ['a record kept of each request', samples('memory, MiB', (minute) => 100 + minute), /memory, MiB of server grew/],
      ['a socket left open after each failure', samples('descriptors', (minute) => 40 + minute), /descriptors/],
      ['a pool that grows with each loss', samples('connections', (minute) => 10 + minute / 4), /connections/],
    ],
  ],
];

describe('the checks of a recorded history', () => {
  for (const [check, fine, bugs] of TABLE) {
    it(`what breaks a promise is found in a history, and nothing in a correct one: ${check.promise}`, () => {
      assert.deepEqual(check.judge(fine).violations, []);
      for (const [what, history, says] of bugs) {
        const { violations } = check.judge(history);
        assert.ok(
          violations.some((violation) => says.test(violation)),
          `${what}: ${JSON.stringify(violations)}`,
        );
      }
    });
  }
});
