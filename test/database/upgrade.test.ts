import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';
import { spendProviderSignIn } from '../../src/accounts/identities.js';
import { createChallenge } from '../../src/accounts/passkey-challenges.js';
import { createOperatorLink } from '../../src/accounts/sign-in-links.js';
import { generateToken } from '../../src/accounts/tokens.js';
import { findCallers } from '../../src/admission/callers.js';
import { readCatalogCounts, verifyCounts } from '../../src/catalog/counts.js';
import { readBounds } from '../../src/catalog/feed.js';
import { createDeveloper, listDevelopers } from '../../src/developers/developers.js';
import { removeOldEvents } from '../../src/events/events.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { stateOf } from '../../src/keys/key-record.js';
import { listKeys } from '../../src/keys/keys.js';
import { connectDatabase } from '../../src/platform/postgres/connect.js';
import { migrate, pendingMigrations } from '../../src/platform/postgres/migrations.js';
import { removeRows } from '../../src/platform/postgres/rows.js';
import { STEADY_CLOCK } from '../../src/platform/time/steady-clock.js';
import { connectTo } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { hashOf } from '../support/keys/key-hash.js';
import type { TestDatabase } from '../support/postgres.js';
import { createDatabaseBefore } from '../support/postgres/earlier-schema.js';
import { addTitles } from '../support/titles.js';

/** Roles are common to all databases of the server. */
const [WRITER, SERVER, READER] = ['upgrade_writer', 'upgrade_server', 'upgrade_reader'];

/** Bound on a statement of a server, in milliseconds. No migration may make one wait longer. */
const STATEMENT_TIMEOUT_MS = 800;

