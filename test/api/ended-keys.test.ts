import assert from 'node:assert/strict';
import type { EndReason } from '../../src/admission/callers.js';
import { suspendDeveloper } from '../../src/developers/developers.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { listFailures } from '../../src/usage/failed-requests.js';
import { readUsage } from '../../src/usage/read-usage.js';
import { appendUsage } from '../../src/usage/usage-log.js';
import { nonZero, scrape } from '../support/http/exposition.js';
import { assertProblem } from '../support/problem.js';
import { testWorld } from '../support/world.js';

const HOUR_MS = 3_600_000;

/** The times at which the keys of the tests end. */
const [THEN, EARLIER] = ['2026-03-09T04:02:59Z', '2026-03-08T23:00:00Z'];
const ON = 'on 2026-03-09 at 04:02 UTC';
const ADVICE = 'Create another key in the developer settings.';

describe('a request with a key that has ended', () => {
  const world = testWorld();
  const end = async ({ prefix }: CreatedKey, columns: Record<string, string>): Promise<unknown> =>
    world
      .db('api_keys')
      .where({ prefix })
      .update({ created_at: '2026-01-01Z', ...columns });
  const roll = async (key: CreatedKey): Promise<string> => (await rollKey(world.db, key.prefix, 60)).successor.prefix;
  const suspend = async ({ developerId }: CreatedKey): Promise<void> => {
    await suspendDeveloper(world.db, developerId);
    await world.db('developers').where({ id: developerId }).update({ suspended_at: THEN });
  };

  /** The ways in which a key ends. Each returns the expected detail. */
  const ENDINGS: readonly (readonly [EndReason, (key: CreatedKey) => Promise<string>])[] = [
    [
      'revoked',
      async (key) => {
        await end(key, { revoked_at: THEN, expires_at: EARLIER });
        return `This API key was revoked ${ON}. ${ADVICE}`;
      },
    ],
    [
      'revoked',
      async (key) => {
        const other = await roll(key);
        await end(key, { revoked_at: THEN });
        return `This API key was replaced by ${other} and was revoked ${ON}. Use its replacement.`;
      },
    ],
    [
      'expired',
      async (key) => {
        await end(key, { expires_at: THEN });
        return `This API key expired ${ON}. ${ADVICE}`;
      },
    ],
    [
      'expired',
      async (key) => {
        const other = await roll(key);
        await end(key, { expires_at: THEN });
        return `This API key was replaced by ${other} and expired ${ON}. Use its replacement.`;
      },
    ],
    [
      'suspended',
      async (key) => {
        await suspend(key);
        return `The account of this API key was suspended ${ON}. Contact the operator.`;
      },
    ],
    [
      'suspended',
      async (key) => {
        await suspend(key);
        await revokeKey(world.db, key.prefix);
        return `The account of this API key was suspended ${ON}. Contact the operator.`;
      },
    ],
  ];

  it('is refused with the reason, counts for its key and no quota, and is in the logs of its developer and of the server', async () => {
    const service = await world.startService({ settings: { METRICS_ADDRESS: '127.0.0.1:0' } });
    const failedKeys: Record<string, number> = {};
    for (const [reason, act] of ENDINGS) {
      const key = await world.newKey();
      const { prefix } = key;
      const detail = await act(key);
      const headers = { 'x-api-key': key.key };
      const replies = [
        await service.get('/api/v1/me', { headers }),
        await service.get('/api/v1/titles/%zz', { headers }),
        await service.get('/api/v1/nope', { headers }),
      ];
      for (const reply of replies) {
        assertProblem(reply, 'invalid_api_key', {
          detail,
          headers: {
            vary: 'Authorization, X-API-Key',
            'www-authenticate': 'Bearer realm="catalog", error="invalid_token"',
            ratelimit: undefined,
            'ratelimit-policy': undefined,
          },
        });
        const id = String(reply.headers['x-request-id']);
        const line = service.logged.find((each) => each.includes(id)) ?? assert.fail();
        const logged = JSON.parse(line) as { key_prefix: string; reason: string };
        assert.deepEqual([logged.key_prefix, logged.reason], [prefix, reason]);
      }
      const label = `catalog_failed_keys_total{reason="${reason}"}`;
      failedKeys[label] = (failedKeys[label] ?? 0) + replies.length;
    }
    assert.deepEqual(nonZero(await scrape(`${service.operatorUrl}/metrics`), 'catalog_failed_keys_total'), failedKeys);
    await service.stop();
    const keys = await world.db('api_keys').whereNotNull('last_refused_at').orderBy('id');
    assert.equal(keys.length, ENDINGS.length);
    for (const { prefix, developer_id: developerId, last_used_at: usedAt, last_refused_at: refusedAt } of keys as {
      prefix: string;
      developer_id: number;
      last_used_at: string | null;
      last_refused_at: string;
    }[]) {
      assert.equal(usedAt, null);
      assert.ok(Math.abs(Date.parse(refusedAt) - Date.now()) < HOUR_MS, refusedAt);
      const { ways } = await readUsage(world.db, { developerId, keyPrefix: prefix }, '24h', { limit: 1 });
      assert.deepEqual(ways.map(({ operation, outcome, requests }) => [operation, outcome, requests]).toSorted(), [
        ['', 'invalid_api_key', 1],
        ['getMe', 'invalid_api_key', 1],
        ['getTitle', 'invalid_api_key', 1],
      ]);
      const failures = await listFailures(world.db, { developerId, limit: 10 });
      assert.deepEqual(
        failures.map(({ keyPrefix, path, status, code }) => [keyPrefix, path, status, code]).toSorted(),
        [
          [prefix, '/api/v1/me', 401, 'invalid_api_key'],
          [prefix, '/api/v1/nope', 401, 'invalid_api_key'],
          [prefix, '/api/v1/titles/%zz', 401, 'invalid_api_key'],
        ],
      );
    }
  });

  it('has the time of its latest refusal, however lately its key was accepted or refused before', async () => {
    const { prefix } = await world.newKey();
    const key = () => world.db('api_keys').where({ prefix });
    const [keyId = 0] = await key().pluck<number[]>('id');
    for (const time of ['now()', "now() - interval '1 hour'"]) {
      await key().update({ last_used_at: world.db.raw('now()'), last_refused_at: world.db.raw(time) });
      const before = await key().first<{ last_used_at: string; last_refused_at: string }>();
      const refused = { keyId, operation: 'getMe', outcome: 'invalid_api_key', requests: 1, msAgo: 0 } as const;
      await appendUsage(world.db, [{ ...refused, hour: Math.floor(Date.now() / HOUR_MS) }]);
      const after = await key().first<{ last_used_at: string; last_refused_at: string }>();
      assert.equal(after.last_used_at, before.last_used_at);
      assert.ok(after.last_refused_at > before.last_refused_at, time);
    }
  });

  it('over the limit of failed keys gets 429, which does not count as one of the plan', async () => {
    const service = await world.startService({ failurePolicy: { limit: 2, windowSeconds: 60 } });
    const key = await world.newKey();
    const { prefix, developerId } = key;
    await revokeKey(world.db, prefix);
    const headers = { 'x-api-key': key.key };
    const statuses: number[] = [];
    for (let i = 0; i < 40; i += 1) statuses.push((await service.get('/api/v1/me', { headers })).status);
    assert.deepEqual(
      statuses,
      Array.from({ length: 40 }, (_, i) => (i < 2 ? 401 : 429)),
    );
    await service.stop();
    const { ways } = await readUsage(world.db, { developerId }, '24h', { limit: 1 });
    assert.deepEqual(ways, [{ ...ways[0], outcome: 'invalid_api_key', requests: 40 }]);
    // Those over the limit are sampled like any kind of failure.
    const kept = await listFailures(world.db, { developerId, limit: 100 });
    assert.ok(kept.length >= 22 && kept.every(({ keyPrefix }) => keyPrefix === prefix), String(kept.length));
  });
});
