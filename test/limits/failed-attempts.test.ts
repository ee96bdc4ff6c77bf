import assert from 'node:assert/strict';
import { revokeKey } from '../../src/keys/revoke.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { FailedAttempts } from '../../src/limits/failed-attempts.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { assertProblem } from '../support/problem.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send, type Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

const LIMIT = 30;

for (const store of ['in this process', 'in Redis'] as const) {
  describe(`keys that fail, counted ${store}`, () => {
    let redis: TestRedis | undefined;
    let services: TestService[];
    let addresses = 0;

    before(async () => {
      redis = store === 'in Redis' ? await startRedis() : undefined;
      const options = { trustedProxies: 1, ...(redis && { redisUrl: redis.url }) };
      const first = await startService(options);
      services = [first, await startService({ ...options, databaseUrl: first.databaseUrl })];
    });

    after(async () => {
      for (const service of services.toReversed()) await service.stop();
      await redis?.stop();
    });

    function newAddress(): string {
      addresses += 1;
      return `192.0.2.${addresses}`;
    }

    function ask(key: string | undefined, address: string, service = services[0], path = '/api/v1/me'): Promise<Reply> {
      const headers = { 'x-forwarded-for': address, ...(key !== undefined && { 'x-api-key': key }) };
      return service?.get(path, { headers }) ?? assert.fail();
    }

    async function fail(times: number, address: string, service = services[0]): Promise<number[]> {
      const replies = await Promise.all(
        Array.from({ length: times }, () => ask(generateApiKey().key, address, service)),
      );
      return replies.map(({ status }) => status);
    }

    it(`get 401 ${LIMIT} times a minute, and 429 without a look from then on`, async () => {
      const address = newAddress();
      assert.deepEqual(new Set(await fail(LIMIT, address)), new Set([401]));
      const reply = await ask(generateApiKey().key, address);
      const seconds = String(reply.headers['retry-after']);
      assert.match(seconds, /^(?:60|5\d)$/);
      assertProblem(reply, 'rate_limit_exceeded', {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        detail: `Too many keys from your address have failed. Send a valid key, which is served at once, or wait ${seconds} s, as Retry-After says.`,
        members: { 'violated-policies': ['failures'] },
        headers: {
          'ratelimit-policy': `"failures";q=${LIMIT};w=60`,
          ratelimit: `"failures";r=0;t=${seconds}`,
          'www-authenticate': undefined,
          vary: 'Authorization, X-API-Key',
        },
      });
      assert.deepEqual(new Set(await fail(50, address)), new Set([429]));
    });

    it('do not keep a valid key from being served, from the same address', async () => {
      const address = newAddress();
      const key = services[0]?.key ?? '';
      await fail(LIMIT + 5, address);
      const replies = await Promise.all(
        Array.from({ length: 40 }, (_, i) => ask(i % 2 === 0 ? key : generateApiKey().key, address)),
      );
      assert.deepEqual(
        replies.map(({ status }) => status),
        replies.map((_, i) => (i % 2 === 0 ? 200 : 429)),
      );
    });

    it('count for their own address alone', async () => {
      await fail(LIMIT + 5, newAddress());
      assert.deepEqual(await fail(1, newAddress()), [401]);
    });

    it('count where a key was revoked, too', async () => {
      const address = newAddress();
      const service = services[0] ?? assert.fail();
      const { key } = await service.newKey();
      assert.equal((await ask(key, address)).status, 200);
      await revokeKey(service.db, key.slice(0, 12));
      await fail(LIMIT, address);
      assert.equal((await ask(key, address)).status, 429);
    });

    it('are not what is no key, or none, and those cost no query', async () => {
      const address = newAddress();
      const service = services[0] ?? assert.fail();
      const queries = service.queries.length;
      for (let i = 0; i < LIMIT + 5; i += 1) {
        assert.equal((await ask('svc_wrong', address)).status, 401);
        assert.equal((await ask(undefined, address)).status, 401);
        assert.equal((await ask('a', address, service, '/api/v1/me?api_key=b')).status, 401);
      }
      assert.equal(service.queries.length, queries);
      assert.deepEqual(await fail(1, address), [401]);
    });

    it('count apart from reports of unknown keys and from failed sign-ins, of which each has a limit of its own', async () => {
      const url = services[0]?.url ?? assert.fail();
      const post = async (path: string, type: string, body: string, address: string): Promise<number> => {
        const headers = { 'content-type': type, 'sec-fetch-site': 'same-origin', 'x-forwarded-for': address };
        return (await send(url, path, { method: 'POST', headers, body })).status;
      };
      const kinds: Record<string, (address: string) => Promise<number>> = {
        key: async (address) => (await ask(generateApiKey().key, address)).status,
        report: (address) =>
          post('/revoke-leaked-key', 'application/json', JSON.stringify({ key: generateApiKey().key }), address),
        signIn: (address) =>
          post('/sign-in/link', 'application/x-www-form-urlencoded', `token=${'f'.repeat(64)}`, address),
      };
      for (const [kind, attempt] of Object.entries(kinds)) {
        const address = newAddress();
        let attempts = 1;
        while ((await attempt(address)) !== 429 && attempts <= LIMIT) attempts += 1;
        assert.ok(attempts > 10, `${kind}: 429 at attempt ${attempts}`);
        assert.equal(await attempt(address), 429);
        for (const [other, attemptOther] of Object.entries(kinds)) {
          if (other !== kind) assert.notEqual(await attemptOther(address), 429, `${other} after ${kind}`);
        }
      }
    });

    it('shut nobody out for longer than the window, however many more attempts get 429 meanwhile', async () => {
      const link = redis && new RedisLink(redis.address, () => undefined);
      try {
        await link?.settled();
        // Two servers: the second remembers nothing that the first has seen.
        const policy = { limit: 2, windowSeconds: 1 };
        const servers = [new FailedAttempts(link, policy, 'window'), new FailedAttempts(link, policy, 'window')];
        const address = newAddress();
        for (const attempts of servers) {
          for (let i = 0; i < 100; i += 1) await attempts.count(address);
          await eventually(
            'the address may fail again, though it never stopped',
            async () => (await attempts.count(address)).kind === 'within_limit',
            5_000,
          );
        }
      } finally {
        link?.close();
      }
    });

    it('a check finds the limit reached by the failures of an address, and is no failure itself', async () => {
      const link = redis && new RedisLink(redis.address, () => undefined);
      try {
        await link?.settled();
        const attempts = new FailedAttempts(link, { limit: 2, windowSeconds: 60 }, 'checked');
        const address = newAddress();
        for (const failures of [0, 1]) {
          for (let i = 0; i < 3; i += 1) assert.equal((await attempts.check(address)).kind, 'within_limit');
          assert.equal((await attempts.count(address)).kind, 'within_limit', `after ${failures}`);
        }
        const result = await attempts.check(address);
        assert.ok(result.kind === 'over_limit' && result.state.resetSeconds > 50);
        assert.equal((await attempts.check(newAddress())).kind, 'within_limit');
        assert.deepEqual(attempts.counts, { failed: 2, overLimit: 0 });
      } finally {
        link?.close();
      }
    });

    it(store === 'in Redis' ? 'count over all servers' : 'count in each server', async () => {
      const address = newAddress();
      await fail(LIMIT, address);
      assert.deepEqual(await fail(1, address, services[1]), [store === 'in Redis' ? 429 : 401]);
    });

    if (store === 'in Redis') {
      it(`get 401 ${LIMIT} times also where all come at once, to several servers`, async () => {
        const address = newAddress();
        const statuses = (await Promise.all(services.map((service) => fail(60, address, service)))).flat();
        assert.equal(statuses.filter((status) => status === 401).length, LIMIT);
        assert.equal(statuses.filter((status) => status === 429).length, 120 - LIMIT);
      });

      it('cost Redis nothing more once their address is over the limit', async () => {
        const link = new RedisLink(redis?.address ?? assert.fail('no Redis'), () => undefined);
        try {
          await link.settled();
          const attempts = new FailedAttempts(link);
          const commands = async () =>
            Number(/cmdstat_evalsha:calls=(\d+)/.exec(await link.client.info('commandstats'))?.[1] ?? 0);
          const address = newAddress();
          for (let i = 0; i < LIMIT; i += 1) assert.deepEqual(await attempts.count(address), { kind: 'within_limit' });
          assert.equal((await attempts.count(address)).kind, 'over_limit');
          const before = await commands();
          for (let i = 0; i < LIMIT; i += 1) assert.equal((await attempts.count(address)).kind, 'over_limit');
          assert.equal(await commands(), before);
          assert.deepEqual(attempts.counts, { failed: 2 * LIMIT + 1, overLimit: LIMIT + 1 });
        } finally {
          link.close();
        }
      });

      it('are limited without Redis as well', async () => {
        await redis?.kill();
        const address = newAddress();
        assert.deepEqual(new Set(await fail(LIMIT, address)), new Set([401]));
        assert.deepEqual(new Set(await fail(10, address)), new Set([429]));
      });
    }
  });
}

describe('keys that fail behind two proxies', () => {
  let service: TestService;

  before(async () => {
    service = await startService({ trustedProxies: 2, failurePolicy: { limit: 2, windowSeconds: 60 } });
  });

  after(() => service.stop());

  /** @param forwarded - as the inner proxy hands it on: what the client sent, the client, the outer proxy */
  async function fail(forwarded: string): Promise<number> {
    const headers = { 'x-api-key': generateApiKey().key, 'x-forwarded-for': forwarded };
    return (await service.get('/api/v1/me', { headers })).status;
  }

  it('count for the client that the outer one saw, whatever that client sent itself', async () => {
    for (const status of [401, 401, 429]) assert.equal(await fail('192.0.2.1, 10.0.0.1'), status);
    // Another client behind the same outer proxy.
    assert.equal(await fail('192.0.2.2, 10.0.0.1'), 401);
    // The same one, which invents others, and comes by another outer proxy.
    assert.equal(await fail('198.51.100.7, 192.0.2.1, 10.0.0.2'), 429);
    assert.equal(await fail('192.0.2.1, 192.0.2.3, 10.0.0.1'), 401);
  });
});
