import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { startSession } from '../../src/accounts/sessions.js';
import { reinstateDeveloper, suspendDeveloper } from '../../src/developers/developers.js';
import { createAdmission } from '../../src/admission/admission.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { CallerCache } from '../../src/admission/caller-cache.js';
import { renewEpoch } from '../../src/admission/epoch.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import type { OpenedAdmission, SharedAdmissionParts } from '../../src/admission/open-admission.js';
import type { Decision, QuotaRequest } from '../../src/admission/charge/limiter.js';
import { RedisLimiter } from '../../src/admission/charge/redis.js';
import { ifAvailable, RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { Visitor } from '../support/http/visitor.js';
import { assertEndsInTime, expireIn } from '../support/keys/expiry.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { runProgram, startProgram, timesLogged } from '../support/program.js';
import { startService, type TestService } from '../support/service.js';
import { ask, newKey, startDeployment, type Answer, type Deployment } from '../support/deployments/deployment.js';

/** Of revoking, each with a key of its own. */
const TRIALS = 1_000;

/** Of suspending and reinstating: the same way to the servers, and twice as many changes a trial. */
const SUSPENSIONS = 200;

/** Trials at the same time, each with a key of its own. */
const LANES = 10;

/** Requests to each server at once, from the moment that a change is done. */
const AT_ONCE = 2;

/** Between two of the requests that keep a server busy meanwhile, in milliseconds. */
const BUSY_PAUSE_MS = 50;

/** Answers that should have been refused, and answers that should not. */
interface Score {
  trials: number;
  asked: number;
  wronglyAccepted: number;
  wronglyRefused: number;
}

describe('revocation over three server processes', () => {
  let deployment: Deployment;
  let link: RedisLink;
  let busy: { stop(): Promise<number> };
  let addresses = 0;

  before(async () => {
    deployment = await startDeployment({ SITE: 'on' });
    link = new RedisLink(deployment.redis.address, () => undefined);
    await link.settled();
    busy = keepBusy((await newKey(deployment.db)).key);
  });

  after(async () => {
    console.log(`      other requests meanwhile: ${await busy.stop()}`);
    link.close();
    await deployment.stop();
  });

  /** What the command line does: commit, then end the epoch, then say so. */
  async function renew(): Promise<void> {
    await ifAvailable(renewEpoch(link, new Fence()));
  }

  function urls(): string[] {
    return deployment.servers.map(({ url }) => url);
  }

  /** Keeps every server busy with a key that stays valid: all of these must be served. */
  function keepBusy(key: string): { stop(): Promise<number> } {
    let isOver = false;
    let served = 0;
    const loops = urls().map(async (url) => {
      while (!isOver) {
        const { status } = await ask(url, key);
        assert.equal(status, 200);
        served += 1;
        await delay(BUSY_PAUSE_MS);
      }
    });
    return {
      stop: async () => {
        isOver = true;
        await Promise.all(loops);
        return served;
      },
    };
  }

  /** Uses a key on every server, so often that each has it cached. */
  async function warm(key: string, servers = urls()): Promise<void> {
    for (let i = 0; i < 2; i += 1) {
      for (const { status } of await Promise.all(servers.map((url) => ask(url, key)))) assert.equal(status, 200);
    }
  }

  /** Asks all servers at once, from an address of its own, so that refusals are not limited. */
  function askAll(key: string, servers = urls()): Promise<Answer[]> {
    addresses += 1;
    const address = [10, addresses >> 16, (addresses >> 8) & 255, addresses & 255].join('.');
    return Promise.all(servers.flatMap((url) => Array.from({ length: AT_ONCE }, () => ask(url, key, address))));
  }

  /** Runs trials at the same time. They share connections, epochs and the servers' queries, as real changes do. */
  async function inLanes(lane: () => Promise<void>): Promise<void> {
    await Promise.all(Array.from({ length: LANES }, lane));
  }

  function newScore(): Score {
    return { trials: 0, asked: 0, wronglyAccepted: 0, wronglyRefused: 0 };
  }

  function note(score: Score, expected: 200 | 401, answers: readonly Answer[]): void {
    score.asked += answers.length;
    for (const { status } of answers) {
      assert.ok(status === 200 || status === 401, `answered with ${status}`);
      if (status === expected) continue;
      if (status === 200) score.wronglyAccepted += 1;
      else score.wronglyRefused += 1;
    }
  }

  function print(what: string, score: Score): void {
    console.log(
      `      ${what}: ${score.trials} trials, ${score.asked} requests, ` +
        `${score.wronglyAccepted} wrongly accepted, ${score.wronglyRefused} wrongly refused`,
    );
  }

  /** Does something that the triggers of the database do not announce, so that the epoch alone must do. */
  function unannounced<T>(db: Knex, table: 'api_keys' | 'developers', change: (db: Knex) => Promise<T>): Promise<T> {
    return pastTriggers(db, table, change);
  }

  it(`refuses a revoked key ${TRIALS} times of ${TRIALS}, on every server, from that moment on`, async () => {
    const { db } = deployment;
    const score = newScore();
    await inLanes(async () => {
      const { developerId } = await newKey(db);
      for (let trial = 0; trial < TRIALS / LANES; trial += 1) {
        score.trials += 1;
        const { key, prefix } = await createKey(db, { developerId, planId: 'unlimited' });
        await warm(key);
        if (trial % 5 > 0) await revokeKey(db, prefix);
        else await unannounced(db, 'api_keys', (transaction) => revokeKey(transaction, prefix));
        await renew();
        note(score, 401, await askAll(key));
      }
    });
    print('revoked', score);
    assert.deepEqual([score.trials, score.wronglyAccepted], [TRIALS, 0]);
  }).timeout(120_000);

  it(`refuses a key that was revoked on a page ${TRIALS} times of ${TRIALS}, on every server`, async () => {
    const { db } = deployment;
    const score = newScore();
    // So that the epoch alone must do.
    await db.raw('alter table api_keys disable trigger announce_changed');
    let place = 0;
    await inLanes(async () => {
      const { developerId } = await newKey(db);
      const session = await startSession(db, { developerId, userAgent: '', replaced: undefined });
      for (let trial = 0; trial < TRIALS / LANES; trial += 1) {
        score.trials += 1;
        const { key, prefix } = await createKey(db, { developerId, planId: 'unlimited' });
        await warm(key);
        const visitor = new Visitor(urls()[(place += 1) % urls().length] ?? '');
        if (trial % 5 > 0) {
          visitor.cookies.set('catalog-session', session);
          const { status, headers } = await visitor.post(`/settings/keys/${prefix}/revoke`);
          assert.deepEqual([status, headers.location], [303, `/settings/keys?revoked=${prefix}&propagation=immediate`]);
        } else {
          // Found by somebody.
          const { status, text } = await visitor.post('/revoke-leaked-key', { key });
          assert.ok(status === 200 && text.includes('The key has been revoked'));
        }
        note(score, 401, await askAll(key));
      }
    });
    await db.raw('alter table api_keys enable always trigger announce_changed');
    print('revoked on a page', score);
    assert.deepEqual([score.trials, score.wronglyAccepted], [TRIALS, 0]);
  }).timeout(120_000);

  it('refuses an expired key on every server from its end on, and not before', async () => {
    const { db } = deployment;
    const served = await Promise.all(
      urls().map(async (url) => {
        const { key, prefix } = await newKey(db);
        await expireIn(db, prefix, 2_000);
        await warm(key);
        return assertEndsInTime(db, prefix, async () => (await ask(url, key)).status);
      }),
    );
    assert.ok(served.every((requests) => requests > 0));
  });

  it(`refuses the keys of a suspended developer ${SUSPENSIONS} times of ${SUSPENSIONS}, and serves a reinstated one`, async () => {
    const { db } = deployment;
    const score = newScore();
    await inLanes(async () => {
      const { key, developerId } = await newKey(db);
      for (let trial = 0; trial < SUSPENSIONS / LANES; trial += 1) {
        score.trials += 1;
        await warm(key);
        if (trial % 5 > 0) await suspendDeveloper(db, developerId);
        else await unannounced(db, 'developers', (transaction) => suspendDeveloper(transaction, developerId));
        await renew();
        note(score, 401, await askAll(key));
        await reinstateDeveloper(db, developerId);
        await renew();
      }
    });
    print('suspended', score);
    assert.deepEqual([score.trials, score.wronglyAccepted], [SUSPENSIONS, 0]);
    // All this was decided with Redis, not without.
    for (const { output } of deployment.servers) assert.deepEqual(output.stdout.match(/"msg":"\w+ lost/g), null);
  }).timeout(120_000);

  it('finds accepted requests where the epoch is not checked', async () => {
    const databaseUrl = deployment.environment.DATABASE_URL ?? '';
    const services = await Promise.all(
      [1, 2, 3].map(() => startService({ databaseUrl, redisUrl: deployment.redis.url, openAdmission: openCareless })),
    );
    const servers = services.map(({ url }) => url);
    const score = newScore();
    try {
      for (let trial = 0; trial < 20; trial += 1) {
        score.trials += 1;
        const { key, prefix } = await newKey(deployment.db);
        await warm(key, servers);
        await unannounced(deployment.db, 'api_keys', (transaction) => revokeKey(transaction, prefix));
        await renew();
        note(score, 401, await askAll(key, servers));
      }
    } finally {
      await Promise.all(services.map((service: TestService) => service.stop()));
    }
    print('control: epoch not checked', score);
    assert.ok(score.wronglyAccepted > 0);
  });

  it('is complete when the command line reports success', async () => {
    const { db, environment } = deployment;
    const score = newScore();
    for (let trial = 0; trial < 5; trial += 1) {
      score.trials += 1;
      const { key, prefix } = await newKey(db);
      await warm(key);
      const { code, stderr } = await runProgram(['keys', 'revoke', prefix], environment);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      note(score, 401, await askAll(key));
    }
    print('revoked by the command line', score);
    assert.equal(score.wronglyAccepted, 0);
  });

  it('does not depend on the command line: the database announces a plain UPDATE within moments', async () => {
    const { db } = deployment;
    const waits: number[] = [];
    const score = newScore();
    for (let trial = 0; trial < 50; trial += 1) {
      score.trials += 1;
      const { key, prefix } = await newKey(db);
      await warm(key);
      await db('api_keys').where({ prefix }).update({ revoked_at: new Date() });
      waits.push(await untilRefused(key));
      note(score, 401, await askAll(key));
    }
    print(`plain UPDATE, heard of after ${Math.max(...waits).toFixed(0)} ms at most; from then on`, score);
    assert.equal(score.wronglyAccepted, 0);
  });

  it('holds when the revoking process is killed between its steps', async () => {
    const { db, environment } = deployment;
    const { url: silentRedis, server } = await startSilentServer();
    const waits: number[] = [];
    const score = newScore();
    try {
      for (let trial = 0; trial < 5; trial += 1) {
        score.trials += 1;
        const { key, prefix } = await newKey(db);
        await warm(key);
        // Its Redis never answers, so it is held up after the commit.
        const command = startProgram(['keys', 'revoke', prefix], { ...environment, REDIS_URL: silentRedis });
        await eventually('the change is committed', async () => {
          return (await db('api_keys').where({ prefix }).whereNotNull('revoked_at').pluck('id')).length === 1;
        });
        command.child.kill('SIGKILL');
        assert.deepEqual((await command.ended).stdout, '');
        waits.push(await untilRefused(key));
        note(score, 401, await askAll(key));
      }
    } finally {
      server.close();
    }
    print(`killed between its steps, heard of after ${Math.max(...waits).toFixed(0)} ms at most; from then on`, score);
    assert.equal(score.wronglyAccepted, 0);
  });

  for (const [what, trials, strike, mend] of [
    ['restarted empty', 6, () => deployment.redis.restart({ empty: true }), () => Promise.resolve()],
    ['restarted with its data', 6, () => deployment.redis.restart(), () => Promise.resolve()],
    ['killed', 6, () => deployment.redis.kill(), () => deployment.redis.restart()],
    [
      'frozen',
      5,
      async () => {
        deployment.redis.pause();
      },
      async () => {
        deployment.redis.resume();
      },
    ],
  ] as const) {
    it(`holds while Redis is ${what}`, async () => {
      const { db } = deployment;
      const score = newScore();
      for (let trial = 0; trial < trials; trial += 1) {
        score.trials += 1;
        const revoked = await newKey(db);
        const suspended = await newKey(db);
        await warm(revoked.key);
        await warm(suspended.key);
        // In one half of the trials Redis fails at the same time, in the other before.
        const striking = strike();
        if (trial % 2 === 1) await striking;
        await Promise.all([revokeKey(db, revoked.prefix), suspendDeveloper(db, suspended.developerId)]);
        await renew();
        note(score, 401, await askAll(revoked.key));
        note(score, 401, await askAll(suspended.key));
        await striking;
        note(score, 401, await askAll(revoked.key));
        await mend();
        // As soon as Redis is back, and once the cache is in use again.
        note(score, 401, await askAll(suspended.key));
        await eventually('every server has Redis back', () =>
          deployment.servers.every((server) => timesLogged(server, 'redis back') === timesLogged(server, 'redis lost')),
        );
        await eventually('Redis is back here', () => link.isUp);
        note(score, 401, await askAll(revoked.key));
        note(score, 401, await askAll(suspended.key));
      }
      print(`Redis ${what}`, score);
      assert.equal(score.wronglyAccepted, 0);
    }).timeout(60_000);
  }

  /** @returns after how long every server refused a key, in milliseconds */
  async function untilRefused(key: string): Promise<number> {
    const startedAt = performance.now();
    await eventually(
      'every server refuses',
      async () => (await askAll(key)).every(({ status }) => status === 401),
      5_000,
    );
    return performance.now() - startedAt;
  }
});

/** Admission as it would be if the epoch were never compared. */
async function openCareless({ address, loadCaller, fence }: SharedAdmissionParts): Promise<OpenedAdmission> {
  class CarelessLimiter extends RedisLimiter {
    override chargeUnder(_epoch: string, request: QuotaRequest): Promise<Decision> {
      return this.charge(request);
    }
  }
  const redis = new RedisLink(address, () => undefined);
  await redis.settled();
  const cache = new CallerCache();
  cache.open();
  cache.replaceEpoch(undefined, 'any');
  const limiter = new CarelessLimiter(redis);
  return {
    redis,
    limiter,
    cache,
    notificationQueueUsage: undefined,
    admit: createAdmission({ loadCaller, fence, limiter, cache, createEpoch: () => undefined }),
    close: async () => redis.close(),
  };
}

/** A server that takes connections and says nothing. */
async function startSilentServer(): Promise<{ url: string; server: Server }> {
  const server = createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
