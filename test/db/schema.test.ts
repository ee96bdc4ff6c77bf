import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { migrate, pendingMigrations } from '../../src/platform/postgres/migrations.js';
import { connectTo } from '../support/database.js';
import { createEmptyDatabase, startPostgres, withClient } from '../support/postgres.js';
import { runCommand } from '../support/programs/command.js';
import { testWorld } from '../support/world.js';
import { dumpSchema } from '../../db/schema.js';

const REFUSED =
  /^catalog: Another program or an unreleased version of this one made this database\. .+ developers and keys stay behind\.\n$/;

const TAKEN =
  /^catalog: The schema public has an object of another program: .+ already exists.*\. Nothing was changed\. .+\n$/;

/** What other programs have in a database, and what "migrate" says of it. */
const FOREIGN: Readonly<Record<string, RegExp>> = {
  "create table migrations as select 1 as id, '2014_users' as migration, 1 as batch": REFUSED,
  'create table migrations (id serial, migration text, batch integer)': REFUSED,
  'create table migrations (id serial, "timestamp" bigint, name text)': REFUSED,
  'create view migrations as select 1 as version': REFUSED,
  'create table sessions (sid text)': TAKEN,
  'create view notices as select 1': TAKEN,
  "create function events_time(at timestamptz) returns text language sql as 'select null'": TAKEN,
};

/** What nobody can remove while something refers to it. Everything else goes with what it belongs to. */
const KEPT = ['api_keys to api_keys', 'api_keys to developers', 'api_keys to plans', 'developers to plans'];

/** Everything that a database has in its schema public, and the rights that new objects get. */
function objectsOf(url: string): Promise<readonly object[]> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ object: string }>(`
      select oid::regclass::text as object from pg_class where relnamespace = 'public'::regnamespace
      union all select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace
      union all select defaclacl::text from pg_default_acl
      union all select nspacl::text from pg_namespace where nspname = 'public'`);
    return rows;
  });
}

describe('the database schema', () => {
  const world = testWorld({ each: true });

  it('equals db/schema.sql (otherwise run make generate)', async () => {
    const committed = await readFile(new URL('../../db/schema.sql', import.meta.url), 'utf8');
    assert.equal(await dumpSchema(world.url), committed);
  });

  it('removes what belongs to a row with it, unless that must be kept', async () => {
    const { rows } = await world.db.raw<{ rows: { reference: string; is_cascade: boolean }[] }>(`
      select format('%s to %s', conrelid::regclass, confrelid::regclass) as reference, confdeltype = 'c' as is_cascade
        from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace order by 1`);
    assert.ok(rows.length > KEPT.length + 3);
    assert.deepEqual(
      rows.flatMap(({ reference, is_cascade: isCascade }) => (isCascade ? [] : reference)),
      KEPT,
    );
  });

  it('is applied once, however many processes migrate at the same time', async () => {
    const empty = await createEmptyDatabase();
    const connections = [1, 2, 3].map(() => connectTo(empty.url, { poolSize: 1 }));
    try {
      const all = await pendingMigrations(connections[0] ?? assert.fail());
      assert.ok(all.length > 0);
      const applied = await Promise.all(connections.map(migrate));
      assert.deepEqual(applied.flat(), all);
      assert.deepEqual(await pendingMigrations(connections[0] ?? assert.fail()), []);
    } finally {
      await Promise.all(connections.map((db) => db.destroy()));
      await empty.drop();
    }
  });

  it('of an unreleased version or another program is refused by every command, with what to do', async () => {
    await world.db('migrations').where({ name: '001_plans_and_keys.sql' }).update({ name: '001_of_an_older_one.sql' });
    for (const args of [['migrate'], ['serve', '--migrate'], ['serve'], ['keys', 'list']]) {
      const { code, stderr } = await runCommand(args, { DATABASE_URL: world.url, METRICS_ADDRESS: 'off' });
      assert.equal(code, 1, args.join(' '));
      assert.match(stderr, REFUSED);
    }
  });

  it('is not created beside objects of another program, and nothing is left of the attempt', async () => {
    for (const [sql, message] of Object.entries(FOREIGN)) {
      const empty = await createEmptyDatabase();
      try {
        await withClient(empty.url, (client) => client.query(sql));
        const before = await objectsOf(empty.url);
        const { code, stderr } = await runCommand(['migrate'], { DATABASE_URL: empty.url });
        assert.equal(code, 1, `${sql}: ${stderr}`);
        assert.match(stderr, message, `${sql}: ${stderr}`);
        assert.deepEqual(await objectsOf(empty.url), before, sql);
      } finally {
        await empty.drop();
      }
    }
  });

  it('is created beside views and tables of another program that have times, which stay as they are', async () => {
    const empty = await createEmptyDatabase();
    try {
      const theirs = "create view theirs as select now() as at; create table own (at timestamptz default 'infinity')";
      await withClient(empty.url, (client) => client.query(theirs));
      const { code, stderr } = await runCommand(['migrate'], { DATABASE_URL: empty.url });
      assert.equal(code, 0, stderr);
      await withClient(empty.url, (client) => client.query('insert into own default values'));
    } finally {
      await empty.drop();
    }
  });

  it('is not created where the encoding of the database cannot hold every title, or counts bytes for characters', async () => {
    for (const encoding of ['SQL_ASCII', 'LATIN1']) {
      const name = `encoding_${encoding.toLowerCase()}`;
      await world.db.raw(
        `create database ${name} template template0 encoding '${encoding}' locale_provider libc lc_collate 'C' lc_ctype 'C'`,
      );
      try {
        const url = Object.assign(new URL(world.url), { pathname: `/${name}` }).href;
        const { code, stderr } = await runCommand(['migrate'], { DATABASE_URL: url });
        assert.deepEqual([code, stderr.includes(`encoding ${encoding}`)], [1, true], stderr);
        await withClient(url, async (client) => {
          const { rows } = await client.query("select from pg_tables where schemaname = 'public'");
          assert.equal(rows.length, 0);
        });
      } finally {
        await world.db.raw(`drop database ${name} with (force)`);
      }
    }
  });

  it('is created by an owner that may not create roles, and gives roles their rights once they are there', async () => {
    const server = await startPostgres();
    try {
      const roles = 'catalog_server, catalog_writer';
      await withClient(server.url, async (client) => {
        await client.query(`drop owned by ${roles}; drop role ${roles}; create role plain login password 'plain'`);
        await client.query('create database plain owner plain');
      });
      const url = Object.assign(new URL(server.urlOf('plain')), { username: 'plain', password: 'plain' });
      const owner = connectTo(url.href, { poolSize: 1 });
      assert.ok((await migrate(owner)).length > 0);
      await withClient(server.url, (client) => client.query('create role catalog_server; create role catalog_writer'));
      // As a restore leaves it on a server without the roles.
      await owner.raw('grant execute on function events_remove_old() to public');
      assert.deepEqual(await migrate(owner), []);
      const { rows } = await owner.raw<{ rows: unknown[] }>(
        `select has_table_privilege('catalog_server', 'api_keys', 'select') as reads_keys,
                has_table_privilege('catalog_writer', 'titles', 'insert') as writes_titles,
                has_function_privilege('pg_monitor', 'events_remove_old()', 'execute') as anyone_removes`,
      );
      assert.deepEqual(rows, [{ reads_keys: true, writes_titles: true, anyone_removes: false }]);
      await owner.destroy();
    } finally {
      await server.stop();
    }
  });
});
