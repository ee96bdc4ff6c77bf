import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { testWorld } from '../support/world.js';

describe('the database', () => {
  const world = testWorld();
  let db: Knex;

  before(async () => {
    ({ db } = world);
    await db('titles').insert([title('kept'), title('other')]);
  });

  function title(svcId: string): Record<string, unknown> {
    return { svc_id: svcId, media_type: 'movie', title: 'Title' };
  }

  async function titles(): Promise<unknown[]> {
    return db('titles').select().orderBy('svc_id');
  }

  /** Checks that a statement fails with an error and changes nothing. */
  async function assertRefused(sql: string, error: object): Promise<void> {
    const before = await titles();
    await assert.rejects(db.raw(sql), error, sql);
    assert.deepEqual(await titles(), before);
  }

  for (const sql of [
    'delete from titles',
    "delete from titles where svc_id = 'kept'",
    'delete from titles where false',
    'truncate titles',
    'truncate people, titles',
    'truncate titles cascade',
    'with gone as (delete from titles returning *) select * from gone',
    "merge into titles t using (values ('kept')) v (id) on t.svc_id = v.id when matched then delete",
  ]) {
    it(`refuses to remove titles: ${sql}`, async () => {
      await assertRefused(sql, {
        message: /titles cannot be removed: the feed of changes has no way to announce it$/,
        code: '0A000',
        hint: 'Set available_in_library to false instead.',
      });
    });
  }

  for (const before of [
    "insert into titles (svc_id, media_type, title) values ('new', 'movie', 'T')",
    "update titles set available_in_library = true where svc_id = 'kept'",
    "insert into people (svc_id, name) values ('p', 'P')",
    'update catalog_counts set titles = titles',
    "set local catalog.counting = 'yes'",
    'set constraints all immediate',
    'savepoint s; update titles set has_bundles = true; release s',
  ]) {
    it(`refuses to remove titles within a transaction, after: ${before}`, async () => {
      const titlesBefore = await titles();
      for (const removal of ["delete from titles where svc_id = 'kept'", 'delete from titles', 'truncate titles']) {
        const transaction = await db.transaction();
        await transaction.raw(before);
        await assert.rejects(transaction.raw(removal), { code: '0A000' }, removal);
        await transaction.rollback();
      }
      assert.deepEqual(await titles(), titlesBefore);
    });
  }

  for (const sql of [
    "update titles set svc_id = 'renamed' where svc_id = 'kept'",
    "update titles set svc_id = svc_id || 'x'",
    "insert into titles (svc_id, media_type, title) values ('kept', 'movie', 'x') on conflict (svc_id) do update set svc_id = 'renamed'",
  ]) {
    it(`refuses to change a svc_id: ${sql.slice(0, 40)}`, async () => {
      await assertRefused(sql, { message: /svc_id of a title cannot change/, code: '23000' });
    });
  }

  for (const [what, change, constraint] of [
    ['an empty svc_id', { svc_id: '' }, 'titles_svc_id_format'],
    ['a svc_id of 65 characters', { svc_id: 'x'.repeat(65) }, 'titles_svc_id_format'],
    ['a slash in a svc_id', { svc_id: 'a/b' }, 'titles_svc_id_format'],
    ['a blank in a svc_id', { svc_id: 'a b' }, 'titles_svc_id_format'],
    ['a line feed at the end of a svc_id', { svc_id: 'a\n' }, 'titles_svc_id_format'],
    ['a letter beyond ASCII in a svc_id', { svc_id: 'é' }, 'titles_svc_id_format'],
    ['an existing svc_id', { svc_id: 'kept' }, 'titles_pkey'],
    ['an unknown media_type', { media_type: 'person' }, 'titles_media_type_known'],
    ['a media_type in capitals', { media_type: 'Movie' }, 'titles_media_type_known'],
    ['an empty title', { title: '' }, 'titles_title_length'],
    ['a title of 1,001 characters', { title: 'é'.repeat(1001) }, 'titles_title_length'],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const before = await titles();
      await assert.rejects(db('titles').insert({ ...title('new'), ...change }), { constraint });
      if (!('svc_id' in change)) {
        await assert.rejects(db('titles').where({ svc_id: 'kept' }).update(change), { constraint });
      }
      assert.deepEqual(await titles(), before);
    });
  }

  for (const column of ['svc_id', 'media_type', 'title', 'has_bundles', 'available_in_library']) {
    it(`refuses a title without ${column}`, async () => {
      await assert.rejects(db('titles').insert({ ...title('new'), [column]: null }), { code: '23502', column });
    });
  }

  for (const table of ['people', 'collections']) {
    it(`refuses ${table} with an invalid id or name`, async () => {
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
    });
  }

  it('sets the times of titles itself, whatever a writer supplies', async () => {
    const ancient = '2001-01-01T00:00:00.000000Z';
    const [{ now }] = (await db.raw<{ rows: [{ now: string }] }>('select clock_timestamp() as now')).rows;
    const [inserted] = await db('titles')
      .insert({ ...title('timed'), created_at: ancient, updated_at: ancient })
      .returning<Record<string, string>[]>(['created_at', 'updated_at']);
    assert.ok(String(inserted?.created_at) > now);
    assert.equal(inserted?.created_at, inserted?.updated_at);

    const [updated] = await db('titles')
      .where({ svc_id: 'timed' })
      .update({ title: 'New', created_at: ancient, updated_at: '2099-01-01T00:00:00Z' })
      .returning<Record<string, string>[]>(['created_at', 'updated_at']);
    assert.equal(updated?.created_at, inserted?.created_at);
    assert.ok(String(updated?.updated_at) > String(inserted?.updated_at));
    assert.ok(String(updated?.updated_at) < '2099');

    assert.equal(await db('titles').where({ svc_id: 'timed' }).update({ created_at: ancient, updated_at: ancient }), 0);
    assert.deepEqual(await db('titles').where({ svc_id: 'timed' }).first('created_at', 'updated_at'), updated);
  });

  it('does not write a title that an update leaves unchanged', async () => {
    const before = await titles();
    assert.equal(await db('titles').update({ title: db.ref('title') }), 0);
    await db('titles')
      .insert([title('kept'), title('other')])
      .onConflict('svc_id')
      .merge(['title', 'media_type']);
    assert.deepEqual(await titles(), before);
    await db('titles')
      .whereIn('svc_id', ['kept', 'other'])
      .update({ title: db.raw("case svc_id when 'kept' then 'New' else title end") });
    const changed = (await titles()).filter((row, index) => JSON.stringify(row) !== JSON.stringify(before[index]));
    assert.deepEqual(
      changed.map((row) => (row as { svc_id: string; title: string }).title),
      ['New'],
    );
  });
});
