import assert from 'node:assert/strict';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { readDailyUsage, type DailyUsage } from '../../src/usage/daily-usage.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { newKey } from '../support/deployments/deployment.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

const LIMIT = 60;

describe('the usage that several servers count', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let services: TestService[];

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    const options = { databaseUrl: database.url, redisUrl: redis.url };
    services = await Promise.all([startService(options), startService(options), startService(options)]);
    // A first request opens connections. On a busy machine that may take longer than a request may.
    const { key } = await newKey(database.db, 'free');
    for (const { url } of services) {
      await eventually('the server answers in time', async () => {
        return (await send(url, '/api/v1/stats', { headers: { 'x-api-key': key } })).status === 200;
      });
    }
  });

  after(() => Promise.all([database.close(), redis.stop()]));

  it('is exact when they have stopped: served, refused and failed requests of each key', async () => {
    const { db } = database;
    const { id: developerId } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    const [one, two] = [
      await createKey(db, { developerId, planId: 'free', label: 'one' }),
      await createKey(db, { developerId, planId: 'free', label: 'two' }),
    ];
    const ask = async (n: number, key: string, path: string): Promise<number> => {
      const service = services[n % services.length] ?? assert.fail();
      return (await send(service.url, `/api/v1${path}`, { headers: { 'x-api-key': key } })).status;
    };
    // A fault of the service: a table that it reads is away.
    await db.raw('alter table titles rename to away');
    const failed = await Promise.all(Array.from({ length: 7 }, (_, n) => ask(n, two.key, '/titles/a')));
    await db.raw('alter table away rename to titles');
    assert.deepEqual(new Set(failed), new Set([500]));
    const notFound = await Promise.all(Array.from({ length: 5 }, (_, n) => ask(n, two.key, '/titles/a')));
    assert.deepEqual(new Set(notFound), new Set([404]));
    const statuses = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(n, one.key, '/me')));
    const served = statuses.filter((status) => status === 200).length;
    assert.equal(served, LIMIT - 12);
    assert.equal(await ask(0, 'svc_wrong', '/me'), 401);

    await Promise.all(services.map((service) => service.stop()));
    const sums = sumByLabel((await readDailyUsage(db, developerId)).rows);
    assert.deepEqual(sums, { one: [served, 100 - served, 0], two: [5, 0, 7] });
  });
});

/** The three counts of each key, over all days: the test may run at midnight. */
function sumByLabel(rows: readonly DailyUsage[]): Record<string, number[]> {
  const sums: Record<string, number[]> = {};
  for (const { label, served, refused, failed } of rows) {
    const before = sums[label ?? ''] ?? [0, 0, 0];
    sums[label ?? ''] = [served, refused, failed].map((count, i) => count + (before[i] ?? 0));
  }
  return sums;
}
