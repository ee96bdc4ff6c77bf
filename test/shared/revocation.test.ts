import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { generateToken } from '../../src/accounts/tokens.js';
import { changeCallers } from '../../src/admission/change-callers.js';
import { TIMELINE_KEY, versionKey } from '../../src/admission/versions.js';
import { suspendDeveloper } from '../../src/developers/developers.js';
import type { EventKind } from '../../src/events/events.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { setPlan } from '../../src/limits/plans.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { RedisLink } from '../../src/platform/redis/link.js';
import { eventually } from '../support/eventually.js';
import { newPlan } from '../support/keys/new-key.js';
import { signInOperator } from '../support/http/operator.js';
import { newAddress } from '../support/http/new-address.js';
import { signIn, type Visitor } from '../support/http/visitor.js';
import { whileAlive } from '../support/keys/expiry.js';
import { holdCommits } from '../support/postgres/held-commits.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { runCommand } from '../support/programs/command.js';
import { startRedisCluster, type TestRedisCluster } from '../support/redis/redis-cluster.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** Every operation. */
const PATHS = [
  '/api/v1/me',
  '/api/v1/stats',
  '/api/v1/titles/title-0001',
  `/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 60}`,
];

/** Every program of the service that changes keys, by the names of its connections. */
const PROGRAMS = 'catalog (command|serve|operator pages)';

/** The plan of the keys that are changed. */
const PLAN = 'changed';

/** What an unchanged key is answered with, by {@link answersTo}. */
const ACCEPTED = ['200 Test project on Plan'];
const REFUSED = ['401 invalid_api_key'];

interface Servers {
  /** Without Redis. */
  readonly plain: TestService;
  readonly one: TestService;
  readonly two: TestService;
  /** Reads a replica that lags. */
  readonly lagging: TestService;
  /** Two with a Redis Cluster. */
  readonly clustered: TestService;
  readonly other: TestService;
}

/** What a change is made on. */
interface Stage {
  readonly servers: readonly TestService[];
  /** Of its operator. */
  readonly operator: Visitor;
  /** Runs a command beside the servers. */
  readonly command: (...args: readonly string[]) => Promise<void>;
}

/** Resolves when the change is reported as done: then every server must apply it. */
type Make = (key: CreatedKey, stage: Stage) => Promise<unknown>;

/** A change of a key, of its developer or of its plan. */
interface Change {
  readonly make: Make;
  /** Whether the change has no end that renews the version: servers apply it within moments, once it is announced. */
  readonly isAnnounced?: true;
  /** What a request is answered with afterwards. By default, the key is refused. */
  readonly answer?: (key: CreatedKey) => string;
  /** What undoes the change. */
  readonly undo?: Make;
  /** Whether it is refused, or changes nothing, when it is repeated. */
  readonly isOnce?: true;
}

type Changes = Readonly<Record<string, Change>>;

/** The events after which a key is accepted as before, with another plan or another name at most. */
type Harmless =
  | (
      | 'created'
      | 'plan_changed'
      | 'label_changed'
      | 'registered'
      | 'renamed'
      | 'reinstated'
      | 'signed_in'
      | 'signed_out'
    )
  | ('identity_linked' | 'identity_unlinked' | 'passkey_added' | 'passkey_removed');

/** The events of keys that end later, which a test of its own waits for. */
type Later = 'expired' | 'expiry_changed';

const post = async (visitor: Visitor, path: string, fields: Record<string, string> = {}): Promise<void> => {
  const { status, text } = await visitor.post(path, { form: generateToken().token, ...fields });
  assert.ok(status < 400, text);
};

/** Sends a form of the developer settings, signed in as the developer. */
async function settings(
  { servers: [server = assert.fail()] }: Stage,
  { developerId, prefix }: CreatedKey,
  action: string,
  fields?: Record<string, string>,
): Promise<void> {
  await post(await signIn(server, developerId), `/settings/keys/${prefix}/${action}`, fields);
}

