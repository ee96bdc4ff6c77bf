import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Knex } from 'knex';
import pg from 'pg';
import { readCatalogCounts, repairCounts, verifyCounts, type Counts } from '../../src/catalog/counts.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';

const ZERO: Counts = { titles: 0, movies: 0, series: 0, available_in_library: 0, people: 0, collections: 0 };

describe('the headline counts', () => {
  let database: OpenTestDatabase;
  let db: Knex;

  beforeEach(async () => {
    database = await openTestDatabase();
    ({ db } = database);
  });

  afterEach(() => database.close());

  /** The kept counts are these, and a recount says the same. */
  async function assertCounts(expected: Partial<Counts>): Promise<void> {
    const counts = { ...ZERO, ...expected };
    assert.deepEqual(await readCatalogCounts(db), counts);
    assert.deepEqual(await verifyCounts(db), { counts, mismatches: [] });
  }

  async function inOneSession(act: (session: pg.Client) => Promise<void>): Promise<void> {
    const session = new pg.Client({ connectionString: database.url });
    await session.connect();
    try {
      await act(session);
    } finally {
      await session.end();
    }
  }

  it('begin at zero', () => assertCounts({}));

  it('are right although a dump has named the transaction that writes next', async () => {
    await inOneSession(async (session) => {
      await session.query('begin; update catalog_counts set updated_by = pg_current_xact_id()');
      for (const id of ['a', 'b', 'c']) await session.query(`insert into people (svc_id, name) values ('${id}', 'N')`);
      await session.query('commit');
    });
    await assertCounts({ people: 3 });
    assert.deepEqual(await db('catalog_counts_waiting'), []);
  });

  it('follow inserts and updates of titles', async () => {
    await db('titles').insert([
      { svc_id: 'a', media_type: 'movie', title: 'A', available_in_library: true },
      { svc_id: 'b', media_type: 'movie', title: 'B' },
      { svc_id: 'c', media_type: 'series', title: 'C', available_in_library: true },
    ]);
    await assertCounts({ titles: 3, movies: 2, series: 1, available_in_library: 2 });
    await db('titles').where({ svc_id: 'a' }).update({ media_type: 'series' });
    await assertCounts({ titles: 3, movies: 1, series: 2, available_in_library: 2 });
    await db('titles').update({ available_in_library: db.raw('not available_in_library') });
    await assertCounts({ titles: 3, movies: 1, series: 2, available_in_library: 1 });
    await db('titles').update({ media_type: 'movie', available_in_library: true });
    await assertCounts({ titles: 3, movies: 3, series: 0, available_in_library: 3 });
    await db('titles').update({ title: 'Same kind', has_bundles: true });
    await assertCounts({ titles: 3, movies: 3, series: 0, available_in_library: 3 });
    await db('titles').where(db.raw('false')).update({ media_type: 'series' });
    await db.raw("insert into titles (svc_id, media_type, title) select 'x', 'movie', 'X' where false");
    await assertCounts({ titles: 3, movies: 3, series: 0, available_in_library: 3 });
  });

  it('follow statements that insert and update at once', async () => {
    await db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    await db('titles')
      .insert([
        { svc_id: 'a', media_type: 'series', title: 'A', available_in_library: true },
        { svc_id: 'b', media_type: 'movie', title: 'B' },
        { svc_id: 'c', media_type: 'movie', title: 'C', available_in_library: true },
      ])
      .onConflict('svc_id')
      .merge();
    await assertCounts({ titles: 3, movies: 2, series: 1, available_in_library: 2 });
    await db('titles')
      .insert([
        { svc_id: 'a', media_type: 'movie', title: 'A' },
        { svc_id: 'd', media_type: 'series', title: 'D' },
      ])
      .onConflict('svc_id')
      .ignore();
    await assertCounts({ titles: 4, movies: 2, series: 2, available_in_library: 2 });
    await db.raw(`
      merge into titles t using (values ('a', 'movie'), ('e', 'series')) v (id, kind) on t.svc_id = v.id
        when matched then update set media_type = v.kind
        when not matched then insert (svc_id, media_type, title) values (v.id, v.kind, 'Merged')`);
    await assertCounts({ titles: 5, movies: 3, series: 2, available_in_library: 2 });
    await db.raw(`
      with moved as (update titles set media_type = 'series' where svc_id = 'a' returning 1)
      insert into titles (svc_id, media_type, title) select 'f', 'movie', 'F' from moved`);
    await assertCounts({ titles: 6, movies: 3, series: 3, available_in_library: 2 });
  });

  for (const table of ['people', 'collections'] as const) {
    it(`follow inserts, upserts, deletes and truncates of ${table}`, async () => {
      const rows = ['a', 'b', 'c', 'd'].map((id) => ({ svc_id: id, name: id }));
      await db(table).insert(rows);
      await assertCounts({ [table]: 4 });
      await db(table)
        .insert([...rows, { svc_id: 'e', name: 'E' }])
        .onConflict('svc_id')
        .merge();
      await assertCounts({ [table]: 5 });
      await db(table).update({ name: 'Same' });
      await assertCounts({ [table]: 5 });
      await db(table).whereIn('svc_id', ['a', 'b', 'none']).delete();
      await assertCounts({ [table]: 3 });
      await db(table).where({ svc_id: 'none' }).delete();
      await assertCounts({ [table]: 3 });
      await db(table).truncate();
      await assertCounts({});
      await db(table).insert(rows);
      await db.raw('truncate people, collections');
      await assertCounts({});
    });
  }

  it('follow transactions of many statements, and stay as small', async () => {
    await db.raw(`do $$ begin
      for i in 1..3000 loop
        insert into titles (svc_id, media_type, title) values ('t' || i, 'movie', 'T');
        insert into people (svc_id, name) values ('p' || i, 'P');
        update titles set media_type = 'series' where svc_id = 't' || i and i % 3 = 0;
      end loop;
    end $$`);
    await assertCounts({ titles: 3_000, movies: 2_000, series: 1_000, people: 3_000 });
    // Each version of the row would take its place: readers would have to pass over them all.
    const { rows } = await db.raw<{ rows: unknown[] }>("select pg_relation_size('catalog_counts') / 8192 as pages");
    assert.deepEqual(rows, [{ pages: 1 }]);
    assert.deepEqual(await db('catalog_counts_waiting'), []);
  });

  it('follow truncates amid other statements', async () => {
    await db('people').insert({ svc_id: 'before', name: 'B' });
    await db.transaction(async (transaction) => {
      await transaction('people').insert({ svc_id: 'a', name: 'A' });
      await transaction('people').insert([
        { svc_id: 'b', name: 'B' },
        { svc_id: 'c', name: 'C' },
      ]);
      await transaction('collections').insert({ svc_id: 'd', name: 'D' });
      await transaction('people').truncate();
      await transaction('people').insert({ svc_id: 'e', name: 'E' });
    });
    await assertCounts({ people: 1, collections: 1 });
  });

  for (const interference of [
    'set constraints all immediate',
    'reset all',
    "set local catalog.counting = 'no'",
    // Up to 004 this told that the row had been updated.
    "set catalog.counting = 'yes'",
  ]) {
    it(`are right although a transaction says "${interference}"`, async () => {
      await db.transaction(async (transaction) => {
        for (let i = 0; i < 3; i += 1) await transaction('people').insert({ svc_id: `a${i}`, name: 'A' });
        await transaction.raw(interference);
        for (let i = 0; i < 3; i += 1) await transaction('people').insert({ svc_id: `b${i}`, name: 'B' });
      });
      await db('people').insert({ svc_id: 'c', name: 'C' });
      await assertCounts({ people: 7 });
      assert.deepEqual(await db('catalog_counts_waiting'), []);
    });

    it(`are right although a session says "${interference}"`, async () => {
      await inOneSession(async (session) => {
        await session.query(interference.replace(' local', ''));
        for (const id of ['a', 'b']) await session.query(`insert into people (svc_id, name) values ('${id}', 'N')`);
        await session.query("begin; insert into people (svc_id, name) values ('c', 'N')");
        await session.query("delete from people where svc_id = 'a'; commit");
      });
      await assertCounts({ people: 2 });
      assert.deepEqual(await db('catalog_counts_waiting'), []);
    });
  }

  for (const end of ['commit', 'rollback'] as const) {
    it(`are taken back with a part of a transaction, before its ${end}`, async () => {
      await db('people').insert({ svc_id: 'p', name: 'P' });
      const transaction = await db.transaction();
      // Taken back as the first statement of the transaction, and then as a later one.
      for (const svcId of ['a', 'b']) {
        await transaction.raw('savepoint here');
        await transaction('collections').insert({ svc_id: 'c', name: 'C' });
        await transaction('collections').insert({ svc_id: 'd', name: 'D' });
        await transaction.raw('rollback to here');
        await transaction('titles').insert({
          svc_id: svcId,
          media_type: 'movie',
          title: 'T',
          available_in_library: true,
        });
      }
      await transaction.raw('savepoint here');
      await transaction('people').delete();
      await transaction.raw('release here');
      await transaction[end]();
      await assertCounts(end === 'commit' ? { titles: 2, movies: 2, available_in_library: 2 } : { people: 1 });
    });
  }

  it('are unchanged by a statement that fails half-way', async () => {
    await assert.rejects(
      db('titles').insert([
        { svc_id: 'a', media_type: 'movie', title: 'A' },
        { svc_id: 'b', media_type: 'neither', title: 'B' },
      ]),
      { constraint: 'titles_media_type_known' },
    );
    await assertCounts({});
  });

  it('agree with a recount after any series of writes by several writers', async () => {
    const id = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const kind = fc.constantFrom('movie', 'series');
    const write = fc.oneof(
      fc.tuple(id, kind, fc.boolean()).map(
        ([svcId, mediaType, available]) =>
          (on: Knex) =>
            on('titles')
              .insert({ svc_id: svcId, media_type: mediaType, title: 'T', available_in_library: available })
              .onConflict('svc_id')
              .merge(),
      ),
      fc.tuple(kind, fc.boolean()).map(
        ([mediaType, available]) =>
          (on: Knex) =>
            on('titles').where({ media_type: mediaType }).update({ available_in_library: available }),
      ),
      fc.constant((on: Knex) =>
        on('titles').update({
          media_type: on.raw("case when has_bundles then 'movie' else 'series' end"),
          has_bundles: on.raw('not has_bundles'),
        }),
      ),
      fc.tuple(fc.constantFrom('people', 'collections'), id).map(
        ([table, svcId]) =>
          (on: Knex) =>
            on(table).insert({ svc_id: svcId, name: 'N' }).onConflict('svc_id').ignore(),
      ),
      fc.tuple(fc.constantFrom('people', 'collections'), id).map(
        ([table, svcId]) =>
          (on: Knex) =>
            on(table).where({ svc_id: svcId }).delete(),
      ),
    );
    const transaction = fc.record({ writes: fc.array(write, { minLength: 1, maxLength: 4 }), commit: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(transaction, { minLength: 1, maxLength: 6 }), async (transactions) => {
        await Promise.all(
          transactions.map(async ({ writes, commit }) => {
            const on = await db.transaction();
            for (const act of writes) await act(on);
            await (commit ? on.commit() : on.rollback());
          }),
        );
        assert.deepEqual((await verifyCounts(db)).mismatches, []);
      }),
      { numRuns: 40 },
    );
  });

  it('that went wrong are found and repaired', async () => {
    await db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    await db('people').insert({ svc_id: 'p', name: 'P' });
    await db('catalog_counts').update({ titles: 7, series: 2, people: 0 });
    const mismatches = [
      { counter: 'titles', kept: 7, counted: 1 },
      { counter: 'series', kept: 2, counted: 0 },
      { counter: 'people', kept: 0, counted: 1 },
    ];
    assert.deepEqual(await verifyCounts(db), {
      counts: { ...ZERO, titles: 7, movies: 1, series: 2, people: 0 },
      mismatches,
    });
    assert.deepEqual(await repairCounts(db), mismatches);
    await assertCounts({ titles: 1, movies: 1, people: 1 });
    assert.deepEqual(await repairCounts(db), []);
  });

  it('are repaired in one run although counts were left waiting', async () => {
    await db('people').insert({ svc_id: 'p', name: 'P' });
    await db('catalog_counts').update({ people: 9 });
    await db('catalog_counts_waiting').insert({ added: '{0,0,0,0,5,0}', is_first: false });
    assert.deepEqual(await repairCounts(db), [{ counter: 'people', kept: 9, counted: 1 }]);
    await assertCounts({ people: 1 });
    await db.transaction(async (transaction) => {
      for (const id of ['q', 'r', 's']) await transaction('people').insert({ svc_id: id, name: 'N' });
    });
    await assertCounts({ people: 4 });
  });

  it('that were lost altogether are made again', async () => {
    await db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    await db('catalog_counts').delete();
    await assert.rejects(readCatalogCounts(db), /catalog_counts has lost its row: run "catalog stats verify --repair"/);
    await assert.rejects(verifyCounts(db), /has lost its row/);
    assert.deepEqual(await repairCounts(db), [
      { counter: 'titles', kept: 0, counted: 1 },
      { counter: 'movies', kept: 0, counted: 1 },
    ]);
    await assertCounts({ titles: 1, movies: 1 });
  });

  it('are repaired only after the writer at work has finished, with what it wrote', async () => {
    await db('catalog_counts').update({ titles: 5 });
    const writer = await db.transaction();
    await writer('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'A' });
    const repair = repairCounts(db);
    await eventually('the repair waits', async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select 1 from pg_locks where locktype = 'advisory' and not granted",
      );
      return rows.length === 1;
    });
    await writer.commit();
    assert.deepEqual(await repair, [{ counter: 'titles', kept: 6, counted: 1 }]);
    await assertCounts({ titles: 1, movies: 1 });
  });
});
