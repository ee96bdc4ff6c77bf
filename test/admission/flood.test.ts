import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { sendAhead } from '../support/http/send-ahead.js';
import { send } from '../support/request.js';

/** The connections of the flood, and the requests that each sends. */
const CONNECTIONS = 16;
const REQUESTS = 550;

/** Keys of one address that are answered with 401 before the others get 429. */
const LIMIT = 30;

const UNLIMITED = { name: 'Unlimited', requestsPerMinute: 2_000_000_000, requestsPerDay: 2_000_000_000 };

type Statuses = Record<string, number>;

/** Sends many unknown keys on one connection. @param statuses - counts what they are answered with */
async function flood(url: string, statuses: Statuses): Promise<void> {
  const requests = Array.from(
    { length: REQUESTS },
    () => `GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${generateApiKey().key}\r\n\r\n`,
  );
  for (const status of await sendAhead(url, requests)) statuses[status] = (statuses[status] ?? 0) + 1;
}

for (const store of ['without Redis', 'with Redis'] as const) {
  describe(`a flood of unknown keys, ${store}`, () => {
    let database: OpenTestDatabase;
    let redis: TestRedis | undefined;
    let server: ServerProcess;
    let key: string;

    before(async () => {
      database = await openTestDatabase();
      redis = store === 'with Redis' ? await startRedis() : undefined;
      await setPlan(database.db, 'unlimited', { ...UNLIMITED, commercialUse: false });
      const { id } = await createDeveloper(database.db, { projectName: 'P', attributionRequired: false });
      ({ key } = await createKey(database.db, { developerId: id, planId: 'unlimited' }));
      server = await startServer({ DATABASE_URL: database.url, ...(redis && { REDIS_URL: redis.url }) });
    });

    after(async () => {
      await server.stop();
      await redis?.stop();
      await database.close();
    });

    it('is refused, and a valid key is served all the while', async () => {
      // The connections to the database are there before the flood begins.
      await Promise.all(
        Array.from({ length: 20 }, () => send(server.url, '/api/v1/stats', { headers: { 'x-api-key': key } })),
      );
      const statuses: Statuses = {};
      const state = { isOver: false };
      const flooded = Promise.all(Array.from({ length: CONNECTIONS }, () => flood(server.url, statuses))).finally(
        () => (state.isOver = true),
      );
      const served: Statuses = {};
      while (!state.isOver) {
        for (const path of ['/api/v1/me', '/api/v1/stats']) {
          const { status } = await send(server.url, path, { headers: { 'x-api-key': key } });
          served[status] = (served[status] ?? 0) + 1;
        }
      }
      await flooded;
      assert.deepEqual(Object.keys(served), ['200']);
      assert.deepEqual(statuses, { 401: LIMIT, 429: CONNECTIONS * REQUESTS - LIMIT });
    });
  });
}