/** Reports keys as found in public. */
async function report({ servers: [{ url } = assert.fail()] }: Stage, ...keys: readonly CreatedKey[]): Promise<void> {
  for (const { key } of keys) {
    const headers = { 'content-type': 'application/json' };
    const reply = await send(url, '/revoke-leaked-key', { method: 'POST', headers, body: JSON.stringify({ key }) });
    assert.equal(reply.status, 200, reply.text);
  }
}

/** Every way in which a key ends, by the event that it leaves: a new kind of event needs its ways here. */
const ENDINGS: Readonly<Record<Exclude<EventKind, Harmless | Later>, Changes>> = {
  revoked: {
    'revoked by command': { make: ({ prefix }, { command }) => command('keys', 'revoke', prefix) },
    'revoked in the settings': { make: (key, stage) => settings(stage, key, 'revoke') },
    'revoked on an operator page': { make: ({ prefix }, { operator }) => post(operator, `/keys/${prefix}/revoke`) },
    'reported by its finder': { make: (key, stage) => report(stage, key) },
    'revoked in plain SQL, or by a program that is killed after its commit': {
      isAnnounced: true,
      make: ({ prefix }, { servers: [server] }) => revokeKey(server?.db ?? assert.fail(), prefix),
    },
  },
  rolled: {
    'rolled by command without an overlap': {
      make: ({ prefix }, { command }) => command('keys', 'roll', prefix, '--overlap', 'now'),
      isOnce: true,
    },
    'rolled in the settings without an overlap': {
      make: (key, stage) => settings(stage, key, 'roll', { overlap: 'now' }),
      isOnce: true,
    },
  },
  suspended: {
    'of a developer who is suspended by command': {
      make: ({ developerId }, { command }) => command('developers', 'suspend', String(developerId)),
      undo: ({ developerId }, { command }) => command('developers', 'reinstate', String(developerId)),
    },
    'of a developer who is suspended on an operator page': {
      make: ({ developerId }, { operator }) => post(operator, `/developers/${developerId}/suspend`),
      undo: ({ developerId }, { operator }) => post(operator, `/developers/${developerId}/reinstate`),
    },
  },
};

/** Changes of what servers have cached of a caller, whose key stays active. */
const OTHER_CHANGES: Changes = {
  'moved to another plan by command': {
    make: ({ prefix }, { command }) => command('keys', 'set-plan', prefix, '--plan', 'pro'),
    answer: () => '200 Test project on Pro',
  },
  'moved to another plan on an operator page': {
    make: ({ developerId }, { operator }) =>
      post(operator, `/developers/${developerId}/plan`, { plan: 'pro', keys: 'on' }),
    answer: () => '200 Test project on Pro',
  },
  'of a project that is renamed by command': {
    make: ({ developerId }, { command }) => command('developers', 'rename', String(developerId), 'Atlas'),
    answer: () => '200 Atlas on Plan',
  },
  'of a plan that is changed by command': {
    make: ({ prefix }, { command }) => command('plans', 'set', PLAN, '--name', prefix),
    answer: ({ prefix }) => `200 Test project on ${prefix}`,
    undo: (_key, { command }) => command('plans', 'set', PLAN, '--name', 'Plan'),
  },
  'of a plan that is changed in plain SQL': {
    isAnnounced: true,
    make: ({ prefix }, { servers: [server] }) => setPlan(server?.db ?? assert.fail(), PLAN, { name: prefix }),
    answer: ({ prefix }) => `200 Test project on ${prefix}`,
    undo: (_key, { command }) => command('plans', 'set', PLAN, '--name', 'Plan'),
  },
};

