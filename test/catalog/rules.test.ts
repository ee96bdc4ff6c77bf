import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { databaseClock, emptyCatalogue, stampOf } from '../support/titles.js';
import { testWorld } from '../support/world.js';

describe('the rules of the database', () => {
  const world = testWorld();
  let db: Knex;

  beforeEach(async () => {
    ({ db } = world);
    await emptyCatalogue(db);
    await db('titles').insert([title('kept'), title('other')]);
  });

  function title(svcId: string): Record<string, unknown> {
    return { svc_id: svcId, media_type: 'movie', title: 'Title' };
  }

  async function titles(): Promise<unknown[]> {
    return db('titles').select().orderBy('svc_id');
  }

  /** Checks that each statement fails with an error and changes nothing. */
  async function assertRefused(statements: readonly string[], error: object): Promise<void> {
    const before = await titles();
    for (const sql of statements) await assert.rejects(db.raw(sql), error, sql);
    assert.deepEqual(await titles(), before);
  }

  it('titles cannot be removed by any statement', async () => {
    await assertRefused(
      [
        'delete from titles',
        "delete from titles where svc_id = 'kept'",
        'delete from titles where false',
        'truncate titles',
        'truncate people, titles',
        'truncate titles cascade',
        'with gone as (delete from titles returning *) select * from gone',
        "merge into titles t using (values ('kept')) v (id) on t.svc_id = v.id when matched then delete",
      ],
      {
        message: /titles cannot be removed: the feed of changes has no way to announce it$/,
        code: '0A000',
        hint: 'Set available_in_library to false instead.',
      },
    );
  });

  it('the svc_id of a title cannot change', async () => {
    await assertRefused(
      [
        "update titles set svc_id = 'renamed' where svc_id = 'kept'",
        "update titles set svc_id = svc_id || 'x'",
        `insert into titles (svc_id, media_type, title) values ('kept', 'movie', 'x')
           on conflict (svc_id) do update set svc_id = 'renamed'`,
      ],
      { message: /svc_id of a title cannot change/, code: '23000' },
    );
  });

  it('titles with values that the contract does not allow are refused', async () => {
    const before = await titles();
    for (const [change, constraint] of [
      [{ svc_id: '' }, 'titles_svc_id_format'],
      [{ svc_id: 'x'.repeat(65) }, 'titles_svc_id_format'],
      [{ svc_id: 'a/b' }, 'titles_svc_id_format'],
      [{ svc_id: 'a b' }, 'titles_svc_id_format'],
      [{ svc_id: 'a\n' }, 'titles_svc_id_format'],
      [{ svc_id: 'é' }, 'titles_svc_id_format'],
      [{ svc_id: 'kept' }, 'titles_pkey'],
      [{ media_type: 'person' }, 'titles_media_type_known'],
      [{ media_type: 'Movie' }, 'titles_media_type_known'],
      [{ title: '' }, 'titles_title_length'],
      [{ title: 'é'.repeat(1001) }, 'titles_title_length'],
    ] as const) {
      await assert.rejects(db('titles').insert({ ...title('new'), ...change }), { constraint });
      if (!('svc_id' in change)) {
        await assert.rejects(db('titles').where({ svc_id: 'kept' }).update(change), { constraint });
      }
    }
    for (const column of ['svc_id', 'media_type', 'title', 'has_bundles', 'available_in_library']) {
      await assert.rejects(db('titles').insert({ ...title('new'), [column]: null }), { code: '23502', column });
    }
    assert.deepEqual(await titles(), before);
  });

  it('people and collections with an invalid id or name are refused', async () => {
    for (const table of ['people', 'collections']) {
      await db(table).insert({ svc_id: 'Some_1-x', name: 'é'.repeat(1000) });
      for (const [row, constraint] of [
        [{ svc_id: 'a b', name: 'N' }, `${table}_svc_id_format`],
        [{ svc_id: 'x', name: '' }, `${table}_name_length`],
        [{ svc_id: 'x', name: 'x'.repeat(1001) }, `${table}_name_length`],
        [{ svc_id: 'Some_1-x', name: 'N' }, `${table}_pkey`],
      ] as const) {
        await assert.rejects(db(table).insert(row), { constraint });
      }
      assert.equal((await db(table).select()).length, 1);
    }
  });

  it('the database sets the times of titles itself, whatever a writer supplies', async () => {
    const ancient = '2001-01-01T00:00:00.000000Z';
    const times = async (): Promise<Record<'created_at' | 'updated_at', string>> =>
      db('titles').where({ svc_id: 'timed' }).first('created_at', 'updated_at');
    const now = await databaseClock(db);
    await db('titles').insert({ ...title('timed'), created_at: ancient, updated_at: ancient });
    const inserted = await times();
    assert.ok((await stampOf(db, 'timed')) > now);
    assert.equal(inserted.created_at, inserted.updated_at);

    const supplied = { created_at: ancient, updated_at: '2099-01-01T00:00:00Z' };
    await db('titles')
      .where({ svc_id: 'timed' })
      .update({ title: 'New', ...supplied });
    const updated = await times();
    assert.equal(updated.created_at, inserted.created_at);
    assert.ok(updated.updated_at > inserted.updated_at && updated.updated_at < '2099');

    assert.equal(await db('titles').where({ svc_id: 'timed' }).update(supplied), 0);
    assert.deepEqual(await times(), updated);
  });
});
