import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { toRfc3339 } from '../../src/platform/time/micros.js';
import { eventually } from '../support/eventually.js';
import { installClock } from '../support/postgres/model-clock.js';
import type { TestService } from '../support/service.js';
import { addTitles, emptyCatalogue, waitingWriters } from '../support/titles.js';
import { testWorld } from '../support/world.js';
import { followOnce } from './model/follower.js';
import { Mirror, toMicros, type Violation } from './model/mirror.js';

/** Two writers and a follower, controlled step by step. */
interface Stage {
  readonly db: Knex;
  /** Follows until nothing is waiting. */
  readonly see: () => Promise<void>;
  readonly change: (on: Knex, svcId: string) => Promise<void>;
  /** Returns when the change is made or waits for another writer. */
  readonly tryChange: (svcId: string) => Promise<{ ended: Promise<void> }>;
  /** Moves the database's clock. */
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

/** A and B write one after the other; in between the clock steps back. */
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

/** Plays an interleaving. @returns the violations that the follower found */
async function play(service: TestService, interleaving: Interleaving): Promise<readonly Violation[]> {
  const { db } = service;
  await emptyCatalogue(db);
  await db.raw('drop schema if exists model cascade');
  const clock = await installClock(db, interleaving === clockStandsStill ? 'second' : 'microseconds');
  await clock.setOffset(-60_000_000n);
  await db('titles').insert(['a', 'b'].map((id) => ({ svc_id: id, media_type: 'movie', title: 'At first' })));
  let since = Math.floor(Date.now() / 1000) - 120;
  const mirror = new Mirror('follower', toMicros(since));
  const see = async (): Promise<void> => {
    since = await followOnce(service, mirror, since);
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
      await eventually('the change is made or waits', async () => done || (await waitingWriters(db)) > 0);
      return { ended };
    },
    advance: (seconds) => clock.advance(BigInt(seconds) * 1_000_000n),
  });
  await see();
  await mirror.compare(db);
  return mirror.violations;
}

const entry = (second: number) => ({
  svc_id: `t${second}`,
  media_type: 'movie' as const,
  title: 'T',
  updated_at: toRfc3339(toMicros(second)),
  has_bundles: false,
});

it('the checks of a mirror find each kind of wrong page', () => {
  for (const [what, seconds, meta, kind] of [
    ['entries that go backwards', [12, 11], {}, 'backwards'],
    ['too many entries', Array.from({ length: 201 }, (_, i) => 11 + i), { next_since: 211 }, 'page'],
    ['more announced by a short page', [11], { has_more: true, next_since: 11 }, 'page'],
    ['an entry at the requested position', [10, 11], {}, 'page'],
    ['a position before the requested one', [], { next_since: 9 }, 'position'],
    ['a position before the last entry', [11, 12], { next_since: 11 }, 'position'],
  ] as const) {
    const mirror = new Mirror('mirror', toMicros(5));
    mirror.page({ data: seconds.map(entry), meta: { has_more: false, next_since: 12, ...meta } }, 10);
    assert.deepEqual([...new Set(mirror.violations.map((one) => one.what))], [kind], what);
  }
});

describe('a follower among writers', () => {
  const world = testWorld({ service: true });

  for (const [what, interleaving] of Object.entries({
    'writes first and commits last': commitsLate,
    'begins first and writes last': writesLate,
    'writes before the clock steps back': clockStepsBack,
    'writes more than a page while the clock stands still': clockStandsStill,
  })) {
    it(`a follower misses no entry and gets none twice if a writer ${what}`, async () => {
      assert.deepEqual(await play(world.service, interleaving), []);
    });
  }
});