describe('an upgrade of an installation at work', () => {
  let database: TestDatabase;
  let db: Knex;
  let sessions: pg.Client[];

  /** Opens a database that lacks this migration and the later ones. */
  async function begin(migration: string): Promise<void> {
    database = await createDatabaseBefore(migration);
    db = connectTo(database.url, { poolSize: 4 });
    sessions = [];
    await db.raw(`
      create role ${WRITER}; create role ${SERVER}; create role ${READER};
      grant create on schema public to public;
      grant select, insert, update on titles, people to ${WRITER};
      grant usage on sequence titles_last_stamp to ${WRITER}`);
  }

  afterEach(async () => {
    await Promise.all(sessions.map((session) => session.end()));
    const roles = [WRITER, SERVER, READER].join();
    await db.raw(`drop owned by ${roles}; drop role ${roles}`);
    await db.destroy();
    await database.drop();
  });

  async function connect(role = WRITER): Promise<pg.Client> {
    const session = new pg.Client({ connectionString: database.url });
    await session.connect();
    sessions.push(session);
    await session.query(`set role ${role}; set statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
    return session;
  }

  async function insert(session: pg.Client, ...ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await session.query(`insert into titles (svc_id, media_type, title) values ('${id}', 'movie', 'T')`);
    }
  }

  async function assertTitles(titles: number): Promise<void> {
    assert.equal((await readCatalogCounts(db)).titles, titles);
    assert.deepEqual((await verifyCounts(db)).mismatches, []);
    assert.deepEqual(await db('catalog_counts_waiting'), []);
  }

  function withRole<T>(role: string, act: (as: Knex) => Promise<T>): Promise<T> {
    return db.transaction(async (transaction) => {
      await transaction.raw(`set local role ${role}`);
      return act(transaction);
    });
  }

  it('adds up the counts that a session has left waiting', async () => {
    await begin('005_roles.sql');
    const writer = await connect();
    await writer.query("set catalog.counting = 'yes'");
    await insert(writer, 'a', 'b');
    assert.equal((await verifyCounts(db)).mismatches.length, 2);
    await migrate(db);
    await assertTitles(2);
    await insert(writer, 'c');
    await assertTitles(3);
  });

  it('waits for an active writer, longer than a statement may take, and blocks neither it nor readers', async () => {
    await begin('005_roles.sql');
    const [writer, next] = await Promise.all([connect(), connect()]);
    await writer.query('begin');
    await insert(writer, 'a', 'b');
    const starting = connectDatabase({
      databaseUrl: database.url,
      dataDir: undefined,
      packageRoot: '',
      applicationName: 'test',
      poolSize: 1,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 1,
      migrate: true,
    });
    await eventually('the migration waits and tries again', async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
      );
      return rows.length > 0;
    });
    await insert(writer, 'c');
    const writing = insert(next, 'd');
    assert.equal((await readCatalogCounts(db)).titles, 0);
    await writer.query('commit');
    await writing;
    const started = await starting;
    await started.close();
    assert.equal(started.applied[0], '005_roles.sql');
    await assertTitles(4);
    await next.query('begin');
    await insert(next, 'e', 'f', 'g');
    await next.query('commit');
    await assertTitles(7);
  });

  for (const [migration, table] of [
    ['005_roles.sql', 'catalog_counts'],
    ['007_key_lives.sql', 'api_keys'],
  ] as const) {
    it(`lets servers read and writers write while a dump blocks ${migration}`, async () => {
      await begin(migration);
      await db.raw(`grant select on ${table} to ${READER}, ${SERVER}`);
      const [dump, server, writer] = await Promise.all([connect(READER), connect(SERVER), connect()]);
      await dump.query(`begin isolation level repeatable read; select * from public.${table}`);
      const migrating = migrate(db);
      let attempts = 0;
      for (let i = 0; i < 40 || attempts === 0; i += 1) {
        await server.query(`select * from ${table}`);
        await insert(writer, `t${i}`);
        const { rows } = await db.raw<{ rows: unknown[] }>(
          "select from pg_locks where not granted and mode = 'AccessExclusiveLock'",
        );
        attempts += rows.length;
      }
      assert.equal((await pendingMigrations(db))[0], migration);
      await dump.query('commit');
      assert.equal((await migrating)[0], migration);
      assert.deepEqual((await verifyCounts(db)).mismatches, []);
    });
  }

  it('keeps the functions that servers and commands call, and revokes all others from everybody', async () => {
    await begin('005_roles.sql');
    const [session, other] = await Promise.all([connect(), connect(READER)]);
    await session.query('create table own_before (i integer)');
    // As earlier versions left them.
    await db.raw(`
      grant execute on all functions in schema public to public;
      revoke execute on function catalog_counts_add(bigint[]), catalog_counts_note(bigint[]) from public`);
    await migrate(db);
    await session.query('select catalog_quiet_clock(), catalog_lock_writers()');
    await assert.rejects(session.query('create table own_after (i integer)'), { code: '42501' });
    await insert(session, 'a');
    for (const call of ['catalog_quiet_clock()', 'catalog_lock_writers()']) {
      await assert.rejects(other.query(`select ${call}`), { code: '42501' });
    }
    const { rows: callable } = await other.query(
      `select oid::regprocedure::text from pg_proc
        where pronamespace = 'public'::regnamespace and has_function_privilege(oid, 'execute')`,
    );
    assert.deepEqual(callable, []);
  });

  it('changes no position, and lets roles that can read titles read the feed start', async () => {
    await begin('006_feed_beginning.sql');
    await migrate(db);
    assert.deepEqual(await readBounds(db), { start: 0n, newest: 0n });
    const { rows } = await db.raw<{ rows: unknown[] }>(`
      select role, privilege from unnest(array['${WRITER}', '${READER}']) role, unnest(array['select', 'update']) privilege
       where has_table_privilege(role, 'catalog_feed', privilege)`);
    assert.deepEqual(rows, [{ role: WRITER, privilege: 'select' }]);
  });

  it('leaves keys as they are, without an end, and developers on the default plan', async () => {
    await begin('007_key_lives.sql');
    const { key, prefix, hash } = generateApiKey();
    // An operator may have removed the default plan.
    await db('plans').where({ id: 'free' }).delete();
    const [developer] = await db('developers').insert({ project_name: 'P' }).returning<{ id: number }[]>('id');
    await db('api_keys').insert({ prefix, hash, developer_id: developer?.id, plan_id: 'pro' });
    await migrate(db);
    const [record = assert.fail(), ...others] = await listKeys(db);
    assert.deepEqual(others, []);
    assert.deepEqual(stateOf(record), { kind: 'active' });
    assert.deepEqual([record.planId, record.expiresAt], ['pro', null]);
    assert.deepEqual(
      (await listDevelopers(db)).map(({ planId }) => planId),
      ['free'],
    );
    assert.equal((await findCallers(db, [hashOf(key)], STEADY_CLOCK)).get(hashOf(key))?.expiresAt, Infinity);
  });

  it('grants the role of an existing server what the new version needs, and no other role', async () => {
    await begin('010_event_retention.sql');
    await db.raw(`
      grant select on api_keys, developers to ${SERVER};
      grant select, insert on events to ${SERVER};
      grant insert on sign_ups to ${SERVER};
      grant select on events to ${READER}`);
    await db('events').insert({ at: '2020-01-01Z', developer_id: 1, kind: 'registered', actor: 'operator' });
    await migrate(db);
    const acts: readonly ((as: Knex) => Promise<unknown>)[] = [
      removeOldEvents,
      async (as: Knex) => (await as('caller_changes')).length,
      (as: Knex) => spendProviderSignIn(as, generateToken().token),
      (as: Knex) => createChallenge(as, null),
      (as: Knex) => createDeveloper(as, { projectName: 'P', attributionRequired: false }),
    ];
    for (const act of acts) await assert.rejects(withRole(READER, act), { code: '42501' });
    const results = [];
    for (const act of acts) results.push(await withRole(SERVER, act));
    assert.deepEqual(results.slice(0, 3), [1, 0, true]);
  });

  it('keeps the links of operators, which a server spends and does not make, under their old name too', async () => {
    await begin('021_one_table_of_sign_in_links.sql');
    await db.raw(`
      grant select, insert, update, delete on sign_in_links to ${SERVER};
      grant select, delete on operator_sign_in_links to ${SERVER};
      insert into operator_sign_in_links values (sha256('a'), 'infinity')`);
    await migrate(db);
    // As commands and servers of the version before.
    await db.raw("insert into operator_sign_in_links (hash, expires_at) values (sha256('b'), 'infinity')");
    assert.deepEqual(await db('sign_in_links').pluck('kind'), ['operator', 'operator']);
    const spend = (as: Knex): Promise<number> => as('operator_sign_in_links').delete();
    const make = (as: Knex): Promise<unknown> => createOperatorLink(as);
    await assert.rejects(withRole(SERVER, make), { code: '42501' });
    assert.equal(await withRole(SERVER, (as) => removeRows(as, 'sign_in_links', 'expires_at < now()')), 0);
    assert.equal(await withRole(SERVER, spend), 2);
  });

  it('keeps existing stamps, and gives later rows later stamps that do not end in 0', async () => {
    await begin('011_stamps_with_six_decimals.sql');
    const stamps = (): Promise<string[]> => db('titles').orderBy('updated_at').pluck('updated_at');
    await addTitles(db, 100, 'old');
    const before = await stamps();
    assert.equal(before.filter((stamp) => stamp.endsWith('0Z')).length, 10);
    await migrate(db);
    await addTitles(db, 100, 'new');
    const after = await stamps();
    assert.deepEqual(after.slice(0, 100), before);
    assert.equal(after.filter((stamp) => stamp.endsWith('0Z')).length, 10);
  });
});
