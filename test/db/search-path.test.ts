import assert from 'node:assert/strict';
import { connectTo } from '../support/database.js';
import { createEmptyDatabase, withClient } from '../support/postgres.js';
import { runCommand } from '../support/programs/command.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** A table of another program with the name of each of ours. */
const DECOYS = `do $$ declare name text; begin
  for name in select tablename from pg_tables where schemaname = 'public' loop
    execute format('create table if not exists other.%I (decoy integer)', name);
  end loop; end $$`;

describe('a database with its own search path and rights', () => {
  const world = testWorld();

  before(() => addTitles(world.db, 1));

  /** Ways in which an operator sets a search path that does not lead to the service's tables first. */
  const PATHS: readonly { readonly what: string; readonly set: string; readonly options?: string }[] = [
    { what: 'by default, beside a schema of the name of the role', set: 'alter schema other rename to catalog' },
    { what: 'of the database without public', set: 'alter database %I set search_path = other' },
    { what: 'of the database that is empty', set: "alter database %I set search_path = ''" },
    { what: 'of the role', set: 'alter role catalog in database %I set search_path = other, pg_catalog, public' },
    { what: 'of the session', set: '', options: '-c search_path=other' },
  ];

  for (const { what, set, options } of PATHS) {
    it(`servers and commands find their tables with a search path ${what}`, async () => {
      const name = new URL(world.url).pathname.slice(1);
      await world.db.raw(`create schema other; ${DECOYS}; ${set.replace('%I', name)}`);
      const url = new URL(world.url);
      if (options) url.searchParams.set('options', options);
      try {
        const environment = { DATABASE_URL: url.href };
        const migrated = await runCommand(['migrate', '--json'], environment);
        assert.deepEqual([migrated.code, migrated.stderr], [0, '']);
        assert.deepEqual(JSON.parse(migrated.stdout), { applied: [] });
        assert.equal((await runCommand(['stats', 'verify'], environment)).code, 0);
        const service = await world.startService({ databaseUrl: url.href });
        for (const path of ['/api/v1/me', '/api/v1/stats', '/api/v1/titles/title-0001']) {
          assert.equal((await service.get(path)).status, 200, path);
        }
        await service.stop();
      } finally {
        await world.db.raw(`
          alter database ${name} reset search_path; alter role catalog in database ${name} reset search_path;
          drop schema if exists other, catalog cascade`);
      }
    });
  }

  it('a schema of the name of the role, there before the installation, gets nothing of the service', async () => {
    const empty = await createEmptyDatabase();
    try {
      const tables = await withClient(empty.url, async (client) => {
        await client.query('create schema authorization current_user');
        assert.equal((await runCommand(['migrate'], { DATABASE_URL: empty.url })).code, 0);
        const { rows } = await client.query<{ schema: string }>(
          "select distinct schemaname as schema from pg_tables where schemaname !~ '^(pg_|information_schema)'",
        );
        return rows;
      });
      assert.deepEqual(tables, [{ schema: 'public' }]);
      const db = connectTo(empty.url);
      await db.raw('select from api_keys');
      await db.destroy();
    } finally {
      await empty.drop();
    }
  });

  it('a role without rights gets advice about rights, not about migrations, and membership in catalog_server suffices', async () => {
    const { db } = world;
    await db.raw("create role no_member login password 'secret'; revoke all on schema public from public");
    const url = Object.assign(new URL(world.url), { username: 'no_member', password: 'secret' }).href;
    const list = async (): Promise<unknown[]> => {
      const { code, stderr } = await runCommand(['keys', 'list'], { DATABASE_URL: url });
      return [code, /The role in DATABASE_URL may not use .+member of catalog_server/.test(stderr)];
    };
    try {
      assert.deepEqual(await list(), [1, true]);
      await db.raw('grant usage on schema public to no_member');
      assert.deepEqual(await list(), [1, true]);
      await db.raw('revoke usage on schema public from no_member; grant catalog_server to no_member');
      assert.deepEqual(await list(), [0, false]);
    } finally {
      await db.raw('drop role no_member');
    }
  });
});
