import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { eventually } from '../support/eventually.js';
import { startService } from '../support/service.js';
import { addTitles } from '../support/titles.js';
import { installClock } from '../support/postgres/model-clock.js';
import { dropLock, stampWithClockAlone, stampWithTransactionStart } from './model/alterations.js';
import { OperatorError } from '../../src/errors.js';
import { createClient } from '../../src/follower/client.js';
import { follow } from '../../src/follower/follow.js';
import { Mirror, toMicros, type Violation } from './model/mirror.js';
import type { PlanSize } from './model/plan.js';
import { SEED, withSeed } from './model/random.js';
import { runModel } from './model/run.js';

const SIZE: PlanSize = { writers: 8, transactions: 10, longestHoldMs: 100, bulkRows: 1_000, cuts: false };

/** The machine decides how writers meet, so now and then a run of random writers shows nothing. */
const MOST_RUNS = 4;

/** Two writers and a follower, stepped by hand. */
interface Stage {
  readonly db: Knex;
  /** The follower sees all that is waiting. */
  readonly see: () => Promise<void>;
  /** Changes a title. */
  readonly change: (on: Knex, svcId: string) => Promise<void>;
  /** Changes a title, and returns when that is done or waits for another writer. @returns the change's own end */
  readonly tryChange: (svcId: string) => Promise<{ ended: Promise<void> }>;
  /** Moves the clock. */
  readonly advance: (seconds: number) => Promise<void>;
}

type Interleaving = (stage: Stage) => Promise<void>;

/** A writes first and commits last. */
const commitsLate: Interleaving = async ({ db, see, change, tryChange }) => {
  const a = await db.transaction();
  await change(a, 'a');
  const b = await tryChange('b');
  await see();
  await a.commit();
  await b.ended;
};

/** A begins first and writes last. */
const writesLate: Interleaving = async ({ db, see, change }) => {
  const a = await db.transaction();
  await a.raw('select 1');
  await change(db, 'b');
  await see();
  await change(a, 'a');
  await a.commit();
};

/** A and B write one after the other, and the clock has stepped back in between. */
const clockStepsBack: Interleaving = async ({ db, see, change, advance }) => {
  await change(db, 'a');
  await see();
  await advance(-3);
  await change(db, 'b');
};

/** The clock does not tick while more than a page is written. */
const clockStandsStill: Interleaving = async ({ db }) => {
  await addTitles(db, 450);
};

/** Plays an interleaving on a schema that has been altered. @returns what the follower finds wrong in the end */
async function play(interleaving: Interleaving, alter: (db: Knex) => Promise<void>): Promise<readonly Violation[]> {
  const service = await startService();
  try {
    const { db } = service;
    const clock = await installClock(db, interleaving === clockStandsStill ? 'second' : 'microseconds');
    await clock.setOffset(-60_000_000n);
    await alter(db);
    await db('titles').insert(['a', 'b'].map((id) => ({ svc_id: id, media_type: 'movie', title: 'At first' })));
    let since = Math.floor(Date.now() / 1000) - 120;
    const mirror = new Mirror('follower', toMicros(since));
    const see = async (): Promise<void> => {
      since = await follow({
        readPage: createClient({ baseUrl: service.url, key: service.key }),
        since,
        once: true,
        intervalMs: 0,
        deliver: async (page, from) => mirror.page(page, from),
        save: async () => undefined,
        signal: new AbortController().signal,
      }).catch((error: unknown) => {
        // Ties at a whole second come again and again.
        if (error instanceof OperatorError) return since;
        throw error;
      });
    };
    const change = async (on: Knex, svcId: string): Promise<void> => {
      await on('titles').where({ svc_id: svcId }).update({ title: 'Changed' });
    };
    await interleaving({
      db,
      see,
      change,
      async tryChange(svcId) {
        let done = false;
        const ended = change(db, svcId).then(() => void (done = true));
        await eventually('the change is made, or waits', async () => {
          const waiting = await db('pg_locks').where({ granted: false, locktype: 'advisory' });
          return done || waiting.length > 0;
        });
        return { ended };
      },
      advance: (seconds) => clock.advance(BigInt(seconds) * 1_000_000n),
    });
    await see();
    await mirror.compare(db);
    return mirror.violations;
  } finally {
    await service.stop();
  }
}

/** Lets random writers loose on a schema that has been altered. @returns what the followers find wrong in the end */
async function violationsAmongWriters(
  alter: (db: Knex) => Promise<void>,
  precision: Parameters<typeof installClock>[1],
  seed: number,
): Promise<readonly Violation[]> {
  const service = await startService();
  try {
    await installClock(service.db, precision);
    await alter(service.db);
    return (await runModel(service, { seed, size: SIZE })).violations;
  } finally {
    await service.stop();
  }
}

async function sound(): Promise<void> {
  // Nothing is altered.
}

describe('the model finds what is wrong with a feed', () => {
  for (const [what, alter, interleaving, finds, where] of [
    ['without the lock', dropLock, commitsLate, 'lost', /^follower: a of/],
    ['stamped with the start of the transaction', stampWithTransactionStart, writesLate, 'lost', /^follower: a of/],
    ['stamped by the clock alone, when it steps back', stampWithClockAlone, clockStepsBack, 'lost', /^follower: b of/],
    [
      'stamped by the clock alone, when it stands still',
      stampWithClockAlone,
      clockStandsStill,
      'tie',
      /^follower: title-0002 at (\S+) after \1$/,
    ],
  ] as const) {
    it(`${what}: step by step`, async () => {
      const violations = await play(interleaving, alter);
      assert.ok(
        violations.some((one) => one.what === finds && where.test(one.where)),
        JSON.stringify(violations),
      );
      assert.deepEqual(await play(interleaving, sound), [], 'the sound schema');
    });
  }

  for (const [what, alter, precision, finds] of [
    ['without the lock', dropLock, 'microseconds', 'lost'],
    ['stamped with the start of the transaction', stampWithTransactionStart, 'microseconds', 'lost'],
    ['stamped by the clock alone, which ticks in seconds', stampWithClockAlone, 'second', 'tie'],
  ] as const) {
    it(withSeed(`${what}: among random writers`), async () => {
      const found: Violation[] = [];
      const isFound = (): boolean => found.some((one) => one.what === finds);
      for (let run = 0; run < MOST_RUNS && !isFound(); run += 1) {
        found.push(...(await violationsAmongWriters(alter, precision, SEED + run)));
      }
      assert.ok(isFound(), JSON.stringify(found));
    });
  }
});
