import assert from 'node:assert/strict';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { startService, type TestService } from '../../support/service.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { createCases, prepareIngredients } from './cases.js';
import { differences } from './equality.js';
import { startSubject, type Subject } from './servers.js';

describe('the floor that the benchmark measures against', function () {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let service: TestService;
  let floor: Subject;

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    await addTitles(database.db, 410, 'title');
    const stores = { databaseUrl: database.url, redisUrl: redis.url, folder: await temporaryFolder() };
    [service, floor] = await Promise.all([
      startService({ ...stores, trustedProxies: 1 }),
      startSubject('floor', stores),
    ]);
  });

  after(async () => {
    await floor.stop();
    await service.stop();
    await redis.stop();
    await database.close();
  });

  it('answers every measured request as the service does, byte for byte', async () => {
    const cases = await createCases(service.url, await prepareIngredients(database.db));
    assert.deepEqual(await differences([service.url, floor.url], Object.values(cases)), []);
  });
});
