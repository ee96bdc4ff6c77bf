import assert from 'node:assert/strict';
import { readUsageByKey } from '../../src/usage/read-usage.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

const LIMIT = 60;

describe('the usage that several servers count', () => {
  const world = testWorld({ redis: true });

  it('usage is exact after servers stop: served, refused and failed requests of each key', async () => {
    const { db } = world;
    const services: readonly TestService[] = [await world.startService(), await world.startService()];
    const developerId = await world.newDeveloper();
    const one = await world.newKey({ developerId, planId: 'free', label: 'one' });
    const two = await world.newKey({ developerId, planId: 'free', label: 'two' });
    /** Sends requests to all servers, one at a time to each. @returns how many were answered with each status */
    const ask = async (n: number, key: string, path: string): Promise<Record<number, number>> => {
      const statuses: Record<number, number> = {};
      let left = n;
      const askInTurn = async ({ url }: TestService): Promise<void> => {
        while (left > 0) {
          left -= 1;
          const { status } = await send(url, `/api/v1${path}`, { headers: { 'x-api-key': key } });
          statuses[status] = (statuses[status] ?? 0) + 1;
        }
      };
      await Promise.all(services.map(askInTurn));
      return statuses;
    };
    // A fault of the service: a table that it reads is missing.
    await db.raw('alter table titles rename to away');
    assert.deepEqual(await ask(7, two.key, '/titles/a'), { 500: 7 });
    await db.raw('alter table away rename to titles');
    assert.deepEqual(await ask(5, two.key, '/titles/a'), { 404: 5 });
    assert.deepEqual(await ask(100, one.key, '/me'), { 200: LIMIT - 12, 429: 100 - (LIMIT - 12) });
    assert.deepEqual(await ask(1, 'svc_wrong', '/me'), { 401: 1 });

    await Promise.all(services.map((service) => service.stop()));
    const totals = await readUsageByKey(db, { developerId }, '30d', { limit: 10, offset: 0 });
    const sums = totals.map(({ label, served, refused, failed }) => [label, served, refused, failed]);
    assert.deepEqual(sums, [
      ['one', LIMIT - 12, 100 - (LIMIT - 12), 0],
      ['two', 5, 0, 7],
    ]);
  });
});
