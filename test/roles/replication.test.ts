import assert from 'node:assert/strict';
import pg from 'pg';
import { readCatalogCounts } from '../../src/catalog/counts.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { eventually } from '../support/eventually.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';

const STAMP = '2001-01-01T00:00:00.000000Z';

describe('logical replication into the tables of the service', () => {
  let postgres: TestPostgres;
  let db: ReturnType<typeof openDatabase>;
  /** The database that is replicated from: tables alone. */
  let origin: pg.Client;
  let session: pg.Client;
  let heard = 0;

  before(async () => {
    postgres = await startPostgres();
    const admin = await connect(postgres.url);
    await admin.query('alter system set wal_level = logical');
    await admin.query('create database origin');
    await admin.end();
    await postgres.restart();
    const originUrl = new URL(postgres.url);
    originUrl.pathname = '/origin';

    db = openDatabase({
      address: postgres.url,
      applicationName: 'test',
      poolSize: 4,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    for (let i = 0; i < 2; i += 1) await createKey(db, { developerId: id, planId: 'free' });

    origin = await connect(originUrl.href);
    await origin.query(`
      create table titles (svc_id text primary key, media_type text, title text, created_at timestamptz, updated_at timestamptz);
      create table api_keys (id integer primary key, prefix text, revoked_at timestamptz);
      create publication copy for all tables`);
    const keys = await db('api_keys').select('id', 'prefix');
    for (const { id, prefix } of keys) await origin.query('insert into api_keys values ($1, $2)', [id, prefix]);
    await origin.query("select pg_create_logical_replication_slot('copy', 'pgoutput')");

    session = await connect(postgres.url);
    session.on('notification', () => (heard += 1));
    await session.query('listen catalog_callers');
    await session.query(
      `create subscription copy connection ${pg.escapeLiteral(originUrl.href)} publication copy
         with (create_slot = false, slot_name = 'copy', copy_data = false)`,
    );
  });

  after(async () => {
    await session.query('alter subscription copy disable; alter subscription copy set (slot_name = none)');
    await session.query('drop subscription copy');
    await Promise.all([session.end(), origin.end(), db.destroy()]);
    await postgres.stop('immediate');
  });

  async function connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  it('brings titles with the stamps that they come with, and counts none', async () => {
    await origin.query(`insert into titles values ('a', 'movie', 'A', '${STAMP}', '${STAMP}')`);
    await eventually('the title has come', async () => (await db('titles')).length === 1);
    assert.deepEqual(await db('titles').pluck('updated_at'), [STAMP]);
    assert.equal((await readCatalogCounts(db)).titles, 0);
  });

  it('announces keys that it revokes and removes', async () => {
    await origin.query('update api_keys set revoked_at = now() where id = 1');
    await eventually('the revocation is heard of', () => heard === 1);
    await origin.query('delete from api_keys where id = 2');
    await eventually('the removal is heard of', () => heard === 2);
  });

  it('stops at the removal of a title', async () => {
    await origin.query('delete from titles');
    await eventually('it has failed', async () => {
      const { rows } = await session.query<{ failures: string }>(
        'select apply_error_count as failures from pg_stat_subscription_stats',
      );
      return Number(rows[0]?.failures) > 0;
    });
    assert.equal((await db('titles')).length, 1);
  });
});
