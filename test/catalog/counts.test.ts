import assert from 'node:assert/strict';
import pg from 'pg';
import { readCatalogCounts, repairCounts, verifyCounts, type Counts } from '../../src/catalog/counts.js';
import { emptyCatalogue, writersWait } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const ZERO: Counts = { titles: 0, movies: 0, series: 0, available_in_library: 0, people: 0, collections: 0 };

const TITLES = 'insert into titles (svc_id, media_type, title, available_in_library) values';

const ALL_MOVIES: Partial<Counts> = { titles: 3, movies: 3, series: 0, available_in_library: 3 };

/** Writes to an empty catalogue, each with the counts after it. */
const WRITES: readonly (readonly (readonly [sql: string, counts: Partial<Counts>])[])[] = [
  [
    [
      `${TITLES} ('a', 'movie', 'A', true), ('b', 'movie', 'B', false), ('c', 'series', 'C', true)`,
      { titles: 3, movies: 2, series: 1, available_in_library: 2 },
    ],
    [
      "update titles set media_type = 'series' where svc_id = 'a'",
      { titles: 3, movies: 1, series: 2, available_in_library: 2 },
    ],
    [
      'update titles set available_in_library = not available_in_library',
      { titles: 3, movies: 1, series: 2, available_in_library: 1 },
    ],
    ["update titles set media_type = 'movie', available_in_library = true", ALL_MOVIES],
    ["update titles set title = 'Other', has_bundles = true", ALL_MOVIES],
    ["update titles set media_type = 'series' where false", ALL_MOVIES],
    ["insert into titles (svc_id, media_type, title) select 'x', 'movie', 'X' where false", ALL_MOVIES],
  ],
  [
    [`${TITLES} ('a', 'movie', 'A', false)`, { titles: 1, movies: 1 }],
    [
      `${TITLES} ('a', 'series', 'A', true), ('b', 'movie', 'B', false), ('c', 'movie', 'C', true)
       on conflict (svc_id) do update
         set media_type = excluded.media_type, available_in_library = excluded.available_in_library`,
      { titles: 3, movies: 2, series: 1, available_in_library: 2 },
    ],
    [
      `${TITLES} ('a', 'movie', 'A', false), ('d', 'series', 'D', false) on conflict do nothing`,
      { titles: 4, movies: 2, series: 2, available_in_library: 2 },
    ],
    [
      `merge into titles t using (values ('a', 'movie'), ('e', 'series')) v (id, kind) on t.svc_id = v.id
         when matched then update set media_type = v.kind
         when not matched then insert (svc_id, media_type, title) values (v.id, v.kind, 'Merged')`,
      { titles: 5, movies: 3, series: 2, available_in_library: 2 },
    ],
    [
      `with moved as (update titles set media_type = 'series' where svc_id = 'a' returning 1)
       insert into titles (svc_id, media_type, title) select 'f', 'movie', 'F' from moved`,
      { titles: 6, movies: 3, series: 3, available_in_library: 2 },
    ],
  ],
  ...['people', 'collections'].map((table): [string, Partial<Counts>][] => [
    [`insert into ${table} (svc_id, name) values ('a', 'A'), ('b', 'B'), ('c', 'C'), ('d', 'D')`, { [table]: 4 }],
    [
      `insert into ${table} (svc_id, name) values ('a', 'X'), ('e', 'E')
           on conflict (svc_id) do update set name = excluded.name`,
      { [table]: 5 },
    ],
    [`update ${table} set name = 'Same'`, { [table]: 5 }],
    [`delete from ${table} where svc_id in ('a', 'b', 'none')`, { [table]: 3 }],
    [`delete from ${table} where false`, { [table]: 3 }],
    [`truncate ${table}`, {}],
    [`insert into ${table} (svc_id, name) values ('a', 'A')`, { [table]: 1 }],
    ['truncate people, collections', {}],
  ]),
  [
    ["insert into people (svc_id, name) values ('before', 'B')", { people: 1 }],
    [
      `begin;
       insert into people (svc_id, name) values ('a', 'A');
       insert into people (svc_id, name) values ('b', 'B'), ('c', 'C');
       insert into collections (svc_id, name) values ('d', 'D');
       truncate people;
       insert into people (svc_id, name) values ('e', 'E');
       commit`,
      { people: 1, collections: 1 },
    ],
  ],
];

