import assert from 'node:assert/strict';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { ask } from '../support/deployments/deployment.js';
import { eventually } from '../support/eventually.js';
import { readGuide } from '../support/guides.js';
import { scrape } from '../support/http/exposition.js';
import { FILLER, fillNotificationQueue, LEAST_QUEUE_PAGES } from '../support/postgres/full-queue.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

const USAGE = 'catalog_notification_queue_usage_ratio';

describe('announcements of changed keys', () => {
  const world = testWorld({ ownServer: true, redis: true });
  let network: TcpProxy;
  let service: TestService;
  /** Has a connection of its own to the database, which nothing disturbs. */
  let other: TestService;
  let addresses = 0;

  before(async () => {
    await world.db.raw(`alter system set max_notify_queue_pages = ${LEAST_QUEUE_PAGES}`);
    await world.postgres.restart();
    network = await TcpProxy.start(world.url);
    world.defer(() => network.stop());
    service = await world.startService({ databaseUrl: network.url, trustedProxies: 1 });
    other = await world.startService({ trustedProxies: 1, settings: { METRICS_ADDRESS: '127.0.0.1:0' } });
  });

  /** The status with which each server answers a key, asked from an address of its own: refusals are limited. */
  function statuses(key: string): Promise<number[]> {
    addresses += 1;
    const address = `10.0.${addresses >> 8}.${addresses & 255}`;
    return Promise.all([service, other].map(async ({ url }) => (await ask(url, key, address)).status));
  }

  async function cachedKey(): Promise<CreatedKey> {
    const created = await world.newKey();
    await eventually('the key is cached', async () => {
      const before = service.queries.length;
      return (await statuses(created.key)).join() === '200,200' && service.queries.length === before;
    });
    return created;
  }

  async function refused(key: string): Promise<boolean> {
    return (await statuses(key)).join() === '401,401';
  }

  it('a connection that announcements no longer arrive on is replaced', async () => {
    const { key, prefix } = await cachedKey();
    // It stays open, and nothing arrives on it.
    network.swallow();
    await eventually('its loss is noticed', () => service.changes.includes('announcements lost'));
    await eventually('there is another one', () => service.changes.includes('announcements back'));
    const second = await cachedKey();
    for (const revoked of [prefix, second.prefix]) await revokeKey(world.db, revoked);
    await eventually('the revocations are seen', async () => (await refused(key)) && (await refused(second.key)));
  });

  it('a change is announced however long its transaction was open', async () => {
    const { key, prefix } = await cachedKey();
    await world.db.transaction(
      async (late) => {
        await late.raw('select from api_keys');
        // Other changes are announced meanwhile.
        for (const change of [() => revokeKey(late, prefix), () => Promise.resolve()]) {
          const second = await cachedKey();
          await revokeKey(world.db, second.prefix);
          await eventually('the other revocation is seen', () => refused(second.key));
          await change();
        }
        await cachedKey();
        assert.deepEqual(await statuses(key), [200, 200]);
      },
      { isolationLevel: 'repeatable read' },
    );
    await eventually('the revocation is seen', () => refused(key));
  });

  it('metrics show a full queue of notifications until the session that the guide finds is ended', async () => {
    const usage = async (): Promise<number> =>
      (await scrape(`${other.operatorUrl}/metrics`)).series.get(USAGE) ?? assert.fail();
    world.defer(await fillNotificationQueue(world.db, world.url));
    await eventually('the queue is reported as full', async () => (await usage()) > 0.9);
    const guide = await readGuide('operators/runbook');
    const query = /```sql\n(select pid[^`]+pg_stat_activity[^`]+)```/.exec(guide)?.[1] ?? assert.fail();
    const { rows } = await world.db.raw<{ rows: { pid: number; usename: string }[] }>(query);
    assert.equal(rows[0]?.usename, FILLER);
    await world.db.raw('select pg_terminate_backend(?)', [rows[0].pid]);
    await eventually('the queue is empty', async () => (await usage()) < 0.1);
  });
});
