import assert from 'node:assert/strict';
import { verifyCounts } from '../../src/catalog/counts.js';
import { createSyntheticTitles } from '../../src/catalog/synthetic.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

describe('synthetic titles', () => {
  let database: OpenTestDatabase;
  let other: OpenTestDatabase;

  beforeEach(async () => {
    [database, other] = await Promise.all([openTestDatabase(), openTestDatabase()]);
  });

  afterEach(() => Promise.all([database.close(), other.close()]));

  /** In the order of the feed, without the stamps. */
  function titlesOf({ db }: OpenTestDatabase): Promise<unknown[]> {
    return db('titles')
      .select('svc_id', 'media_type', 'title', 'has_bundles', 'available_in_library')
      .orderBy('updated_at')
      .then();
  }

  async function assertCounted({ db }: OpenTestDatabase, titles: number): Promise<void> {
    const { counts, mismatches } = await verifyCounts(db);
    assert.deepEqual([counts.titles, mismatches], [titles, []]);
  }

  it('are the same for the same seed, whether made at once or in two runs', async () => {
    assert.deepEqual(await createSyntheticTitles(database.db, { titles: 2_500, seed: 7 }), {
      created: 2_500,
      titles: 2_500,
    });
    await createSyntheticTitles(other.db, { titles: 700, seed: 7 });
    assert.deepEqual(await createSyntheticTitles(other.db, { titles: 2_500, seed: 7 }), {
      created: 1_800,
      titles: 2_500,
    });
    const titles = await titlesOf(database);
    assert.equal(titles.length, 2_500);
    assert.deepEqual(titles[0], {
      svc_id: 'synthetic-7-000000000',
      media_type: 'series',
      title: 'Quiet Harbour',
      has_bundles: true,
      available_in_library: false,
    });
    assert.deepEqual(await titlesOf(other), titles);
    await assertCounted(database, 2_500);
    assert.deepEqual(await createSyntheticTitles(database.db, { titles: 10, seed: 7 }), { created: 0, titles: 2_500 });
  });

  it('are others for another seed', async () => {
    await createSyntheticTitles(database.db, { titles: 50, seed: 1 });
    await createSyntheticTitles(other.db, { titles: 50, seed: 2 });
    const [one, two] = await Promise.all(
      [database, other].map(({ db }) => db('titles').orderBy('svc_id').pluck('title')),
    );
    assert.notDeepEqual(one, two);
  });

  it('only go into a catalogue without other titles', async () => {
    await database.db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    await assert.rejects(createSyntheticTitles(database.db, { titles: 5, seed: 1 }), {
      name: 'OperatorError',
      message:
        'The catalogue has 1 titles that are not synthetic ones of seed 1. Titles cannot be removed, so use an empty ' +
        'database for synthetic ones.',
    });
    await createSyntheticTitles(other.db, { titles: 5, seed: 1 });
    await assert.rejects(
      createSyntheticTitles(other.db, { titles: 5, seed: 2 }),
      /has 5 titles that are not synthetic/,
    );
    await assertCounted(database, 1);
    await assertCounted(other, 5);
  });

  it('when interrupted, are whole transactions, and are completed when it is run again', async () => {
    const stop = new AbortController();
    const seen: number[] = [];
    const interrupted = createSyntheticTitles(database.db, {
      titles: 130_000,
      seed: 3,
      signal: stop.signal,
      onProgress: (titles) => {
        seen.push(titles);
        if (titles > 0) stop.abort();
      },
    });
    await assert.rejects(interrupted, {
      name: 'OperatorError',
      message: 'Interrupted: the catalogue has 50,000 of 130,000 synthetic titles. Run it again to go on.',
    });
    assert.deepEqual(seen, [0, 50_000]);
    await assertCounted(database, 50_000);
    assert.deepEqual(await createSyntheticTitles(database.db, { titles: 130_000, seed: 3 }), {
      created: 80_000,
      titles: 130_000,
    });
    await assertCounted(database, 130_000);
  });
});
