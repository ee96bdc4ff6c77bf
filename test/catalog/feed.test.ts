import assert from 'node:assert/strict';
import { readFeed, type FeedEntry } from '../../src/catalog/feed.js';
import { testWorld } from '../support/world.js';

/** Texts that would be cut or lost if lists of texts were not escaped. */
const TITLES = ['a, "b", c', "l'été", 'line\nbreak\ttab\u001f\u001e', '七人の侍 🎬', '\\', '[]', 'null', ' ', '{a,b}'];

describe('a page of the feed', () => {
  const world = testWorld();

  it('has no entry while the catalogue is empty', async () => {
    assert.deepEqual(await readFeed(world.db, 0n), { entries: [], hasMore: false, followsEntry: false });
  });

  it('has the same entries as the rows, whatever their texts contain', async () => {
    const { db } = world;
    for (const [i, title] of TITLES.entries()) {
      await db('titles').insert({
        svc_id: `title_${i}-X`,
        media_type: i % 2 === 0 ? 'movie' : 'series',
        title,
        has_bundles: i % 3 === 0,
      });
    }
    const rows = await db('titles')
      .select<FeedEntry[]>('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles')
      .orderBy('updated_at');
    assert.deepEqual(
      rows.map(({ title }) => title),
      TITLES,
    );
    const { entries, hasMore } = await readFeed(db, 0n);
    assert.deepEqual(entries, rows);
    assert.equal(hasMore, false);
  });
});
