import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import pg from 'pg';
import { findCallers } from '../../src/admission/callers.js';
import { listDevelopers } from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { stateOf } from '../../src/keys/key-record.js';
import { listKeys } from '../../src/keys/keys.js';
import { migrate, pendingMigrations } from '../../src/platform/postgres/migrations.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { STEADY_CLOCK } from '../../src/platform/time/steady-clock.js';
import { createDatabaseBefore } from '../support/postgres/earlier-schema.js';
import { eventually } from '../support/eventually.js';
import { hashOf } from '../support/keys/key-hash.js';
import type { TestDatabase } from '../support/postgres.js';

const MIGRATION = '007_key_lives.sql';

/** What a server gives a statement, in milliseconds. */
const STATEMENT_TIMEOUT_MS = 800;

describe('the migration of keys that expire, in an installation at work', () => {
  let database: TestDatabase;
  let db: Knex;
  const { key, prefix, hash } = generateApiKey();

  beforeEach(async () => {
    database = await createDatabaseBefore(MIGRATION);
    db = open(0);
    // The operator has removed the plan that is the default.
    await db('plans').where({ id: 'free' }).delete();
    const [developer] = await db('developers').insert({ project_name: 'P' }).returning<{ id: number }[]>('id');
    await db('api_keys').insert({ prefix, hash, developer_id: developer?.id, plan_id: 'pro' });
  });

  afterEach(async () => {
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

  it('leaves keys as they are, without an end, and developers on the default plan', async () => {
    assert.equal((await migrate(db))[0], MIGRATION);
    const [record, ...others] = await listKeys(db);
    assert.deepEqual(others, []);
    assert.ok(record);
    assert.deepEqual(stateOf(record), { kind: 'active' });
    assert.deepEqual([record.planId, record.expiresAt], ['pro', null]);
    assert.deepEqual(
      (await listDevelopers(db)).map(({ planId }) => planId),
      ['free'],
    );
    assert.equal((await findCallers(db, [hashOf(key)], STEADY_CLOCK)).get(hashOf(key))?.expiresAt, Infinity);
  });

  it('lets servers look keys up while a dump keeps it waiting', async () => {
    const dump = new pg.Client({ connectionString: database.url });
    await dump.connect();
    const server = open(STATEMENT_TIMEOUT_MS);
    try {
      await dump.query('begin isolation level repeatable read; select * from public.api_keys');
      const migrating = migrate(db);
      const isWaiting = async (): Promise<boolean> => {
        const { rows } = await db.raw<{ rows: unknown[] }>(
          "select from pg_locks where not granted and mode = 'AccessExclusiveLock'",
        );
        return rows.length > 0;
      };
      await eventually('the migration waits', isWaiting);
      for (let i = 0; i < 20; i += 1) await server('api_keys').where({ hash }).first('id');
      assert.equal((await pendingMigrations(db))[0], MIGRATION);
      await dump.query('commit');
      assert.equal((await migrating)[0], MIGRATION);
    } finally {
      await dump.end();
      await server.destroy();
    }
  });
});
