import assert from 'node:assert/strict';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startService, type TestService } from '../support/service.js';

describe('the connection for announcements', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let network: TcpProxy;
  let service: TestService;

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    network = await TcpProxy.start(database.url);
    service = await startService({ databaseUrl: network.url, redisUrl: redis.url });
  });

  after(async () => {
    await service.stop();
    await network.stop();
    await redis.stop();
    await database.close();
  });

  async function status(key: string): Promise<number> {
    return (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  it('is tried again and again, so that one that brings nothing any more is noticed and replaced', async () => {
    const { id } = await createDeveloper(database.db, { projectName: 'P', attributionRequired: false });
    const { key, prefix } = await createKey(database.db, { developerId: id, planId: 'free' });
    assert.equal(await status(key), 200);
    // Nobody closes it, and nothing comes.
    network.swallow();
    await eventually('its loss is noticed', () => service.changes.includes('announcements lost'));
    await eventually('there is another one', () => service.changes.includes('announcements back'));
    await eventually('the key is cached', async () => {
      const before = service.queries.length;
      return (await status(key)) === 200 && service.queries.length === before;
    });
    await revokeKey(database.db, prefix);
    await eventually('the revocation is heard of', async () => (await status(key)) === 401);
  });
});
