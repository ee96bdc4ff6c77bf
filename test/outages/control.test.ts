import assert from 'node:assert/strict';
import type { Redis } from 'ioredis';
import { CallerCache } from '../../src/admission/caller-cache.js';
import { createAdmission } from '../../src/admission/admission.js';
import type { OpenedAdmission, SharedAdmissionParts } from '../../src/admission/open-admission.js';
import { RedisLimiter } from '../../src/admission/charge/redis.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { startProxy, type Passing } from '../support/proxies/altering-proxy.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { startService, type TestService } from '../support/service.js';
import { Load, type Tally } from './load.js';
import { prepareCatalogue, prepareQuestions, type Questions } from './questions.js';

/** So many answers that each question was asked several times. */
const ENOUGH = 20;

/** A bound that holds nothing up in time, in milliseconds. */
const NO_BOUND_MS = 60_000;

describe('the judge of answers during outages', () => {
  let redis: TestRedis;
  let service: TestService;
  let questions: Questions;

  before(async () => {
    redis = await startRedis();
    service = await startService({ redisUrl: redis.url, trustedProxies: 1, openAdmission: openUnbounded });
    await prepareCatalogue(service.db);
    questions = await prepareQuestions(service.db);
  });

  after(async () => {
    redis.resume();
    await service.stop();
    await redis.stop();
  });

  /** Keeps asking until what is to be found has come up. */
  async function judge(what: string, url: string, isEnough: (tally: Tally) => boolean): Promise<Tally> {
    const load = new Load([url], questions.all);
    try {
      await eventually(what, () => isEnough(load.tally));
    } finally {
      await load.stop(`control: ${what}`);
    }
    return load.tally;
  }

  const findsSomething = ({ wrong }: Tally): boolean => wrong.length > 0;

  it('finds nothing wrong where nothing is', async () => {
    const { wrong, unavailable } = await judge(
      'nothing wrong',
      service.url,
      ({ served, refused }) => served >= ENOUGH && refused >= ENOUGH,
    );
    assert.deepEqual({ wrong, unavailable }, { wrong: [], unavailable: 0 });
  });

  const json = (body: string, changes: object): string =>
    JSON.stringify({ ...(JSON.parse(body) as object), ...changes });

  const ALTERATIONS: Readonly<Record<string, (response: Passing) => Passing>> = {
    'a count that is one less': (response) => ({ ...response, body: response.body.replace(':40', ':39') }),
    'an entry of the feed left out': (response) => ({
      ...response,
      body: response.body.replace(/\{"svc_id":"title-9".*?\},/, ''),
    }),
    'a valid key refused': (response) =>
      response.status === 200 && response.body.includes('On unlimited') ? { ...response, status: 401 } : response,
    'an invalid key accepted': (response) => (response.status === 401 ? { ...response, status: 200 } : response),
    'no RateLimit': ({ headers: { ratelimit: _ratelimit, ...headers }, ...response }) => ({ ...response, headers }),
    'a 429 without Retry-After': ({ headers, ...response }) => {
      const { 'retry-after': _retryAfter, ...others } = headers;
      return { ...response, headers: others };
    },
    'a problem of another code': (response) =>
      response.status === 401 ? { ...response, body: json(response.body, { code: 'internal_error' }) } : response,
    'a 503 where nothing is away': (response) =>
      response.status === 200
        ? {
            status: 503,
            headers: { 'content-type': 'application/problem+json', 'retry-after': '2', 'x-request-id': 'x' },
            body: JSON.stringify({ status: 503, code: 'service_unavailable', request_id: 'x' }),
          }
        : response,
    'a 304 for another body': (response) =>
      response.status === 304 ? { ...response, headers: { ...response.headers, etag: '"other"' } } : response,
    'a 500': (response) => ({ ...response, status: 500 }),
  };

  for (const [what, alter] of Object.entries(ALTERATIONS)) {
    it(`finds ${what}`, async () => {
      const proxy = await startProxy(service.url, alter);
      await judge(what, proxy.url, findsSomething);
      await proxy.stop();
    });
  }

  it('finds connections that are refused', async () => {
    const proxy = await startProxy(service.url, (response) => response);
    await proxy.stop();
    const { wrong } = await judge('refused', proxy.url, findsSomething);
    assert.match(wrong[0] ?? '', /ECONNREFUSED/);
  });

  it('finds a revoked key that is accepted', async () => {
    // It is not revoked at all.
    questions.noteRevoked();
    const { wrong } = await judge('revoked and accepted', service.url, findsSomething);
    assert.ok(wrong.every((line) => line.startsWith('doomed: 200')));
  });

  it('finds a server that waits for a frozen Redis without a bound', async () => {
    redis.pause();
    const { wrong } = await judge('no bound on Redis', service.url, findsSomething);
    assert.ok(wrong.every((line) => line.includes('503 where nothing needed is away')));
  });
});

/** Admission as it would be if commands to Redis had no bound. */
async function openUnbounded({ address, loadCaller, fence }: SharedAdmissionParts): Promise<OpenedAdmission> {
  class UnboundedLink extends RedisLink {
    override run<T>(command: (client: Redis) => Promise<T>): Promise<T> {
      return super.run(command);
    }
  }
  const redis = new UnboundedLink(address, () => undefined, { timeoutMs: NO_BOUND_MS });
  await redis.settled();
  const cache = new CallerCache();
  const limiter = new RedisLimiter(redis);
  return {
    redis,
    limiter,
    cache,
    notificationQueueUsage: undefined,
    admit: createAdmission({ loadCaller, fence, limiter, cache, createEpoch: () => undefined }),
    close: async () => redis.close(),
  };
}
