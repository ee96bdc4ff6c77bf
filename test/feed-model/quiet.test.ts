import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { fromRfc3339, systemClock, toSeconds } from '../../src/platform/time/micros.js';
import { createClient } from '../../src/follower/client.js';
import { follow } from '../../src/follower/follow.js';
import { startService, type TestService } from '../support/service.js';
import { changesOf } from '../support/titles.js';
import { installClock, type ModelClock } from '../support/postgres/model-clock.js';
import { holdQuietClock } from './model/alterations.js';
import { Mirror, toMicros, type Violation } from './model/mirror.js';

const HOUR = 3_600_000_000n;
const DAYS = 60;
/** Hours that pass between two looks at what is due. */
const STEP = 6;

/** A follower that comes every so many hours. */
interface Visitor {
  readonly everyHours: number;
  readonly mirror: Mirror;
  since: number;
}

// Sixty days pass for the database (see installClock) and for the service, which is given the same clock.
describe('in a quiet catalogue, over sixty days, a follower', () => {
  let service: TestService;
  let clock: ModelClock;
  /** Microseconds that have passed in the test's time. */
  let passed: bigint;

  beforeEach(async () => {
    passed = 0n;
    service = await startService({ now: () => systemClock() + passed });
    clock = await installClock(service.db);
    await change(service.db, 'at-first');
  });

  afterEach(() => service.stop());

  async function change(on: Knex, svcId: string): Promise<void> {
    await on('titles').insert({ svc_id: svcId, media_type: 'movie', title: 'T' });
  }

  async function visit(visitor: Visitor): Promise<void> {
    try {
      visitor.since = await follow({
        readPage: createClient({ baseUrl: service.url, key: service.key }),
        since: visitor.since,
        once: true,
        intervalMs: 0,
        deliver: async (page, from) => visitor.mirror.page(page, from),
        save: async () => undefined,
        signal: new AbortController().signal,
      });
    } catch (error) {
      visitor.mirror.report('failed', `after ${passed / HOUR} hours: ${String(error)}`);
    }
  }

  /**
   * Lets sixty days pass.
   *
   * @param events - what happens after so many days
   * @returns what the followers found wrong
   */
  async function pass(
    everyHours: readonly number[],
    events: Readonly<Record<number, () => Promise<unknown>>> = {},
  ): Promise<readonly Violation[]> {
    const since = toSeconds(systemClock()) - 10;
    const visitors = everyHours.map((hours): Visitor => ({
      everyHours: hours,
      mirror: new Mirror(`every ${hours} h`, toMicros(since)),
      since,
    }));
    for (let hour = 0; hour <= DAYS * 24; hour += STEP) {
      passed = BigInt(hour) * HOUR;
      await clock.setOffset(passed);
      await events[hour / 24]?.();
      for (const visitor of visitors) if (hour % visitor.everyHours === 0) await visit(visitor);
    }
    for (const visitor of visitors) {
      await visit(visitor);
      await visitor.mirror.compare(service.db);
    }
    return visitors.flatMap(({ mirror }) => mirror.violations);
  }

  it('never falls out of the window, whether it comes every six hours or every fifteen days', async () => {
    assert.deepEqual(await pass([6, 24, 7 * 24, 14 * 24, 15 * 24]), []);
  });

  it('misses nothing of transactions that were open meanwhile', async () => {
    const early = await service.db.transaction();
    // Begun on the first day; it writes on the last.
    await early.raw('select 1');
    let holder: Knex.Transaction | undefined;
    let waiting: Promise<void> | undefined;
    const hold = async (svcId: string): Promise<void> => {
      holder = await service.db.transaction();
      await change(holder, svcId);
    };
    const violations = await pass([6, 24, 7 * 24], {
      // Written, and committed only after twelve days; another writer waits for it all the while.
      10: () => hold('held-from-10'),
      11: async () => {
        waiting = change(service.db, 'waiting-since-11');
      },
      22: async () => {
        await holder?.commit();
        await waiting;
      },
      // Longer than the age from which positions move up.
      30: () => hold('held-from-30'),
      47: () => holder?.commit() ?? Promise.resolve(),
      59: async () => {
        await change(early, 'begun-on-0');
        await early.commit();
      },
    });
    assert.deepEqual(violations, []);
    const stamps = await service.db('titles').orderBy('updated_at').pluck('svc_id');
    assert.deepEqual(stamps, ['at-first', 'held-from-10', 'waiting-since-11', 'held-from-30', 'begun-on-0']);
  });

  it('misses nothing that is committed while it is being answered', async () => {
    const [first = ''] = await service.db('titles').pluck<string[]>('updated_at');
    const writer = await service.db.transaction();
    await change(writer, 'held');
    // Old enough to be moved up, past what the writer has stamped.
    passed = 20n * 24n * HOUR;
    await clock.setOffset(passed);
    const gate = await holdQuietClock(service.db);
    const answer = service.get(`/api/v1/changes?since=${toSeconds(fromRfc3339(first))}`);
    await gate.reached();
    await writer.commit();
    await gate.open();
    const { data, meta } = changesOf(await answer);
    const rest = changesOf(await service.get(`/api/v1/changes?since=${meta.next_since}`));
    assert.deepEqual(
      [...data, ...rest.data].map(({ svc_id: id }) => id),
      ['held'],
    );
  });

  it('gets an error after it stayed away for longer than the window', async () => {
    const violations = await pass([31 * 24]);
    assert.deepEqual(
      violations.map(({ what }) => what),
      // On the 31st day, and, since it asks for the same again, at the end.
      ['failed', 'failed'],
    );
    assert.match(
      violations[0]?.where ?? '',
      /^every 744 h: after 744 hours: OperatorError: The position .* has left the window/,
    );
  });
});
