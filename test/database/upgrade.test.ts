import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';
import { spendProviderSignIn } from '../../src/accounts/identities.js';
import { createChallenge } from '../../src/accounts/passkey-challenges.js';
import { createOperatorLink } from '../../src/accounts/sign-in-links.js';
import { generateToken } from '../../src/accounts/tokens.js';
import { readCatalogCounts, verifyCounts } from '../../src/catalog/counts.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { removeOldEvents } from '../../src/events/events.js';
import { connectDatabase } from '../../src/platform/postgres/connect.js';
import { migrate, pendingMigrations } from '../../src/platform/postgres/migrations.js';
import { removeRows } from '../../src/platform/postgres/rows.js';
import { connectTo } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import type { TestDatabase } from '../support/postgres.js';
import { createDatabaseBefore } from '../support/postgres/earlier-schema.js';

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

  it('lets servers read and writers write while a dump blocks a migration', async () => {
    await begin('007_key_lives.sql');
    await db.raw(`grant select on api_keys to ${READER}, ${SERVER}`);
    const [dump, server, writer] = await Promise.all([connect(READER), connect(SERVER), connect()]);
    await dump.query('begin isolation level repeatable read; select * from public.api_keys');
    const migrating = migrate(db);
    let attempts = 0;
    for (let i = 0; i < 40 || attempts === 0; i += 1) {
      await server.query('select * from api_keys');
      await insert(writer, `t${i}`);
      const { rows } = await db.raw<{ rows: unknown[] }>(
        "select from pg_locks where not granted and mode = 'AccessExclusiveLock'",
      );
      attempts += rows.length;
    }
    assert.equal((await pendingMigrations(db))[0], '007_key_lives.sql');
    await dump.query('commit');
    assert.equal((await migrating)[0], '007_key_lives.sql');
    assert.deepEqual((await verifyCounts(db)).mismatches, []);
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
});
