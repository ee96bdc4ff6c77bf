import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { sendAhead } from '../support/http/send-ahead.js';
import { testWorld } from '../support/world.js';

/** The connections of the flood, and the requests that each sends. */
const CONNECTIONS = 16;
const REQUESTS = 48;

/** Keys of one address that are answered with 401 before the others get 429. */
const LIMIT = 30;

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
    const world = testWorld({ redis: store === 'with Redis', service: true });

    it(`a flood of unknown keys is refused while a valid key is served, ${store}`, async () => {
      const { service } = world;
      // The connections to the database are there before the flood begins.
      await Promise.all(Array.from({ length: 20 }, () => service.get('/api/v1/stats')));
      const statuses: Statuses = {};
      const state = { isOver: false };
      const flooded = Promise.all(Array.from({ length: CONNECTIONS }, () => flood(service.url, statuses))).finally(
        () => (state.isOver = true),
      );
      const served: Statuses = {};
      while (!state.isOver) {
        for (const path of ['/api/v1/me', '/api/v1/stats']) {
          const { status } = await service.get(path);
          served[status] = (served[status] ?? 0) + 1;
        }
      }
      await flooded;
      assert.deepEqual(Object.keys(served), ['200']);
      assert.deepEqual(statuses, { 401: LIMIT, 429: CONNECTIONS * REQUESTS - LIMIT });
    });
  });
}
