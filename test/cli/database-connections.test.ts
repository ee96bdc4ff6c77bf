import assert from 'node:assert/strict';
import pg from 'pg';
import { newKey, newPlan } from '../support/deployments/deployment.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startServer, timesLogged, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send, type Reply } from '../support/request.js';

/** Of the database, for the server and for everybody else. */
const LIMIT = 16;

const MANY = 2_000_000_000;

const WARNING = {
  code: 'few_database_connections',
  detail:
    'PostgreSQL has few more free connections than this server may still open. ' +
    'Raise max_connections, or lower DATABASE_POOL_SIZE.',
};

describe('a database with few connections', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let headers: { authorization: string };
  let server: ServerProcess | undefined;
  const others: pg.Client[] = [];

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    const plan = await newPlan(database.db, 'unlimited', MANY, MANY);
    headers = { authorization: `Bearer ${(await newKey(database.db, plan)).key}` };
    // Limits of roles and of databases hold for superusers in no case.
    await database.db.raw("create role few login password 'few' in role pg_read_all_data, pg_write_all_data");
    const { pathname } = new URL(database.url);
    await database.db.raw(`alter database ?? connection limit ${LIMIT}`, [pathname.slice(1)]);
  });

  afterEach(async () => {
    await server?.stop();
    await Promise.all(others.splice(0).map((client) => client.end()));
  });

  after(async () => {
    await database.db.raw('drop owned by few');
    await database.db.raw('drop role few');
    await redis.stop();
    await database.close();
  });

  /** The database, by a role whose connections are limited. */
  function limitedUrl(): string {
    const url = new URL(database.url);
    [url.username, url.password] = ['few', 'few'];
    return url.href;
  }

  async function start(poolSize: number, more: Readonly<Record<string, string>> = {}): Promise<string> {
    server = await startServer({ DATABASE_URL: limitedUrl(), DATABASE_POOL_SIZE: String(poolSize), ...more });
    return server.url;
  }

  /** Takes all connections that are left. @returns how many */
  async function takeTheRest(): Promise<number> {
    for (;;) {
      const client = new pg.Client({ connectionString: limitedUrl() });
      client.on('error', () => undefined);
      try {
        await client.connect();
      } catch (error) {
        assert.equal((error as { code?: string }).code, '53300');
        return others.length;
      }
      others.push(client);
    }
  }

  async function readiness(url: string): Promise<unknown> {
    const { status, json } = await send(url, '/readyz');
    return { status, json };
  }

  it('is used by requests in turn: none fails at once because no more connections are given', async () => {
    const url = await start(10);
    assert.equal((await send(url, '/api/v1/me', { headers })).status, 200);
    assert.ok((await takeTheRest()) > 0);
    const replies = await Promise.all(
      Array.from({ length: 12 }, (): Promise<Reply> => send(url, '/api/v1/stats', { headers })),
    );
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array(12).fill(200),
    );
  });

  it('is not reported where there are enough for all that the server may ask for', async () => {
    const url = await start(5);
    assert.deepEqual(await readiness(url), { status: 200, json: { status: 'ready', checks: { database: 'up' } } });
    assert.equal(timesLogged(server ?? assert.fail(), 'few database connections'), 0);
  });

  it('is reported at the start and by readiness, which stays ready', async () => {
    const url = await start(LIMIT + 1);
    const json = { status: 'ready', warnings: [WARNING], checks: { database: 'up' } };
    assert.deepEqual(await readiness(url), { status: 200, json });
    const { stdout } = server?.output ?? assert.fail();
    assert.ok(stdout.indexOf('"msg":"few database connections') < stdout.indexOf('"msg":"listening"'));
    assert.equal(timesLogged(server ?? assert.fail(), 'few database connections'), 1);
    assert.equal((await send(url, '/api/v1/me', { headers })).status, 200);
  });

  it('is reported also where others have taken most of its connections', async () => {
    assert.ok((await takeTheRest()) > 8);
    await Promise.all(others.splice(0, 6).map((client) => client.end()));
    const url = await start(5);
    await eventually('readiness tells', async () => {
      const { json } = (await readiness(url)) as { json: { warnings?: unknown } };
      return 'warnings' in json;
    });
  });

  it('is held against all workers together', async () => {
    const url = await start(5, { WORKERS: '3', REDIS_URL: redis.url });
    const { json } = (await readiness(url)) as { json: { warnings?: unknown } };
    assert.deepEqual(json.warnings, [WARNING]);
  });
});
