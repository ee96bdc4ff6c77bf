import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';
import { readCatalogCounts, verifyCounts } from '../../src/catalog/counts.js';
import { connectDatabase } from '../../src/platform/postgres/connect.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { migrate, pendingMigrations } from '../../src/platform/postgres/migrations.js';
import { createDatabaseBefore } from '../support/postgres/earlier-schema.js';
import { eventually } from '../support/eventually.js';
import type { TestDatabase } from '../support/postgres.js';

const ROLE = 'upgrade_role';
const MIGRATION = '005_roles.sql';

/** What a server gives a statement, in milliseconds: nobody may be held up for longer. */
const STATEMENT_TIMEOUT_MS = 800;

describe('the migration of roles, in an installation at work', () => {
  let database: TestDatabase;
  let db: Knex;
  let sessions: pg.Client[];

  beforeEach(async () => {
    database = await createDatabaseBefore(MIGRATION);
    db = open(0);
    sessions = [];
    await db.raw(`
      create role ${ROLE};
      grant create on schema public to public;
      grant select, insert, update on titles, people to ${ROLE};
      grant usage on sequence titles_last_stamp to ${ROLE}`);
  });

  afterEach(async () => {
    await Promise.all(sessions.map((session) => session.end()));
    await db.raw(`drop owned by ${ROLE}; drop role ${ROLE}`);
    await db.destroy();
    await database.drop();
  });

  function open(statementTimeoutMs: number): Knex {
    return openDatabase({
      address: database.url,
      applicationName: 'test',
      poolSize: 4,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs,
    });
  }

  async function connect(): Promise<pg.Client> {
    const session = new pg.Client({ connectionString: database.url });
    await session.connect();
    sessions.push(session);
    await session.query(`set role ${ROLE}`);
    return session;
  }

  function insert(session: pg.Client, svcId: string): Promise<unknown> {
    return session.query(`insert into titles (svc_id, media_type, title) values ('${svcId}', 'movie', 'T')`);
  }

  async function assertTitles(titles: number): Promise<void> {
    assert.equal((await readCatalogCounts(db)).titles, titles);
    assert.deepEqual((await verifyCounts(db)).mismatches, []);
    assert.deepEqual(await db('catalog_counts_waiting'), []);
  }

  it('adds up the counts that a role has left waiting', async () => {
    const writer = await connect();
    await writer.query("set catalog.counting = 'yes'");
    await insert(writer, 'a');
    await insert(writer, 'b');
    assert.equal((await verifyCounts(db)).mismatches.length, 2);
    assert.equal((await migrate(db))[0], MIGRATION);
    await assertTitles(2);
    await insert(writer, 'c');
    await assertTitles(3);
  });

  it('waits for a writer that has begun to count in the old way, and holds up neither it nor readers', async () => {
    const [writer, next] = await Promise.all([connect(), connect()]);
    await writer.query('begin');
    await insert(writer, 'a');
    await insert(writer, 'b');
    const migrating = migrate(db);
    await eventually('the migration waits', async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select from pg_locks where not granted and locktype = 'relation' and mode = 'ShareRowExclusiveLock'",
      );
      return rows.length > 0;
    });
    await insert(writer, 'c');
    const writing = insert(next, 'd');
    assert.equal((await readCatalogCounts(db)).titles, 0);
    await writer.query('commit');
    await writing;
    assert.equal((await migrating)[0], MIGRATION);
    await assertTitles(4);
    await next.query('begin');
    for (const svcId of ['e', 'f', 'g']) await insert(next, svcId);
    await next.query('commit');
    await assertTitles(7);
  });

  it('lets servers read and writers write while a dump keeps it waiting', async () => {
    const [dump, writer] = await Promise.all([connect(), connect()]);
    await db.raw(`grant select on catalog_counts to ${ROLE}`);
    await dump.query('begin isolation level repeatable read; select * from public.catalog_counts');
    const migrating = migrate(db);
    const server = open(STATEMENT_TIMEOUT_MS);
    try {
      let refusals = 0;
      for (let i = 0; i < 40; i += 1) {
        await readCatalogCounts(server);
        await writer.query(`set statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
        await insert(writer, `t${i}`);
        const { rows } = await server.raw<{ rows: unknown[] }>(
          "select from pg_locks where not granted and mode = 'AccessExclusiveLock'",
        );
        refusals += rows.length;
      }
      await eventually('the migration has tried', async () => {
        const { rows } = await server.raw<{ rows: unknown[] }>(
          "select from pg_locks where not granted and mode = 'AccessExclusiveLock'",
        );
        return rows.length + refusals > 0;
      });
      assert.equal((await pendingMigrations(db))[0], MIGRATION);
      await dump.query('commit');
      assert.equal((await migrating)[0], MIGRATION);
    } finally {
      await server.destroy();
    }
    await assertTitles(40);
  });

  it('takes longer than a statement of a server where a server that starts applies it', async () => {
    const writer = await connect();
    await writer.query('begin');
    await insert(writer, 'a');
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
    await eventually('the migration waits', async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'",
      );
      return rows.length > 0;
    });
    await writer.query('commit');
    const started = await starting;
    await started.close();
    assert.equal(started.applied[0], MIGRATION);
  });

  it('leaves roles that servers and commands run as what they call, and takes the rest from everybody', async () => {
    const session = await connect();
    await session.query('create table own_before (i integer)');
    // As earlier versions left them.
    await db.raw(`
      grant execute on all functions in schema public to public;
      revoke execute on function catalog_counts_add(bigint[]), catalog_counts_note(bigint[]) from public`);
    await migrate(db);
    await session.query('select catalog_quiet_clock(), catalog_lock_writers()');
    await assert.rejects(session.query('create table own_after (i integer)'), { code: '42501' });
    await insert(session, 'a');
    await db.raw(`revoke insert, select on titles from ${ROLE}; create role ${ROLE}_without`);
    try {
      await session.query(`reset role; set role ${ROLE}_without`);
      for (const f of ['catalog_quiet_clock()', 'catalog_lock_writers()']) {
        await assert.rejects(session.query(`select ${f}`), { code: '42501' });
      }
      const { rows: callable } = await session.query(
        `select oid::regprocedure::text from pg_proc
          where pronamespace = 'public'::regnamespace and has_function_privilege(oid, 'execute')`,
      );
      assert.deepEqual(callable, []);
    } finally {
      await db.raw(`drop role ${ROLE}_without`);
    }
  });
});
