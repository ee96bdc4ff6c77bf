import assert from 'node:assert/strict';
import pg from 'pg';
import { verifyCounts } from '../../src/catalog/counts.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { CASTS, MET, plantImpostors, SCHEMA, type Kind } from './impostors.js';

const ROLE = 'impostor_role';

/** What a writer of everything sends. It names nothing that an impostor could stand for: what is met is met by our own. */
const WRITES = {
  'an insert': "insert into public.titles (svc_id, media_type, title) values ('a', 'movie', 'A'), ('b', 'movie', 'B')",
  'an insert with times of its own':
    "insert into public.titles (svc_id, media_type, title, created_at, updated_at) values ('c', 'series', 'C', '2001-01-01Z', '2099-01-01Z')",
  'an upsert':
    "insert into public.titles (svc_id, media_type, title) values ('a', 'series', 'A'), ('d', 'movie', 'D') on conflict (svc_id) do update set media_type = excluded.media_type",
  'an update': 'update public.titles set available_in_library = true, updated_at = null',
  'an update that changes nothing': 'update public.titles set available_in_library = true',
  people: "insert into public.people (svc_id, name) values ('p', 'P'), ('q', 'Q')",
  'a removal': 'delete from public.people',
  collections: "insert into public.collections (svc_id, name) values ('p', 'P')",
  'a truncation': 'truncate public.collections, public.people',
} as const;

const TOLD = {
  'a revoked key': "update public.api_keys set revoked_at = '2026-01-01Z' where revoked_at is null",
  'a removed key': 'delete from public.api_keys',
  'a suspended developer': "update public.developers set suspended_at = '2026-01-01Z'",
  'a changed plan': 'update public.plans set requests_per_minute = 1',
} as const;

/** Without a search path of its own, each of these would meet an impostor. The rest name nothing, or are called by these. */
const EXPOSED: Readonly<Record<string, string>> = {
  'catalog_take_writer_lock()': WRITES['an insert'],
  'titles_follow_clock()': WRITES['an insert'],
  'titles_stamp_inserted()': WRITES['an insert with times of its own'],
  'titles_stamp_updated()': WRITES['an update'],
  'titles_count_inserted()': WRITES['an insert'],
  'titles_count_updated()': `begin; ${WRITES['an insert']}; ${WRITES['an update']}`,
  'catalog_count_inserted()': WRITES.people,
  'catalog_count_deleted()': `begin; ${WRITES.people}; ${WRITES['a removal']}`,
  'catalog_count_truncated()': WRITES['a truncation'],
  'catalog_counts_settle()': `begin; ${WRITES.people}; ${WRITES['an insert']}; set constraints all immediate`,
  'announce_callers_changed()': TOLD['a changed plan'],
};

