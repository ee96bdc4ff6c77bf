import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { readBounds } from '../../src/catalog/feed.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { migrate } from '../../src/platform/postgres/migrations.js';
import { addTitles } from '../support/titles.js';
import type { TestDatabase } from '../support/postgres.js';
import { createDatabaseBefore } from '../support/postgres/earlier-schema.js';

const MIGRATION = '006_feed_beginning.sql';

function open({ url }: TestDatabase): Knex {
  return openDatabase({
    address: url,
    applicationName: 'test',
    poolSize: 2,
    acquireTimeoutMs: 10_000,
    statementTimeoutMs: 0,
  });
}

describe('the migration to stamps of six decimals', () => {
  it('keeps the stamps that are there, and stamps later ones after them', async () => {
    const database = await createDatabaseBefore('011_stamps_with_six_decimals.sql');
    const db = open(database);
    try {
      await addTitles(db, 100, 'old');
      const before = await db('titles').orderBy('updated_at').pluck<string[]>('updated_at');
      assert.equal(before.filter((stamp) => stamp.endsWith('0Z')).length, 10);
      await migrate(db);
      await addTitles(db, 100, 'new');
      const after = await db('titles').orderBy('updated_at').pluck<string[]>('updated_at');
      assert.deepEqual(after.slice(0, 100), before);
      assert.equal(after.filter((stamp) => stamp.endsWith('0Z')).length, 10);
    } finally {
      await db.destroy();
      await database.drop();
    }
  });
});

describe('the migration of the beginning of the feed', () => {
  it('changes no position, and lets roles that can read titles read the beginning', async () => {
    const database = await createDatabaseBefore(MIGRATION);
    const db = open(database);
    try {
      await db.raw('create role reads_titles; create role reads_plans');
      await db.raw('grant select on titles to reads_titles; grant select on plans to reads_plans');
      assert.equal((await migrate(db))[0], MIGRATION);
      assert.deepEqual(await readBounds(db), { start: 0n, newest: 0n });
      const { rows } = await db.raw<{ rows: unknown[] }>(`
        select role, privilege, has_table_privilege(role, 'catalog_feed', privilege) as may
          from unnest(array['reads_titles', 'reads_plans']) role, unnest(array['select', 'update']) privilege
         order by role desc, privilege`);
      assert.deepEqual(rows, [
        { role: 'reads_titles', privilege: 'select', may: true },
        { role: 'reads_titles', privilege: 'update', may: false },
        { role: 'reads_plans', privilege: 'select', may: false },
        { role: 'reads_plans', privilege: 'update', may: false },
      ]);
    } finally {
      await db.raw('drop owned by reads_titles, reads_plans; drop role reads_titles, reads_plans');
      await db.destroy();
      await database.drop();
    }
  });
});
