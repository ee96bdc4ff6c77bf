import assert from 'node:assert/strict';
import { toRfc3339 } from '../../../../src/platform/time/micros.js';
import { toMicros } from '../../../feed-model/model/mirror.js';
import type { Call, DeveloperChange, FaultRecord, HistoryEvent, KeyChange, MirrorStep, Title } from '../history.js';
import type { Check } from './check.js';
import { flatCheck } from './flat.js';
import { healingCheck } from './healing.js';
import { keysCheck } from './keys.js';
import { limitsCheck } from './limits.js';
import { mirrorsCheck } from './mirrors.js';

const call = (start: number, end: number, status: number, more: Partial<Call> = {}): Call => ({
  ...{ kind: 'call', key: 'svc_a', developer: 1, plan: 'unlimited', path: '/api/v1/me', status, start, end },
  ...more,
});

const key = (act: KeyChange['act'], start: number, outcome: KeyChange['outcome'] = 'applied'): KeyChange => {
  return { kind: 'key', act, key: 'svc_a', developer: 1, outcome, start, end: start + 10 };
};

const developer = (act: DeveloperChange['act'], start: number): DeveloperChange => {
  return { kind: 'developer', act, developer: 1, outcome: 'applied', start, end: start + 10 };
};

const mirror = (step: MirrorStep['step']): MirrorStep => ({ kind: 'mirror', mirror: 'm', step, start: 0, end: 0 });

const title = (id: string, second: number): Title => {
  const stamp = toRfc3339(toMicros(second));
  return { svc_id: id, media_type: 'movie', title: 'T', updated_at: stamp, has_bundles: false };
};

const receive = (...entries: Title[]): MirrorStep => mirror({ did: 'receive', entries });
const catalogue = (...titles: Title[]): HistoryEvent => ({ kind: 'catalogue', titles, start: 0, end: 0 });
const commit = ({ svc_id: id, updated_at: stamp }: Title): HistoryEvent => {
  return { kind: 'commit', titles: [[id, stamp]], start: 0, end: 1 };
};

const BEGIN = mirror({ did: 'begin', since: 5 });
const [A, B, NEW_A] = [title('a', 10), title('b', 11), title('a', 12)] as const;

const PLAN: HistoryEvent = { kind: 'plan', plan: 'limited', perMinute: 2, start: 0, end: 0 };

/** A served call of a key with a limit. @param resetSeconds - until the end of its minute */
const counted = (time: number, resetSeconds: number, status = 200): Call =>
  call(time, time + 1, status, { plan: 'limited', resetSeconds });

const change = (part: string, state: 'lost' | 'back', time: number): HistoryEvent => {
  return { kind: 'change', pid: 7, part, state, start: time, end: time };
};

const FAULT: FaultRecord = {
  ...{ kind: 'fault', name: 'PostgreSQL restarts', allows: ['unavailable'], boundMs: 5_000, forgetsCounts: false },
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
    mirrorsCheck,
    // It was killed before it saved the position after B.
    [
      BEGIN,
      commit(A),
      receive(A),
      commit(B),
      receive(B),
      mirror({ did: 'resume', since: 10 }),
      receive(B, NEW_A),
      catalogue(NEW_A, B),
    ],
    [
      ['an entry that is committed late', [BEGIN, receive(B), catalogue(A, B)], /lacks the newest version .* a of/],
      ['an old version that stays', [BEGIN, receive(A, B), catalogue(NEW_A, B)], /lacks .* has that of/],
      ['a last page that repeats', [BEGIN, receive(A), receive(A), catalogue(A)], /came twice/],
      ['a feed that is not in order', [BEGIN, receive(B), receive(A), catalogue(A, B)], /after a later one/],
      [
        'a position that is saved before its entries are delivered',
        [BEGIN, receive(A), mirror({ did: 'resume', since: 11 }), catalogue(A, B)],
        /A position is wrong/,
      ],
      ['an entry that was never committed', [BEGIN, receive(A, B), catalogue(A)], /the catalogue lacks/],
      ['a reported commit that a restart loses', [BEGIN, commit(A), catalogue()], /lost a committed version of a/],
      ['a follower that gives up', [BEGIN, mirror({ did: 'fail', why: 'exit code 1' })], /exit code 1/],
    ],
  ],
  [
    limitsCheck,
    [
      ...[PLAN, counted(0, 60), counted(30_000, 31), counted(61_000, 60)],
      // A process counts by itself while Redis is down.
      ...[change('redis', 'lost', 70_000), counted(71_000, 60), counted(72_000, 59)],
      ...[change('redis', 'back', 75_000), counted(76_000, 45)],
    ],
    [
      [
        'two servers that count apart',
        [PLAN, counted(0, 60), counted(1, 60), counted(2, 60)],
        /got 3 calls in the minute/,
      ],
      ['304 that is not charged', [PLAN, counted(0, 60), counted(1, 60, 304), counted(2, 60)], /got 3 calls/],
      ['no state of the limits', [PLAN, call(0, 1, 200, { plan: 'limited' })], /was served without its limits/],
      ['a counter that ends early', [PLAN, counted(0, 60), counted(1, 60), counted(20_000, 60)], /a new minute before/],
      [
        'a process that begins anew with each request while Redis is down',
        [PLAN, change('redis', 'lost', 10), ...[0, 1, 20, 21, 22].map((time) => counted(time, 60))],
        /got 5 calls .* 1 counts begun anew/,
      ],
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
