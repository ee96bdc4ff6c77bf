import assert from 'node:assert/strict';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { startService, type TestService } from '../../support/service.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { createCases, ofPeer, prepareIngredients, useUpQuotas } from './cases.js';
import { dataDifferences, differences } from './equality.js';
import { startSubject, type Subject } from './servers.js';

describe('the servers that the benchmark measures against', function () {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let service: TestService;
  let floor: Subject;
  let koa: Subject;
  let fastify: Subject;

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    await addTitles(database.db, 410, 'title');
    const stores = { databaseUrl: database.url, redisUrl: redis.url, folder: await temporaryFolder() };
    [service, floor, koa, fastify] = await Promise.all([
      startService({ ...stores, trustedProxies: 1 }),
      startSubject('floor', stores),
      startSubject('koa', stores),
      startSubject('fastify', stores),
    ]);
  });

  after(async () => {
    await fastify.stop();
    await koa.stop();
    await floor.stop();
    await service.stop();
    await redis.stop();
    await database.close();
  });

  it('answer every measured request as the service does: the floors byte for byte, Fastify by its data', async () => {
    const cases = await createCases(service.url, await prepareIngredients(database.db));
    for (const { url } of [floor, koa]) {
      assert.deepEqual(await differences([service.url, url], Object.values(cases)), []);
    }
    await useUpQuotas(fastify.url, cases.exhausted.requests);
    assert.deepEqual(await dataDifferences([service.url, fastify.url], ofPeer(cases)), []);
  });
});
