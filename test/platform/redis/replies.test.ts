import assert from 'node:assert/strict';
import { RedisLimiter } from '../../../src/admission/charge/redis.js';
import { createVersion, renewVersions } from '../../../src/admission/versions.js';
import { FailedAttempts } from '../../../src/limits/failed-attempts.js';
import type { Plan } from '../../../src/limits/plans.js';
import { Fence } from '../../../src/platform/postgres/fence.js';
import { ifAvailable, RedisLink, RedisUnavailable, type RedisAddress } from '../../../src/platform/redis/link.js';
import { eachCase } from '../../support/each-case.js';
import { eventually } from '../../support/eventually.js';
import { ScriptedRedis, type Script, type ScriptedReply } from '../../support/redis/scripted-redis.js';
import { testWorld } from '../../support/world.js';

/** The bound on a command, in milliseconds. It is not what is tested, so a busy machine has time. */
const TIMEOUT_MS = 10_000;

const PLAN: Plan = { id: 'p', name: 'P', requestsPerMinute: 10, requestsPerDay: 100, commercialUse: false };

/** Where a text may be. */
const NOTHING = Buffer.from('$-1\r\n');

/** Of the form of no reply that the service waits for. */
const WRONG: readonly ScriptedReply[] = [
  null,
  'text',
  [],
  ['x', 'y'],
  [[7]],
  [[7, 'x', 7, 7, 7, 7]],
  [[1, 7, 7, 7, 7, 7]],
  [[1, 'x', 7, 7]],
  [[1, 'x', 7, 7, 7, 'x']],
  [[-1, 'x', 7, 7, 7, 7]],
];

/** The command that charges requests. */
const CHARGE = /^eval[^]*:minute:/;

