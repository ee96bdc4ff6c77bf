import assert from 'node:assert/strict';
import type { Call, DeveloperChange, FaultRecord, HistoryEvent, KeyChange } from '../history.js';
import type { Check } from './check.js';
import { flatCheck } from './flat.js';
import { healingCheck } from './healing.js';
import { keysCheck } from './keys.js';

const call = (start: number, end: number, status: number, more: Partial<Call> = {}): Call => ({
  ...{ kind: 'call', key: 'svc_a', developer: 1, path: '/api/v1/me', status, start, end },
  ...more,
});

const key = (act: KeyChange['act'], start: number, outcome: KeyChange['outcome'] = 'applied'): KeyChange => {
  return { kind: 'key', act, key: 'svc_a', developer: 1, outcome, start, end: start + 10 };
};

const developer = (act: DeveloperChange['act'], start: number): DeveloperChange => {
  return { kind: 'developer', act, developer: 1, outcome: 'applied', start, end: start + 10 };
};

const change = (part: string, state: 'lost' | 'back', time: number): HistoryEvent => {
  return { kind: 'change', pid: 7, part, state, start: time, end: time };
};

const FAULT: FaultRecord = {
  ...{ kind: 'fault', name: 'PostgreSQL restarts', allows: ['unavailable'], boundMs: 5_000 },
  ...{ start: 10_000, end: 12_000 },
};

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
      key('create', 0),
      call(11, 12, 200),
      // Both answers are right while a change is being made.
      call(19, 40, 200),
      key('end', 20, 'unknown'),
      call(31, 32, 401),
      call(33, 34, 200),
      key('end', 40),
      call(51, 52, 401),
    ],
    [
      ['a cached caller that outlives its key', [key('create', 0), key('end', 20), call(31, 32, 200)], /had ended/],
      ['304 before the key is checked', [key('create', 0), key('end', 20), call(31, 32, 304)], /was accepted \(304\)/],
      ['a suspension that is ignored', [key('create', 0), developer('suspend', 20), call(31, 32, 200)], /was accepted/],
      [
        'a reinstatement that only some servers apply',
        [key('create', 0), developer('suspend', 20), developer('reinstate', 40), call(51, 52, 401)],
        /was refused \(401\), but its key svc_a was active/,
      ],
      ['an outage taken for a wrong key', [key('create', 0), FAULT, call(10_500, 10_600, 401)], /was refused/],
    ],
  ],
  [
    healingCheck,
    [
      ...[call(9_900, 10_100, 503), FAULT, change('database', 'lost', 10_100), change('database', 'back', 12_500)],
      ...[call(13_000, 13_900, 503), call(14_000, 14_001, 200), call(90_000, 90_001, 200)],
    ],
    [
      [
        'a pool that keeps dead connections',
        [FAULT, ...[17_100, 18_000, 19_000, 20_000].map((time) => call(time, time + 1, 503))],
        /at 17\.10 s got 503 outside of faults/,
      ],
      ['a server error during an outage', [FAULT, call(10_500, 10_501, 500)], /at 10\.50 s got 500\./],
      ['a connection that is cut', [FAULT, call(10_500, 10_501, 0)], /got no whole answer outside of faults/],
      [
        'a dependency that is not tried again',
        [FAULT, change('announcements', 'lost', 10_100), call(20_000, 20_001, 200)],
        /lost announcements at 10\.10 s and did not have it back by 17\.00 s \(PostgreSQL restarts\)/,
      ],
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