/** Changes of when a key ends, which no answer shows before. */
const EXPIRIES: Readonly<Record<Later | 'rolled', Changes>> = {
  expired: {},
  expiry_changed: {
    'that expires sooner by command': {
      make: ({ prefix }, { command }) => command('keys', 'set-expiry', prefix, '30d'),
    },
    'that expires sooner by the settings': {
      make: (key, stage) => settings(stage, key, 'expiry', { lifetime: '30', date: '' }),
      isOnce: true,
    },
  },
  rolled: {
    'rolled by command with an overlap': {
      make: ({ prefix }, { command }) => command('keys', 'roll', prefix, '--overlap', '24h'),
      isOnce: true,
    },
    'rolled in the settings with an overlap': {
      make: (key, stage) => settings(stage, key, 'roll', { overlap: '24h' }),
      isOnce: true,
    },
  },
};

const CHANGES: Changes = Object.fromEntries(
  [OTHER_CHANGES, ...Object.values(ENDINGS)].flatMap((changes) => Object.entries(changes)),
);

describe('revocation', () => {
  const world = testWorld({ ownServer: true, redis: true });
  const agent = new Agent({ keepAlive: true, maxSockets: PATHS.length });
  let replica: TestReplica;
  let cluster: TestRedisCluster;
  let servers: Servers;
  let direct: Redis;

  before(async () => {
    direct = new Redis(world.redis.url);
    direct.on('error', () => undefined);
    world.defer(() => direct.disconnect());
    await addTitles(world.db, 1);
    await newPlan(world.db, PLAN, 1_000_000, 1_000_000);
    [replica, cluster] = await Promise.all([startReplica(world.postgres), startRedisCluster()]);
    world.defer(() => cluster.stop());
    const start = (own: Readonly<Record<string, string>> = {}): Promise<TestService> =>
      world.startService({
        trustedProxies: 1,
        settings: { DATABASE_POOL_SIZE: '4', METRICS_ADDRESS: '127.0.0.1:0', ...own },
      });
    servers = {
      plain: await start({ REDIS_URL: '' }),
      one: await start(),
      two: await start(),
      lagging: await start({ DATABASE_READ_URL: replica.url }),
      clustered: await start(cluster.environment),
      other: await start(cluster.environment),
    };
  });

  after(() => agent.destroy());
  afterEach(() => replica.resumeReplay());

  /** Makes the database announce changes of callers, or not: then the version alone must do. */
  async function announce(isOn: boolean): Promise<void> {
    for (const table of ['api_keys', 'developers', 'plans']) {
      await world.db.raw(`alter table ${table} ${isOn ? 'enable always' : 'disable'} trigger announce_changed`);
    }
  }

  async function stageOf(...names: readonly (keyof Servers)[]): Promise<Stage> {
    const asked = names.map((name) => servers[name]);
    const environment = {
      ...world.environment,
      ...(asked[0] === servers.plain && { REDIS_URL: '' }),
      ...(asked[0] === servers.clustered && cluster.environment),
    };
    return {
      servers: asked,
      operator: await signInOperator(asked[0] ?? assert.fail()),
      async command(...args) {
        const { code, stderr } = await runCommand(args, environment);
        assert.equal(code, 0, stderr);
      },
    };
  }

  function newKeys(count: number, options: { developerId?: number } = {}): Promise<CreatedKey[]> {
    return Promise.all(Array.from({ length: count }, () => world.newKey({ planId: PLAN, ...options })));
  }

  function inShort({ status, json }: Reply): string {
    const { code, data } = json as { code?: string; data?: { project_name?: string; plan?: { name: string } } };
    const caller = data?.plan && `${data.project_name} on ${data.plan.name}`;
    return `${status} ${code ?? caller ?? ''}`.trim();
  }

  /** Uses a key on every server at once. @returns the different answers */
  async function answersTo({ key }: CreatedKey, on: Stage, paths = PATHS.slice(0, 1)): Promise<string[]> {
    const replies = await Promise.all(
      on.servers.flatMap(({ url }) => {
        const headers = { 'x-api-key': key, 'x-forwarded-for': newAddress() };
        return paths.map((path) => send(url, path, { headers, agent }));
      }),
    );
    return [...new Set(replies.map(inShort))];
  }

  async function assertRefused(key: CreatedKey, on: Stage): Promise<void> {
    assert.deepEqual(await answersTo(key, on, PATHS), REFUSED);
  }

  /** Uses keys until every server has them cached: one creates the version, the others read it, and all keep the record. */
  async function makeCached(keys: readonly CreatedKey[], on: Stage): Promise<void> {
    for (const key of [...keys, ...keys, ...keys]) assert.deepEqual(await answersTo(key, on), ACCEPTED);
  }

  /**
   * Makes a change, and holds its commit until every server has read the key once more: a version that is renewed before
   * the commit would confirm what they read.
   *
   * @returns the different answers afterwards
   */
  async function answersAfter({ make, isAnnounced, answer }: Change, key: CreatedKey, on: Stage): Promise<string[]> {
    if (isAnnounced) {
      // A change of the plan before this one has ended the version that the key was cached under.
      await makeCached([key], on);
      await make(key, on);
      const expected = answer?.(key) ?? REFUSED.join();
      await eventually('the change is announced', async () => (await answersTo(key, on)).join() === expected);
      return answersTo(key, on, answer ? undefined : PATHS);
    }
    const tables = ['api_keys', 'developers', 'plans'];
    const held = await holdCommits(world.db, tables, PROGRAMS);
    const making = make(key, on);
    try {
      await Promise.race([making, eventually('the commit is held', () => held.isWaitedFor())]);
      assert.ok(await held.isWaitedFor(), 'the change was not held');
      await answersTo(key, on);
    } finally {
      await held.release();
    }
    await making;
    return answersTo(key, on, answer ? undefined : PATHS);
  }

  const DEPLOYMENTS: Readonly<
    Record<
      string,
      {
        readonly names: readonly (keyof Servers)[];
        /** Done once all keys are cached. @returns what undoes it */
        readonly strike?: (key: CreatedKey) => Promise<() => Promise<unknown>>;
        readonly announces?: true;
      }
    >
  > = {
    'a server without Redis, beside others that share one': { names: ['plain', 'one', 'two'], announces: true },
    'three servers, one of which reads a replica that lags': { names: ['one', 'two', 'lagging'] },
    'two servers with a Redis Cluster of which every shard has failed over and a slot moves': {
      names: ['clustered', 'other'],
      async strike({ developerId }) {
        const key = versionKey(developerId);
        for (const shard of cluster.shards) await cluster.failOver(shard);
        const { replica: from } = cluster.shardOf(key);
        const { replica: to } = cluster.shards.find(({ replica }) => replica !== from) ?? assert.fail();
        const moving = cluster.moveSlot(calculateSlot(key), from, to);
        return () => moving;
      },
    },
    'two servers with a Redis Cluster that has lost the shard of the timeline': {
      names: ['clustered', 'other'],
      async strike() {
        const { slots, ...nodes } = cluster.shardOf(TIMELINE_KEY);
        const hasFailedOver = String(await cluster.call(nodes.replica, 'ROLE')).startsWith('master');
        const [master, replica] = hasFailedOver ? [nodes.replica, nodes.master] : [nodes.master, nodes.replica];
        await master.kill();
        return async () => {
          await cluster.failOver({ master, replica, slots });
          await eventually('both have every shard', () =>
            [servers.clustered, servers.other].every(
              ({ changes }) => changes.findLast((change) => change.startsWith('redis')) === 'redis back',
            ),
          );
        };
      },
    },
    'three servers that have just lost Redis, and after its return': {
      names: ['one', 'two', 'lagging'],
      announces: true,
      async strike() {
        await world.redis.kill();
        return async () => {
          await world.redis.restart();
          await eventually('every server has Redis', () =>
            [servers.one, servers.two, servers.lagging].every(
              ({ changes }) => changes.findLast((change) => change.startsWith('redis')) === 'redis back',
            ),
          );
        };
      },
    },
  };

  for (const [by, { names, strike, announces = false }] of Object.entries(DEPLOYMENTS)) {
    it(`every change of a key applies from the next request by ${by}`, async () => {
      await announce(announces);
      const on = await stageOf(...names);
      const [kept = assert.fail(), ...keys] = await newKeys(1 + Object.keys(CHANGES).length);
      await replica.caughtUp();
      await replica.pauseReplay();
      await makeCached([kept, ...keys], on);
      const mend = await strike?.(keys[0] ?? assert.fail());
      const expected: Record<string, string[]> = {};
      const found: Record<string, string[]> = {};
      for (const [index, [what, change]] of Object.entries(CHANGES).entries()) {
        const key = keys[index] ?? assert.fail();
        const { isAnnounced, answer, undo } = change;
        if (isAnnounced) await announce(true);
        expected[what] = answer ? [answer(key)] : REFUSED;
        found[what] = await answersAfter(change, key, on);
        if (isAnnounced) await announce(announces);
        if (undo === undefined) continue;
        expected[`${what}, undone`] = ACCEPTED;
        found[`${what}, undone`] = await answersAfter({ make: undo, answer: () => '' }, key, on);
      }
      assert.deepEqual(found, expected);
      await mend?.();
      for (const [index, [what, { answer, undo }]] of Object.entries(CHANGES).entries()) {
        const key = keys[index] ?? assert.fail();
        const answers = undo ? ACCEPTED : answer ? [answer(key)] : REFUSED;
        assert.deepEqual(await answersTo(key, on), answers, `${what}, afterwards`);
      }
      assert.deepEqual(await answersTo(kept, on), ACCEPTED);
    });
  }

  it('a key is refused from its expiry on by every server, however that was set', async () => {
    await announce(false);
    const on = await stageOf('one', 'two', 'lagging', 'plain');
    const { putOff, expiring } = await whileAlive(async (seconds) => {
      const [later, rolled, sooner] = await newKeys(3);
      assert.ok(later && rolled && sooner);
      await on.command('keys', 'set-expiry', later.prefix, `${seconds}s`);
      await on.command('keys', 'roll', rolled.prefix, '--overlap', `${seconds}s`);
      await on.command('keys', 'set-expiry', sooner.prefix, `1h`);
      await makeCached([later, rolled, sooner], on);
      await on.command('keys', 'set-expiry', later.prefix, 'never');
      await on.command('keys', 'set-expiry', sooner.prefix, `${seconds}s`);
      // The commands have ended the versions.
      await makeCached([later, rolled, sooner], on);
      return { putOff: later, expiring: [rolled, sooner] };
    });
    for (const key of expiring) {
      await eventually('the key expires', () =>
        world.db('api_keys').where({ prefix: key.prefix }).andWhereRaw('expires_at <= clock_timestamp()').first('id'),
      );
      await assertRefused(key, on);
    }
    assert.deepEqual(await answersTo(putOff, on), ACCEPTED);
  });

  it('a key that was revoked stays refused when its developer is reinstated', async () => {
    const on = await stageOf('one', 'two', 'lagging');
    const [kept = assert.fail()] = await newKeys(1);
    const [revoked = assert.fail()] = await newKeys(1, kept);
    await makeCached([kept, revoked], on);
    await on.command('developers', 'suspend', String(kept.developerId));
    await revokeKey(world.db, revoked.prefix);
    await on.command('developers', 'reinstate', String(kept.developerId));
    await assertRefused(revoked, on);
    assert.deepEqual(await answersTo(kept, on), ACCEPTED);
  });

  it('a second end of a key is reported as such once every server refuses the key', async () => {
    await announce(false);
    const on = await stageOf('one', 'two', 'lagging');
    const endings = Object.entries({ ...ENDINGS.revoked, ...ENDINGS.suspended }).filter(([, it]) => !it.isAnnounced);
    const found: Record<string, string[]> = {};
    for (const [what, { make }] of endings) {
      const [key = assert.fail()] = await newKeys(1);
      await makeCached([key], on);
      // As a server or command does that is killed after its commit.
      await (what in ENDINGS.suspended ? suspendDeveloper(world.db, key.developerId) : revokeKey(world.db, key.prefix));
      assert.deepEqual(await answersTo(key, on), ACCEPTED, 'without a new version or an announcement');
      await make(key, on);
      found[what] = await answersTo(key, on, PATHS);
    }
    assert.deepEqual(found, Object.fromEntries(endings.map(([what]) => [what, REFUSED])));
  });

  it('every act that changes what a key may do renews the version of its developer, also when it is repeated', async () => {
    const on = await stageOf('one');
    const acts = Object.entries({ ...CHANGES, ...EXPIRIES.expiry_changed, ...EXPIRIES.rolled });
    const kept: string[] = [];
    for (const [what, { make, undo, isOnce, isAnnounced }] of acts) {
      if (isAnnounced) continue;
      const [key = assert.fail()] = await newKeys(1);
      await makeCached([key], on);
      const steps = {
        [what]: make,
        ...(isOnce ? {} : { [`${what}, again`]: make }),
        ...(undo && { [`${what}, undone`]: undo }),
      };
      for (const [step, act] of Object.entries(steps)) {
        const before = await direct.get(versionKey(key.developerId));
        assert.notEqual(before, null);
        await act(key, on);
        if ((await direct.get(versionKey(key.developerId))) === before) kept.push(step);
      }
    }
    assert.deepEqual(kept, []);
  });

  it('a finder is answered once every server refuses the key, also while the server of another finder has lost Redis', async () => {
    await announce(false);
    const network = await TcpProxy.start(world.redis.url);
    world.defer(() => network.stop());
    const cut = await world.startService({ trustedProxies: 1, settings: { REDIS_URL: network.url } });
    const on = await stageOf('one', 'two');
    const [key = assert.fail()] = await newKeys(1);
    await makeCached([key], on);
    network.swallow();
    const first = report({ ...on, servers: [cut] }, key);
    await eventually('the first finder has revoked the key', () =>
      world.db('api_keys').where({ prefix: key.prefix }).whereNotNull('revoked_at').first('id'),
    );
    await report(on, key);
    await assertRefused(key, on);
    await first;
  });

  it('a change of more developers than one batch renews the version of each', async () => {
    const ids = Array.from({ length: 501 }, (_, i) => 1_000_000 + i);
    const link = new RedisLink(world.redis.address, () => undefined);
    world.defer(() => link.close());
    await link.settled();
    for (const id of ids) await direct.set(versionKey(id), 'old');
    const change = changeCallers({ db: world.db, fence: new Fence(), redis: link });
    await change(
      async () => undefined,
      () => ids,
    );
    const versions = await Promise.all(ids.map((id) => direct.get(versionKey(id))));
    assert.equal(versions.filter((version) => version === 'old').length, 0);
  });

  it('what changes no key that may be cached leaves every server its cached callers', async () => {
    const on = await stageOf('one', 'two');
    const [key = assert.fail()] = await newKeys(1);
    await makeCached([key], on);
    const { developerId, prefix } = key;
    const before = await direct.get(versionKey(developerId));
    await settings(on, key, 'label', { label: 'production' });
    await post(on.operator, `/developers/${developerId}/plan`, { plan: 'pro' });
    await on.command('keys', 'set-label', prefix, 'staging');
    await on.command('keys', 'create', '--developer', String(developerId), '--plan', 'free');
    assert.notEqual(before, null);
    assert.equal(await direct.get(versionKey(developerId)), before);
  });
});
