import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { migrate, pendingMigrations } from '../../src/platform/postgres/migrations.js';
import { connectTo } from '../support/database.js';
import { createEmptyDatabase } from '../support/postgres.js';
import { testWorld } from '../support/world.js';
import { dumpSchema } from '../../db/schema.js';

describe('the database schema', () => {
  const world = testWorld({ each: true });

  it('equals db/schema.sql (otherwise run make generate)', async () => {
    const committed = await readFile(new URL('../../db/schema.sql', import.meta.url), 'utf8');
    assert.equal(await dumpSchema(world.url), committed);
  });

  it('is applied once, however many processes migrate at the same time', async () => {
    const empty = await createEmptyDatabase();
    const connections = [1, 2, 3].map(() => connectTo(empty.url, { poolSize: 3 }));
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

  it('can be migrated after a process died while it migrated', async () => {
    const { db } = world;
    await db('migrations_lock').update({ is_locked: 1 });
    await db('migrations').where('name', '003_counts.sql').delete();
    await db.raw('drop table catalog_counts, catalog_counts_waiting');
    await db.raw(`do $$ declare f regprocedure; begin
      for f in select oid::regprocedure from pg_proc where proname ~ '^(titles|catalog)_count(_|s_)' loop
        execute 'drop function ' || f || ' cascade'; end loop; end $$`);
    assert.deepEqual(await migrate(db), ['003_counts.sql']);
  });
});
