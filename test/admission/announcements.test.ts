import assert from 'node:assert/strict';
import pg from 'pg';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { ask, newKey, newPlan } from '../support/deployments/deployment.js';
import { eventually } from '../support/eventually.js';
import { readGuide } from '../support/guides.js';
import { startMeasuredServer, type MeasuredServer } from '../support/http/exposition.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { runProgram } from '../support/program.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startService, type TestService } from '../support/service.js';

/** The least that PostgreSQL takes, so that the queue is full soon. */
const QUEUE_PAGES = 64;

const USAGE = 'catalog_notification_queue_usage_ratio';

describe('announcements of changed keys', () => {
  let postgres: TestPostgres;
  let db: ReturnType<typeof openDatabase>;
  let redis: TestRedis;
  let network: TcpProxy;
  let service: TestService;
  let server: MeasuredServer;
  let addresses = 0;

  before(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    db = openDatabase({
      address: postgres.url,
      applicationName: 'test',
      poolSize: 4,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    await db.raw(`alter system set max_notify_queue_pages = ${QUEUE_PAGES}`);
    await postgres.restart();
    await newPlan(db, 'roomy', 1_000_000, 1_000_000);
    network = await TcpProxy.start(postgres.url);
    service = await startService({ databaseUrl: network.url, redisUrl: redis.url, trustedProxies: 1 });
    server = await startMeasuredServer({ DATABASE_URL: postgres.url, REDIS_URL: redis.url, TRUST_PROXY: '1' });
  });

  after(async () => {
    await Promise.all([server.stop(), service.stop()]);
    await network.stop();
    await redis.stop();
    await db.destroy();
    await postgres.stop('immediate');
  });

  /** The status with which each server answers a key, asked from an address of its own: refusals are limited. */
  function statuses(key: string): Promise<number[]> {
    addresses += 1;
    const address = `10.0.${addresses >> 8}.${addresses & 255}`;
    return Promise.all([service, server].map(async ({ url }) => (await ask(url, key, address)).status));
  }

  async function cachedKey(): Promise<CreatedKey> {
    const created = await newKey(db, 'roomy');
    await eventually('the key is cached', async () => {
      const before = service.queries.length;
      return (await statuses(created.key)).join() === '200,200' && service.queries.length === before;
    });
    return created;
  }

  async function refused(key: string): Promise<boolean> {
    return (await statuses(key)).join() === '401,401';
  }

  it('come on a connection that is tried again and again, so that one that brings nothing any more is replaced', async () => {
    const { key, prefix } = await cachedKey();
    // Nobody closes it, and nothing comes.
    network.swallow();
    await eventually('its loss is noticed', () => service.changes.includes('announcements lost'));
    await eventually('there is another one', () => service.changes.includes('announcements back'));
    const other = await cachedKey();
    for (const revoked of [prefix, other.prefix]) await revokeKey(db, revoked);
    await eventually('the revocations are seen', async () => (await refused(key)) && (await refused(other.key)));
  });

  it('come of a transaction that was open for long', async () => {
    const { key, prefix } = await cachedKey();
    await db.transaction(
      async (late) => {
        await late.raw('select from api_keys');
        // Others are announced before and after, and seen.
        for (const change of [() => revokeKey(late, prefix), () => Promise.resolve()]) {
          const { key: other, prefix: otherPrefix } = await cachedKey();
          await revokeKey(db, otherPrefix);
          await eventually('the other revocation is seen', () => refused(other));
          await change();
        }
        await cachedKey();
        assert.deepEqual(await statuses(key), [200, 200]);
      },
      { isolationLevel: 'repeatable read' },
    );
    await eventually('the revocation is seen', () => refused(key));
  });

  describe('while a role that may only connect has filled the queue of notifications', () => {
    let blocker: pg.Client;

    before(async () => {
      await db.raw("create role guest login password 'guest'");
      const url = new URL(postgres.url);
      [url.username, url.password] = ['guest', 'guest'];
      const connect = async (): Promise<pg.Client> => {
        const client = new pg.Client({ connectionString: url.href });
        client.on('error', () => undefined);
        await client.connect();
        return client;
      };
      blocker = await connect();
      await blocker.query('listen anything');
      await blocker.query('begin');
      const filler = await connect();
      const fill = async (): Promise<never> => {
        for (;;) await filler.query("select pg_notify('anything', repeat('x', 7900))");
      };
      await assert.rejects(fill(), { code: '54000' });
      await filler.end();
      service.changes.length = 0;
    });

    it('a key is revoked, and every server refuses it on the very next request', async () => {
      const { key, prefix } = await cachedKey();
      const environment = { DATABASE_URL: postgres.url, REDIS_URL: redis.url };
      const { code, stderr } = await runProgram(['keys', 'revoke', prefix], environment);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.deepEqual(await statuses(key), [401, 401]);
    });

    it('servers notice changes in plain SQL within about a second, use their caches, and leave few rows behind', async () => {
      for (let trial = 0; trial < 3; trial += 1) {
        const { key, prefix } = await cachedKey();
        await db('api_keys').where({ prefix }).update({ revoked_at: new Date() });
        await eventually('the revocation is seen', () => refused(key), 2_500);
      }
      assert.ok(!service.changes.includes('announcements lost'));
      assert.equal((await db('caller_changes')).length, 1);
    });

    it('metrics show it, until the session that the guide finds is ended', async () => {
      const usage = async (): Promise<number> => (await server.scrape()).series.get(USAGE) ?? assert.fail();
      assert.ok((await usage()) > 0.9);
      const guide = await readGuide('operators/runbook');
      const query = /```sql\n(select pid[^`]+pg_stat_activity[^`]+)```/.exec(guide)?.[1] ?? assert.fail();
      const { rows } = await db.raw<{ rows: { pid: number; usename: string }[] }>(query);
      assert.equal(rows[0]?.usename, 'guest');
      await db.raw('select pg_terminate_backend(?)', [rows[0].pid]);
      await eventually('the queue is empty', async () => (await usage()) < 0.1);
    });
  });
});