describe('the kept counts', () => {
  const world = testWorld();

  beforeEach(() => emptyCatalogue(world.db));

  async function assertCounts(expected: Partial<Counts>): Promise<void> {
    const counts = { ...ZERO, ...expected };
    assert.deepEqual(await readCatalogCounts(world.db), counts);
    assert.deepEqual(await verifyCounts(world.db), { counts, mismatches: [] });
    assert.deepEqual(await world.db('catalog_counts_waiting'), []);
  }

  /** Runs SQL in a session of its own. Several statements in one text are one transaction unless they begin another. */
  async function inSession(...statements: readonly string[]): Promise<void> {
    const session = new pg.Client({ connectionString: world.url });
    await session.connect();
    try {
      for (const statement of statements) await session.query(statement);
    } finally {
      await session.end();
    }
  }

  const insertPerson = (id: string): string => `insert into people (svc_id, name) values ('${id}', 'N')`;

  it('counts follow every kind of write', async () => {
    await assertCounts({});
    for (const steps of WRITES) {
      for (const [sql, expected] of steps) {
        await inSession(sql);
        await assertCounts(expected);
      }
      await emptyCatalogue(world.db);
    }
  });

  it('counts are right although a dump contains the id of the transaction that writes next', async () => {
    await inSession(
      'begin; update catalog_counts set updated_by = pg_current_xact_id()',
      ...['a', 'b', 'c'].map(insertPerson),
      'commit',
    );
    await assertCounts({ people: 3 });
  });

  it('counts follow a transaction of many statements, and their table stays one page', async () => {
    await world.db.raw('vacuum full catalog_counts');
    await world.db.raw(`do $$ begin
      for i in 1..900 loop
        insert into titles (svc_id, media_type, title) values ('t' || i, 'movie', 'T');
        insert into people (svc_id, name) values ('p' || i, 'P');
        update titles set media_type = 'series' where svc_id = 't' || i and i % 3 = 0;
      end loop;
    end $$`);
    await assertCounts({ titles: 900, movies: 600, series: 300, people: 900 });
    // Each version of the row would take space, and readers would have to pass over all of them.
    const { rows } = await world.db.raw<{ rows: unknown[] }>(
      "select pg_relation_size('catalog_counts') / 8192 as pages",
    );
    assert.deepEqual(rows, [{ pages: 1 }]);
  });

  it('counts are right whatever a writer does to the settings of its session', async () => {
    for (const interference of ['set constraints all immediate', 'reset all']) {
      await inSession('begin', insertPerson('a'), insertPerson('b'), interference, insertPerson('c'), 'commit');
      await inSession(
        interference.replace(' local', ''),
        insertPerson('d'),
        'begin',
        insertPerson('e'),
        "delete from people where svc_id = 'd'",
        'commit',
      );
      await assertCounts({ people: 4 });
      await world.db.raw('delete from people');
    }
  });

  it('counts exclude what a transaction has rolled back, to a savepoint and as a whole', async () => {
    for (const [end, counts] of [
      ['rollback', { people: 1 }],
      ['commit', { titles: 2, movies: 2, available_in_library: 2 }],
    ] as const) {
      await inSession(
        "insert into people (svc_id, name) values ('p', 'N') on conflict do nothing",
        'begin',
        // Rolled back as the first statement of the transaction, and then as a later one.
        ...['a', 'b'].flatMap((id) => [
          "savepoint here; insert into collections (svc_id, name) values ('c', 'C')",
          "insert into collections (svc_id, name) values ('d', 'D'); rollback to here",
          `${TITLES} ('${id}', 'movie', 'T', true)`,
        ]),
        'savepoint here; delete from people; release here',
        end,
      );
      await assertCounts(counts);
    }
    const insert = `${TITLES} ('c', 'movie', 'A', false), ('d', 'neither', 'B', false)`;
    await assert.rejects(world.db.raw(insert), { constraint: 'titles_media_type_known' });
    await assertCounts({ titles: 2, movies: 2, available_in_library: 2 });
  });

  it('counts are verified and repaired, together with what was left waiting', async () => {
    const { db } = world;
    await inSession(`${TITLES} ('a', 'movie', 'A', false)`, insertPerson('p'));
    await db('catalog_counts').update({ titles: 7, series: 2, people: 0 });
    const mismatches = [
      { counter: 'titles', kept: 7, counted: 1 },
      { counter: 'series', kept: 2, counted: 0 },
      { counter: 'people', kept: 0, counted: 1 },
    ];
    const counts = { ...ZERO, titles: 7, movies: 1, series: 2, people: 0 };
    assert.deepEqual(await verifyCounts(db), { counts, mismatches });
    await db('catalog_counts_waiting').insert({ added: '{0,0,0,0,5,0}', is_first: false });
    assert.deepEqual(await repairCounts(db), mismatches);
    await assertCounts({ titles: 1, movies: 1, people: 1 });
    assert.deepEqual(await repairCounts(db), []);
    await inSession('begin', ...['q', 'r', 's'].map(insertPerson), 'commit');
    await assertCounts({ titles: 1, movies: 1, people: 4 });
  });

  it('counts are restored after their row was lost', async () => {
    const { db } = world;
    await inSession(`${TITLES} ('a', 'movie', 'A', false)`);
    await db('catalog_counts').delete();
    await assert.rejects(
      readCatalogCounts(db),
      /row of catalog_counts is missing: run "catalog stats verify --repair"/,
    );
    await assert.rejects(verifyCounts(db), /row of catalog_counts is missing/);
    assert.deepEqual(await repairCounts(db), [
      { counter: 'titles', kept: 0, counted: 1 },
      { counter: 'movies', kept: 0, counted: 1 },
    ]);
    await assertCounts({ titles: 1, movies: 1 });
  });

  it('counts are repaired after an active writer has committed, and include its rows', async () => {
    const { db } = world;
    await db('catalog_counts').update({ titles: 5 });
    const writer = await db.transaction();
    await writer.raw(`${TITLES} ('a', 'movie', 'A', false)`);
    const repair = repairCounts(db);
    await writersWait(db);
    await writer.commit();
    assert.deepEqual(await repair, [{ counter: 'titles', kept: 6, counted: 1 }]);
    await assertCounts({ titles: 1, movies: 1 });
  });
});
