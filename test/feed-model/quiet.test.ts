import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { fromRfc3339, systemClock, toSeconds } from '../../src/platform/time/micros.js';
import { changesOf } from '../support/titles.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { testWorld } from '../support/world.js';
import { installClock, type ModelClock } from '../support/postgres/model-clock.js';
import { followOnce } from './model/follower.js';
import { Mirror, toMicros, type Violation } from './model/mirror.js';

const HOUR = 3_600_000_000n;
const DAYS = 60;
/** The hours of one step of the test's time. */
const STEP = 12;

/** A place where the service waits until the test opens it. */
interface Gate {
  /** Resolves when the service waits there. */
  reached(): Promise<unknown>;
  open(): Promise<void>;
}

/** Makes each call of the safe time's function wait before it reads anything. The function itself is the real one. */
async function holdSafeTime(db: Knex): Promise<Gate> {
  await db.raw(`
    alter function public.catalog_quiet_clock() rename to real_quiet_clock;
    create function public.catalog_quiet_clock() returns timestamptz language plpgsql volatile as $$
    begin
      perform pg_advisory_xact_lock_shared(1, 2);
      return public.real_quiet_clock();
    end
    $$;
  `);
  const holder = await db.transaction();
  await holder.raw('select pg_advisory_xact_lock(1, 2)');
  return {
    reached: () => untilWaiting('the service waits for the safe time', db),
    open: () => holder.commit().then(),
  };
}

/** A follower that polls at long intervals. */
interface Visitor {
  readonly everyHours: number;
  readonly mirror: Mirror;
  since: number;
}

// The database (see installClock) and the service share a clock that the test moves.
describe('a follower of a quiet catalogue, over sixty days,', () => {
  /** Microseconds since the beginning, in the test's time. */
  let passed = 0n;
  const world = testWorld({ service: { now: () => systemClock() + passed }, each: true });
  let clock: ModelClock;

  beforeEach(async () => {
    passed = 0n;
    clock = await installClock(world.service.db);
    await change(world.service.db, 'at-first');
  });

  async function change(on: Knex, svcId: string): Promise<void> {
    await on('titles').insert({ svc_id: svcId, media_type: 'movie', title: 'T' });
  }

  async function visit(visitor: Visitor): Promise<void> {
    try {
      visitor.since = await followOnce(world.service, visitor.mirror, visitor.since);
    } catch (error) {
      visitor.mirror.report('failed', `after ${passed / HOUR} hours: ${String(error)}`);
    }
  }

  /**
   * Lets sixty days pass.
   *
   * @param everyHours - the interval of each follower
   * @param events - actions, each with its day
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
      const due = visitors.filter(({ everyHours: hours }) => hour % hours === 0);
      const event = events[hour / 24];
      if (due.length === 0 && !event && hour < DAYS * 24) continue;
      passed = BigInt(hour) * HOUR;
      await clock.setOffset(passed);
      await event?.();
      for (const visitor of due) await visit(visitor);
    }
    for (const visitor of visitors) {
      await visit(visitor);
      await visitor.mirror.compare(world.service.db);
    }
    return visitors.flatMap(({ mirror }) => mirror.violations);
  }

  it('never leaves the window, whether it polls every twelve hours or every fifteen days', async () => {
    assert.deepEqual(await pass([12, 7 * 24, 15 * 24]), []);
  });

  it('misses no entry of a transaction that was open for days', async () => {
    const early = await world.service.db.transaction();
    // Begins on the first day and writes on the last.
    await early.raw('select 1');
    let holder: Knex.Transaction | undefined;
    let waiting: Promise<void> | undefined;
    const hold = async (svcId: string): Promise<void> => {
      holder = await world.service.db.transaction();
      await change(holder, svcId);
    };
    const violations = await pass([24, 7 * 24], {
      // Commits twelve days after its write; another writer waits for it.
      10: () => hold('held-from-10'),
      11: async () => {
        waiting = change(world.service.db, 'waiting-since-11');
      },
      22: async () => {
        await holder?.commit();
        await waiting;
      },
      // Longer than the age at which positions move up.
      30: () => hold('held-from-30'),
      47: () => holder?.commit() ?? Promise.resolve(),
      59: async () => {
        await change(early, 'begun-on-0');
        await early.commit();
      },
    });
    assert.deepEqual(violations, []);
    const stamps = await world.service.db('titles').orderBy('updated_at').pluck('svc_id');
    assert.deepEqual(stamps, ['at-first', 'held-from-10', 'waiting-since-11', 'held-from-30', 'begun-on-0']);
  });

  it('misses no entry that is committed during its request', async () => {
    const [first = ''] = await world.service.db('titles').pluck<string[]>('updated_at');
    const writer = await world.service.db.transaction();
    await change(writer, 'held');
    // Old enough to be moved up, past the writer's stamps.
    passed = 20n * 24n * HOUR;
    await clock.setOffset(passed);
    const gate = await holdSafeTime(world.service.db);
    const answer = world.service.get(`/api/v1/changes?since=${toSeconds(fromRfc3339(first))}`);
    await gate.reached();
    await writer.commit();
    await gate.open();
    const { data, meta } = changesOf(await answer);
    const rest = changesOf(await world.service.get(`/api/v1/changes?since=${meta.next_since}`));
    assert.deepEqual(
      [...data, ...rest.data].map(({ svc_id: id }) => id),
      ['held'],
    );
  });
});
