import assert from 'node:assert/strict';
import { readUsageByKey, type KeyTotal } from '../../src/usage/read-usage.js';
import { eventually } from '../support/eventually.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

const LIMIT = 60;

describe('the usage that several servers count', () => {
  const world = testWorld({ redis: true });
  const services: TestService[] = [];

  before(async () => {
    for (let i = 0; i < 3; i += 1) services.push(await world.startService());
    // First requests open connections and prepare queries. On a busy machine that may take longer than a request may.
    const { key } = await world.newKey();
    for (const { url } of services) {
      await eventually('the server answers in time', async () => {
        return (await send(url, '/api/v1/titles/a', { headers: { 'x-api-key': key } })).status === 404;
      });
    }
  });

  it('usage is exact after servers stop: served, refused and failed requests of each key', async () => {
    const { db } = world;
    const developerId = await world.newDeveloper();
    const [one, two] = [
      await world.newKey({ developerId, planId: 'free', label: 'one' }),
      await world.newKey({ developerId, planId: 'free', label: 'two' }),
    ];
    const ask = async ({ url }: TestService, key: string, path: string): Promise<number> => {
      return (await send(url, `/api/v1${path}`, { headers: { 'x-api-key': key } })).status;
    };
    // Each server has one request at a time, so that none waits longer than a request may.
    const askAll = async (n: number, key: string, path: string): Promise<number[]> => {
      const statuses: number[] = [];
      let left = n;
      const askInTurn = async (service: TestService): Promise<void> => {
        while (left > 0) {
          left -= 1;
          statuses.push(await ask(service, key, path));
        }
      };
      await Promise.all(services.map(askInTurn));
      return statuses;
    };
    // A fault of the service: a table that it reads is missing.
    await db.raw('alter table titles rename to away');
    assert.deepEqual(new Set(await askAll(7, two.key, '/titles/a')), new Set([500]));
    await db.raw('alter table away rename to titles');
    assert.deepEqual(new Set(await askAll(5, two.key, '/titles/a')), new Set([404]));
    const statuses = await askAll(100, one.key, '/me');
    const served = statuses.filter((status) => status === 200).length;
    assert.equal(served, LIMIT - 12);
    const [service = assert.fail()] = services;
    assert.equal(await ask(service, 'svc_wrong', '/me'), 401);

    await Promise.all(services.map((service) => service.stop()));
    const sums = sumByLabel(await readUsageByKey(db, { developerId }, '30d', { limit: 10, offset: 0 }));
    assert.deepEqual(sums, { one: [served, 100 - served, 0], two: [5, 0, 7] });
  });
});

/** The three counts of each key, over all days: the test may run at midnight. */
function sumByLabel(keys: readonly KeyTotal[]): Record<string, number[]> {
  return Object.fromEntries(
    keys.map(({ label, served, refused, failed }): [string, number[]] => [label ?? '', [served, refused, failed]]),
  );
}