describe('a role with impostors of all that the triggers use', () => {
  let database: OpenTestDatabase;
  let role: pg.Client;
  let planted: Record<Kind, number>;

  beforeEach(async () => {
    database = await openTestDatabase();
    const { db } = database;
    await db.raw(`
      create role ${ROLE};
      create schema ${SCHEMA} authorization ${ROLE};
      grant all on titles, people, collections, api_keys, developers, plans to ${ROLE};
      revoke trigger on titles, people, collections, api_keys, developers, plans from ${ROLE};
      grant usage on sequence titles_last_stamp to ${ROLE};`);
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    await createKey(db, { developerId: id, planId: 'free' });
    role = new pg.Client({ connectionString: database.url });
    await role.connect();
    await role.query(`set role ${ROLE}`);
    planted = await plantImpostors(role);
  });

  afterEach(async () => {
    await role.end();
    await database.db.raw(`drop owned by ${ROLE}; drop role ${ROLE}`);
    await database.close();
  });

  async function clock(): Promise<string> {
    const { rows } = await database.db.raw<{ rows: [{ now: string }] }>('select clock_timestamp() as now');
    return rows[0].now;
  }

  async function stamps(): Promise<string[]> {
    return database.db('titles').orderBy('updated_at').pluck<string[]>('updated_at');
  }

  async function writersAtWork(): Promise<number> {
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      `select from pg_locks where locktype = 'advisory' and classid = x'66656564'::integer::oid and objid = 1 and granted
        and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows.length;
  }

  it('has really planted them: what it writes itself meets them', async () => {
    for (const [kind, number] of Object.entries(planted)) assert.ok(number > 0, kind);
    await role.query(`${WRITES['an insert']}; ${WRITES.people}`);
    for (const sql of [
      'select pg_advisory_xact_lock(1, 1)',
      'select count(*) from public.people',
      'select 1::int4 + 1::int4',
      "select timestamptz 'epoch'",
      'select * from pg_locks',
      'select * from new_rows',
      'select from public.titles t, public.titles u where t is distinct from u',
    ]) {
      await assert.rejects(role.query(sql), meets, sql);
    }
  });

  it('plants no cast between types that are not its own', async () => {
    const { rows } = await database.db.raw<{ rows: { cast: string }[] }>(CASTS);
    assert.ok(rows.length > 0);
    for (const { cast } of rows) {
      await assert.rejects(role.query(`create cast (${cast}) with inout as implicit`), { code: '42501' }, cast);
    }
  });

  it('harms no stamp, no order, no lock and no count', async () => {
    for (const [what, sql] of Object.entries(WRITES)) {
      const before = await stamps();
      const startedAt = await clock();
      await role.query('begin');
      await role.query(sql);
      assert.equal(await writersAtWork(), 1, what);
      await role.query('commit');
      const written = (await stamps()).filter((stamp) => !before.includes(stamp));
      const endedAt = await clock();
      for (const stamp of written) {
        assert.ok(
          startedAt < stamp && stamp < endedAt,
          `${what} is stamped ${stamp}, not in ${startedAt} to ${endedAt}`,
        );
      }
      assert.deepEqual((await verifyCounts(database.db)).mismatches, [], what);
    }
    const entries = await database.db('titles').orderBy('updated_at').pluck<string[]>('svc_id');
    assert.deepEqual(entries, ['b', 'c', 'a', 'd']);
  });

  it('harms none in a transaction of all its writes either', async () => {
    await role.query(`begin; ${Object.values(WRITES).join('; ')}; commit`);
    assert.deepEqual((await verifyCounts(database.db)).mismatches, []);
    assert.equal(new Set(await stamps()).size, 4);
  });

  it('keeps no change of keys, developers and plans from being announced', async () => {
    const listener = new pg.Client({ connectionString: database.url });
    await listener.connect();
    try {
      let heard = 0;
      listener.on('notification', () => (heard += 1));
      await listener.query('listen catalog_callers');
      for (const [i, [what, sql]] of Object.entries(TOLD).entries()) {
        await role.query(sql);
        await eventually(`${what} is announced`, () => heard === i + 1);
      }
    } finally {
      await listener.end();
    }
  });

  it('cannot do what no role may do', async () => {
    const { db } = database;
    await role.query(WRITES['an insert']);
    for (const sql of ['delete from public.titles', 'truncate public.titles']) {
      await assert.rejects(role.query(sql), { code: '0A000' }, sql);
    }
    await assert.rejects(role.query("update public.titles set svc_id = 'z'"), { code: '23000' });
    const [prefix = ''] = await db('api_keys').pluck<string[]>('prefix');
    await revokeKey(db, prefix);
    await assert.rejects(role.query('update public.api_keys set revoked_at = null'), { code: '23000' });
    await assert.rejects(
      role.query("insert into public.titles (svc_id, media_type, title) values ('e', 'film', 'E')"),
      {
        constraint: 'titles_media_type_known',
      },
    );
  });

  for (const [name, sql] of Object.entries(EXPOSED)) {
    it(`would do harm if ${name} had no search path of its own`, async () => {
      await role.query(`${WRITES['an insert']}; ${WRITES.people}`);
      await role.query('truncate public.people');
      await database.db.raw(`alter function public.${name} reset search_path`);
      const again = sql.replace("('a', 'movie', 'A'), ('b', 'movie', 'B')", "('y', 'movie', 'Y')");
      await assert.rejects(role.query(again), meets);
      await role.query('rollback');
    });
  }

  it('meets no function of ours that has no search path of its own', async () => {
    const { rows } = await database.db.raw<{ rows: { f: string; proconfig: string[] | null }[] }>(
      "select oid::regprocedure::text as f, proconfig from pg_proc where pronamespace = 'public'::regnamespace order by 1",
    );
    assert.deepEqual(
      rows.filter(({ proconfig }) => proconfig?.join() !== 'search_path=pg_catalog, pg_temp'),
      [],
    );
    for (const name of Object.keys(EXPOSED)) assert.ok(rows.some(({ f }) => f === name));
  });
});

function meets(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (MET as readonly string[]).includes(error.code ?? '');
}
