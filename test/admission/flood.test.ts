import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send } from '../support/request.js';

/** The connections of the flood. Each sends as many requests ahead as a connection may, again and again. */
const CONNECTIONS = 16;
const AHEAD = 16;
const ROUNDS = 34;

/** Keys of one address that are answered with 401 before the others get 429. */
const LIMIT = 30;

/** Bound on the flood, in milliseconds. */
const TIMEOUT_MS = 50_000;

const UNLIMITED = { name: 'Unlimited', requestsPerMinute: 2_000_000_000, requestsPerDay: 2_000_000_000 };

type Statuses = Record<string, number>;

/** Sends many unknown keys on one connection. @param statuses - counts what they are answered with */
function flood(url: string, statuses: Statuses): Promise<void> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let received = '';
  let rounds = 0;
  const sendRound = (): void => {
    rounds += 1;
    for (let i = 0; i < AHEAD; i += 1) {
      socket.write(`GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${generateApiKey().key}\r\n\r\n`);
    }
  };
  const answers = (): string[] => Array.from(received.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status = '']) => status);
  return new Promise((resolve, reject) => {
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('the flood was not answered')));
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      // A status line may be cut in two. The next chunk completes it.
      if (answers().length < rounds * AHEAD) return;
      if (rounds < ROUNDS) sendRound();
      else socket.end();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      for (const status of answers()) statuses[status] = (statuses[status] ?? 0) + 1;
      resolve();
    });
    sendRound();
  });
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
      assert.deepEqual(statuses, { 401: LIMIT, 429: CONNECTIONS * AHEAD * ROUNDS - LIMIT });
    });
  });
}
