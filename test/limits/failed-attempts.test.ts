import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { generateApiKey } from '../../src/keys/api-key.js';
import { FailedAttempts } from '../../src/limits/failed-attempts.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { newAddress } from '../support/http/new-address.js';
import { eventually } from '../support/eventually.js';
import { readGuide } from '../support/guides.js';
import { assertProblem } from '../support/problem.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';

const LIMIT = 30;

/** Unknown keys that are sent at once. */
const FLOOD = 192;

for (const store of ['in this process', 'in Redis'] as const) {
  const isShared = store === 'in Redis';

  describe(`keys that fail, counted ${store}`, () => {
    const world = testWorld({ redis: isShared });
    let services: [TestService, TestService];
    /** Undefined without Redis. */
    let link: RedisLink | undefined;
    let direct: Redis;

    before(async () => {
      const first = await world.startService({ trustedProxies: 1 });
      services = [first, await world.startService({ trustedProxies: 1 })];
      if (!isShared) return;
      link = new RedisLink(world.redis.address, () => undefined);
      world.defer(() => link?.close());
      await link.settled();
      direct = new Redis(world.redis.url).on('error', () => undefined);
      world.defer(() => direct.disconnect());
    });

    function ask(key: string | undefined, address: string, service = services[0], path = '/api/v1/me'): Promise<Reply> {
      const headers = { 'x-forwarded-for': address, ...(key !== undefined && { 'x-api-key': key }) };
      return service.get(path, { headers });
    }

    async function fail(times: number, address: string, service = services[0]): Promise<number[]> {
      const replies = await Promise.all(
        Array.from({ length: times }, () => ask(generateApiKey().key, address, service)),
      );
      return replies.map(({ status }) => status);
    }

    it(`an address gets 401 for ${LIMIT} unknown keys a minute and then 429, counted ${store}`, async () => {
      const address = newAddress();
      assert.deepEqual(new Set(await fail(LIMIT, address)), new Set([401]));
      const reply = await ask(generateApiKey().key, address);
      const seconds = String(reply.headers['retry-after']);
      assert.match(seconds, /^[1-9]\d?$/);
      assertProblem(reply, 'rate_limit_exceeded', {
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        detail: `Too many invalid keys from your IP address. Requests with a valid key are still served; otherwise wait ${seconds} s.`,
        members: { 'violated-policies': ['failures'] },
        headers: {
          'ratelimit-policy': `"failures";q=${LIMIT};w=60`,
          ratelimit: `"failures";r=0;t=${seconds}`,
          'www-authenticate': undefined,
          vary: 'Authorization, X-API-Key',
        },
      });
      assert.deepEqual(new Set(await fail(10, address)), new Set([429]));
      assert.deepEqual(await fail(1, newAddress()), [401]);
      assert.deepEqual(await fail(1, address, services[1]), [isShared ? 429 : 401]);
    });

    it(`a flood of unknown keys at all servers is refused past the limit while a valid key is served, counted ${store}`, async () => {
      const address = newAddress();
      const flooded = isShared ? services : services.slice(0, 1);
      const state = { isOver: false };
      const flood = Promise.all(
        Array.from({ length: FLOOD }, (_, i) => ask(generateApiKey().key, address, flooded[i % flooded.length])),
      ).finally(() => (state.isOver = true));
      while (!state.isOver) assert.equal((await ask(services[0].key, address)).status, 200);
      const refused = [401, 429].map(async (code) => (await flood).filter(({ status }) => status === code).length);
      assert.deepEqual(await Promise.all(refused), [LIMIT, FLOOD - LIMIT]);
      assert.equal((await ask(services[0].key, address)).status, 200);
    });

    it(`a request without a well-formed key costs no query and is not counted ${store}`, async () => {
      const address = newAddress();
      const queries = services[0].queries.length;
      for (let i = 0; i < 3; i += 1) {
        assert.equal((await ask('svc_wrong', address)).status, 401);
        assert.equal((await ask(undefined, address)).status, 401);
        assert.equal((await ask('a', address, services[0], '/api/v1/me?api_key=b')).status, 401);
      }
      assert.equal(services[0].queries.length, queries);
      assert.deepEqual(new Set(await fail(LIMIT, address)), new Set([401]));
    });

    it(`an address can fail again after the window, even if it never paused, counted ${store}`, async () => {
      const attempts = new FailedAttempts(link, { limit: 2, windowSeconds: 1 }, 'window');
      for (let i = 0; i < 100; i += 1) await attempts.count('192.0.2.200');
      await eventually('the window ends', async () => (await attempts.count('192.0.2.200')).kind === 'within_limit');
    });

    it(`a check reports whether an address is over the limit and counts nothing ${store}`, async () => {
      const attempts = new FailedAttempts(link, { limit: 2, windowSeconds: 60 }, 'checked');
      const address = newAddress();
      for (let failures = 0; failures < 2; failures += 1) {
        for (let i = 0; i < 3; i += 1) assert.equal((await attempts.check(address)).kind, 'within_limit');
        assert.equal((await attempts.count(address)).kind, 'within_limit');
      }
      const result = await attempts.check(address);
      assert.ok(result.kind === 'over_limit' && result.state.resetSeconds > 0);
      assert.equal((await attempts.check(newAddress())).kind, 'within_limit');
      assert.equal(attempts.overLimit, 0);
    });

    if (!isShared) return;

    it('keys, reports of leaked keys and sign-ins that fail have a limit each', async () => {
      const post = async (path: string, type: string, body: string, address: string): Promise<number> => {
        const headers = { 'content-type': type, 'sec-fetch-site': 'same-origin', 'x-forwarded-for': address };
        return (await send(services[0].url, path, { method: 'POST', headers, body })).status;
      };
      const kinds: Record<string, (address: string) => Promise<number>> = {
        key: async (address) => (await ask(generateApiKey().key, address)).status,
        report: (address) => {
          const matches = Array.from({ length: 10 }, () => ({ token: generateApiKey().key }));
          return post('/revoke-leaked-key', 'application/json', JSON.stringify(matches), address);
        },
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

    it('failures of an address that is over the limit cost Redis no command', async () => {
      const attempts = new FailedAttempts(link);
      const commands = async () =>
        Number(/cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1] ?? 0);
      const address = newAddress();
      for (let i = 0; i <= LIMIT; i += 1) await attempts.count(address);
      const before = await commands();
      for (let i = 0; i < LIMIT; i += 1) assert.equal((await attempts.count(address)).kind, 'over_limit');
      assert.equal(await commands(), before);
      assert.equal(attempts.overLimit, LIMIT + 1);
    });

    it('the rights in Redis that the guide grants are enough to charge requests and to count failures', async () => {
      const [, command = assert.fail()] = /```\n(ACL SETUSER .+)\n```/.exec(await readGuide('configure')) ?? [];
      const [name = '', ...rights] = command.split(' ');
      await direct.call(name, ...rights);
      const limited = await world.startService({
        redisUrl: world.redis.url.replace('//', '//catalog:secret@'),
        trustedProxies: 1,
      });
      const { key } = await world.newKey();
      for (let i = 0; i < 2; i += 1) assert.equal((await ask(key, newAddress(), limited)).status, 200);
      assert.deepEqual(await fail(1, newAddress(), limited), [401]);
      assert.match((await limited.get('/readyz')).text, /"redis":"up"/);
      const own = new RedisLink({ url: world.redis.url.replace('//', '//catalog:secret@') }, () => undefined);
      world.defer(() => own.close());
      await own.settled();
      assert.deepEqual(await new FailedAttempts(own).check(newAddress()), { kind: 'within_limit' });
      assert.ok(own.isUp);
    });

    it('failures are limited in each process while Redis is down', async () => {
      await world.redis.kill();
      const address = newAddress();
      assert.deepEqual(new Set(await fail(LIMIT, address)), new Set([401]));
      assert.deepEqual(new Set(await fail(10, address)), new Set([429]));
    });
  });
}

describe('keys that fail behind two proxies', () => {
  const world = testWorld({ service: { trustedProxies: 2, failurePolicy: { limit: 2, windowSeconds: 60 } } });

  it('failures count for the client that the outer proxy saw, whatever that client sent itself', async () => {
    for (const [forwarded, status] of [
      ['192.0.2.1, 10.0.0.1', 401],
      ['192.0.2.1, 10.0.0.1', 401],
      ['192.0.2.1, 10.0.0.1', 429],
      // Another client behind the same outer proxy.
      ['192.0.2.2, 10.0.0.1', 401],
      // The first one, which invents another address and comes by another outer proxy.
      ['198.51.100.7, 192.0.2.1, 10.0.0.2', 429],
      ['192.0.2.1, 192.0.2.3, 10.0.0.1', 401],
    ] as const) {
      const headers = { 'x-api-key': generateApiKey().key, 'x-forwarded-for': forwarded };
      assert.equal((await world.service.get('/api/v1/me', { headers })).status, status, forwarded);
    }
  });
});