describe('a Redis that replies as no other does', () => {
  const world = testWorld();
  const closing: (() => unknown)[] = [];

  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  async function start(script: Script = () => undefined, port?: number): Promise<ScriptedRedis> {
    const server = await ScriptedRedis.start(script, port);
    closing.push(() => server.stop());
    return server;
  }

  /** Opens a link, and collects its changes of state, with the reason where there is one. */
  async function open(address: RedisAddress) {
    const changes: string[] = [];
    const onChange = (state: string, error: unknown): void =>
      void changes.push(error instanceof Error ? `${state}: ${error.message}` : state);
    const lostSentinels: unknown[] = [];
    const onSentinelLost = (error: unknown): void => void lostSentinels.push(error);
    const link = new RedisLink(address, onChange, { timeoutMs: TIMEOUT_MS, onSentinelLost });
    closing.push(() => link.close());
    await link.settled();
    return { link, changes, lostSentinels };
  }

  const set = (link: RedisLink, key: string): Promise<string> => link.run(key, (client) => client.set(key, 'x'));

  describe('in a form that nobody expects', () => {
    const REQUEST = { developerId: 1, plan: PLAN };
    const limiter = (link: RedisLink): RedisLimiter => new RedisLimiter(link);
    const failures = (link: RedisLink): FailedAttempts => new FailedAttempts(link);
    type Operation = readonly [command: RegExp, use: (link: RedisLink) => unknown, outcome: unknown, right?: unknown];
    /** What gets a wrong reply, what it is sent for, the outcome, which is that without Redis, and what is not wrong. */
    const OPERATIONS: Readonly<Record<string, Operation>> = {
      'a trial': [/^eval[^]*:probe:/, ({ isUp }) => isUp, false],
      'a charge': [CHARGE, async (link) => (await limiter(link).charge(REQUEST)).version, undefined],
      'a charge under a version': [
        CHARGE,
        (link) => limiter(link).chargeUnder({ token: 'now', session: 1 }, REQUEST),
        { kind: 'unconfirmed', version: undefined },
      ],
      'what a counter has': [/^get /, async (link) => (await limiter(link).read(REQUEST)).countedIn, 'process', null],
      'the end of a counter': [/^pttl /, async (link) => (await limiter(link).read(REQUEST)).countedIn, 'process'],
      'a failed attempt': [
        /^eval[^]*:failures:/,
        (link) => failures(link).count('192.0.2.1'),
        { kind: 'within_limit' },
      ],
      'a check of failed attempts': [
        /^get /,
        (link) => failures(link).check('192.0.2.1'),
        { kind: 'within_limit' },
        null,
      ],
      'a renewed version': [/^eval[^]*:version/, (link) => renewVersions(link, new Fence(), [1]), [1], 'text'],
      'a new version': [/^set /, (link) => ifAvailable(createVersion(link, new Fence(), 1)), undefined, null],
    };

    for (const [what, [command, use, outcome, right]] of Object.entries(OPERATIONS)) {
      it(`${what} goes on without Redis, which counts as lost`, async () => {
        await eachCase(
          WRONG.filter((reply) => reply !== right),
          async (reply) => {
            const server = await start((...words) => {
              if (command.test(words.join(' '))) return reply;
              return words[0] === 'pttl' ? 60_000 : undefined;
            });
            const { link, changes } = await open(server);
            assert.deepEqual(await use(link), outcome);
            assert.match(String(changes[0]), /^lost: /);
          },
        );
      });
    }
  });

  it('clients are served as before, whatever the script that charges replies', async () => {
    let reply: ScriptedReply = null;
    const server = await start((...words) => (CHARGE.test(words.join(' ')) ? reply : undefined));
    const service = await world.startService({ redisUrl: server.url });
    await eachCase(WRONG, async (wrong) => {
      reply = wrong;
      const changes = service.changes.length;
      await eventually('Redis counts as up', async () => (await service.get('/readyz')).text.includes('"redis":"up"'));
      for (let i = 0; i < 3; i += 1) assert.equal((await service.get('/api/v1/me')).status, 200);
      assert.ok(service.changes.slice(changes).includes('redis lost'));
    });
    await service.stop();
  });

  describe('in a cluster', () => {
    type Node = readonly [endpoint: ScriptedReply, port: ScriptedReply, id: ScriptedReply];
    type Port = Pick<ScriptedRedis, 'port'>;

    const LAST_SLOT = 16_383;
    const MIDDLE = 8_192;
    /** Keys of slots in the first half and in the second. */
    const [KEY, OTHER_KEY] = ['b', 'a'];

    const nodeAt = ({ port }: Port, endpoint: ScriptedReply = '127.0.0.1'): Node => [endpoint, port, `id-of-${port}`];

    /** Half of the slots for each. */
    const halves = (one: Node, other: Node): ScriptedReply => [
      [0, MIDDLE - 1, one],
      [MIDDLE, LAST_SLOT, other],
    ];

    const addressOf = ({ url }: ScriptedRedis): RedisAddress => ({ url, cluster: [url] });

    const setsAt = ({ commands }: ScriptedRedis): number =>
      commands.filter((command) => command.startsWith('set ')).length;

    /** Starts two nodes with half of the slots each, and a link that is up. */
    async function startTwo() {
      const replies = { slots: undefined as ScriptedReply | undefined, set: [] as ReturnType<Script>[] };
      const script: Script = (name) => {
        if (name === 'cluster') return replies.slots;
        return name === 'set' ? replies.set.shift() : undefined;
      };
      const [one, other] = [await start(script), await start(script)];
      replies.slots = halves(nodeAt(one), nodeAt(other));
      return { one, other, replies, ...(await open(addressOf(one))) };
    }

    for (const redirection of ['ASK 3300 127.0.0.1:1', 'MOVED 3300 127.0.0.1:1', 'TRYAGAIN it moves']) {
      it(`a command is sent once more after ${redirection}, and its shard stays up`, async () => {
        const { one, other, replies, link, changes } = await startTwo();
        replies.set = [new Error(redirection)];
        assert.equal(await set(link, KEY), 'OK');
        replies.set = Array<Error>(4).fill(new Error(redirection));
        await assert.rejects(set(link, KEY), RedisUnavailable);
        assert.deepEqual([setsAt(one), setsAt(other), link.isUp, changes], [4, 0, true, []]);
      });
    }

    it('a command follows its slot to another master', async () => {
      const { one, other, replies, link, changes } = await startTwo();
      replies.slots = [[0, LAST_SLOT, nodeAt(other)]];
      replies.set = [new Error('MOVED 3300 127.0.0.1:1')];
      assert.equal(await set(link, KEY), 'OK');
      assert.deepEqual([setsAt(one), setsAt(other), changes], [1, 1, []]);
    });

    it('nodes that name no endpoint are where the node is that was asked', async () => {
      await eachCase([null, ''], async (endpoint) => {
        const other = await start();
        const one: ScriptedRedis = await start((name) =>
          name === 'cluster' ? halves(nodeAt(one, endpoint), nodeAt(other, endpoint)) : undefined,
        );
        const { link, changes } = await open(addressOf(one));
        assert.deepEqual([await set(link, KEY), await set(link, OTHER_KEY), changes], ['OK', 'OK', []]);
        assert.deepEqual([setsAt(one), setsAt(other)], [1, 1]);
      });
    });

    it('the named nodes are asked again once nothing answers where the masters were', async () => {
      const masters = [await start(), await start()] as [ScriptedRedis, ScriptedRedis];
      // Such as the name that a provider gives to all nodes.
      const named = await start((name) =>
        name === 'cluster' ? halves(nodeAt(masters[0]), nodeAt(masters[1])) : undefined,
      );
      const { link, changes } = await open(addressOf(named));
      assert.equal(await set(link, KEY), 'OK');
      for (const master of masters.splice(0, 2, await start(), await start())) await master.stop();
      await eventually('the new ones are found', () => changes.at(-1) === 'up' && link.isUp);
      await set(link, KEY);
      assert.deepEqual(masters.map(setsAt), [1, 0]);
    });

    it('slots of another form leave the cluster lost, until the form is right', async () => {
      const node = ['127.0.0.1', 1, 'id'];
      const WRONG_SLOTS: readonly ScriptedReply[] = [
        ...WRONG,
        [[0, 99_999_999, node]],
        [[-1, LAST_SLOT, node]],
        [['0', LAST_SLOT, node]],
        [[0, LAST_SLOT]],
        [[0, LAST_SLOT, null]],
        [[0, LAST_SLOT, [7, 1, 'id']]],
        [[0, LAST_SLOT, ['127.0.0.1', 65_536, 'id']]],
        [[0, LAST_SLOT, ['127.0.0.1', null, 'id']]],
        [[0, LAST_SLOT, ['127.0.0.1', 1, null]]],
      ];
      const replies = { slots: null as ScriptedReply };
      const server = await start((name) => (name === 'cluster' ? replies.slots : undefined));
      const links: Awaited<ReturnType<typeof open>>[] = [];
      await eachCase(WRONG_SLOTS, async (wrong) => {
        replies.slots = wrong;
        const opened = await open(addressOf(server));
        await assert.rejects(set(opened.link, KEY), RedisUnavailable);
        assert.match(opened.changes.join(), /^lost: /);
        links.push(opened);
      });
      replies.slots = [[0, LAST_SLOT, nodeAt(server)]];
      await eventually('all are up', () => links.every(({ link }) => link.isUp));
    });
  });

  it('a reply that comes after its server was lost does not count', async () => {
    let reply: (value: ScriptedReply) => void = () => undefined;
    const late = new Promise<ScriptedReply>((resolve) => (reply = resolve));
    const server = await start((name) => (name === 'set' ? late : undefined));
    const { link, changes } = await open(server);
    const refused = assert.rejects(set(link, 'key'), RedisUnavailable);
    await eventually('it is sent', () => server.commands.includes('set key x'));
    await assert.rejects(
      link.run('key', () => Promise.reject(new Error('such as a timeout'))),
      RedisUnavailable,
    );
    reply('OK');
    await refused;
    assert.equal(changes[0], 'lost: such as a timeout');
  });

  it('a server that has become a replica is connected to anew, as its address may lead to the new master', async () => {
    const replies: ScriptedReply[] = [new Error("READONLY You can't write against a read only replica.")];
    const server = await start((name) => (name === 'set' ? replies.shift() : undefined));
    const { link, changes } = await open(server);
    await assert.rejects(set(link, 'key'), RedisUnavailable);
    await eventually('it is up again', () => link.isUp);
    assert.equal(await set(link, 'key'), 'OK');
    assert.deepEqual([server.connections, changes.length], [2, 2]);
    assert.match(changes.join(), /^lost: READONLY .*,up$/);
  });

  describe('through Sentinels', () => {
    const NAMED = 'sentinel get-master-addr-by-name mymaster';

    /** Starts a master and its Sentinel, which reply this to these commands, and opens a link. */
    async function openMaster(replies: Readonly<Record<string, ScriptedReply>>) {
      const master = await start((name) => ({ info: 'role:master', ...replies })[name]);
      const usual = { [NAMED]: ['127.0.0.1', `${master.port}`], 'sentinel sentinels mymaster': [] };
      const script: Readonly<Record<string, ScriptedReply>> = { ...usual, ...replies };
      const { port } = await start((...words) => script[words.join(' ')]);
      return open({ url: 'redis://mymaster', sentinels: [{ host: '127.0.0.1', port }] });
    }

    it('a master is lost whose Sentinel names it, or which replies to INFO, in another form', async () => {
      // A list that is no address ends like an address where nothing listens.
      const cases = [
        ...[null, NOTHING, 'text', 7].map((reply) => ({ [NAMED]: reply })),
        ...[...WRONG, NOTHING, 7].map((reply) => ({ info: reply })),
      ];
      await eachCase(cases, async (replies) => {
        const { link, changes } = await openMaster(replies);
        assert.deepEqual([link.isUp, changes.length], [false, 1]);
        assert.match(changes.join(), /^lost: /);
        link.close();
      });
    });

    it('each error of a connection that waits for failovers is kept from the console', async () => {
      const printed: unknown[] = [];
      const { error: print } = console;
      console.error = (...text) => printed.push(text);
      try {
        // Each reply that nobody has asked for is an error.
        const reply = Buffer.from('*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n+one\r\n+two\r\n');
        const { link, lostSentinels } = await openMaster({ 'subscribe +switch-master': reply });
        await eventually('the first one is reported', () => lostSentinels.length === 1);
        assert.equal(await set(link, 'key'), 'OK');
      } finally {
        console.error = print;
      }
      assert.deepEqual(printed, []);
    });
  });
});
