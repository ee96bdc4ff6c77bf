import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { createDeveloper, suspendDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { runCommand } from '../support/programs/command.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { holdCommits } from '../support/postgres/held-commits.js';
import { startServer, type Outcome, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send } from '../support/request.js';

const EPOCH = '{catalog}:epoch';

/** What names a key on the command line. */
interface Names {
  readonly key_prefix: string;
  readonly id: number;
}

/** The commands that change what servers may remember, with the table that each one changes. */
const CHANGES = [
  ['keys set-plan', 'api_keys', ({ key_prefix }: Names) => ['keys', 'set-plan', key_prefix, '--plan', 'pro']],
  ['keys roll', 'api_keys', ({ key_prefix }: Names) => ['keys', 'roll', key_prefix, '--overlap', 'now']],
  ['keys revoke', 'api_keys', ({ key_prefix }: Names) => ['keys', 'revoke', key_prefix]],
  ['developers suspend', 'developers', ({ id }: Names) => ['developers', 'suspend', String(id)]],
  ['developers reinstate', 'developers', ({ id }: Names) => ['developers', 'reinstate', String(id)]],
  ['plans set', 'plans', () => ['plans', 'set', 'free', '--name', 'Free']],
] as readonly (readonly [string, string, (names: Names) => string[]])[];

describe('commands beside servers that share a Redis', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let direct: Redis;
  let server: ServerProcess;
  let environment: Record<string, string>;

  before(async () => {
    database = await openTestDatabase();
    redis = await startRedis();
    direct = new Redis(redis.url);
    direct.on('error', () => undefined);
    environment = { DATABASE_URL: database.url, REDIS_URL: redis.url };
    server = await startServer(environment);
  });

  after(async () => {
    await server.stop();
    direct.disconnect();
    await redis.stop();
    await database.close();
  });

  function catalog(...args: string[]): Promise<Outcome> {
    return runCommand(args, environment);
  }

  async function ask(key: string): Promise<number> {
    return (await send(server.url, '/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  async function planOf(key: string): Promise<unknown> {
    const { json } = await send(server.url, '/api/v1/me', { headers: { 'x-api-key': key } });
    return (json as { data: { plan: { id: string } } }).data.plan.id;
  }

  async function newKey(plan: string, developer?: number): Promise<{ key: string; key_prefix: string; id: number }> {
    const id =
      developer ??
      (
        JSON.parse((await catalog('developers', 'create', '--project-name', 'P', '--json')).stdout) as {
          developer: { id: number };
        }
      ).developer.id;
    const { stdout } = await catalog('keys', 'create', '--developer', String(id), '--plan', plan, '--json');
    return { id, ...(JSON.parse(stdout) as { key: string; key_prefix: string }) };
  }

  it('never print the password in REDIS_URL', async () => {
    const developer = String((await newKey('free')).id);
    await direct.config('SET', 'requirepass', 's3cret');
    try {
      const url = redis.url.replace('//', '//:wr0ng@');
      const { code, stderr } = await runCommand(['usage', '--developer', developer], {
        ...environment,
        REDIS_URL: url,
      });
      assert.equal(code, 1);
      assert.match(stderr, /cannot be reached \(WRONGPASS/);
      assert.doesNotMatch(stderr, /wr0ng|s3cret/);
      const right = redis.url.replace('//', '//:s3cret@');
      const usage = await runCommand(['usage', '--developer', developer], { ...environment, REDIS_URL: right });
      assert.deepEqual([usage.code, usage.stderr], [0, '']);
    } finally {
      await direct.config('SET', 'requirepass', '');
    }
  });

  describe('the command usage', () => {
    it('shows what each plan of a developer has used', async () => {
      const first = await newKey('free');
      const second = await newKey('pro', first.id);
      for (const key of [first.key, first.key, first.key, second.key]) assert.equal(await ask(key), 200);
      const { code, stdout, stderr } = await catalog('usage', '--developer', String(first.id), '--json');
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      const resets = /"resets_in_seconds": (\d+)/g;
      assert.deepEqual(JSON.parse(stdout.replace(resets, '"resets_in_seconds": 0')), {
        developer_id: first.id,
        plans: [
          {
            plan: 'free',
            minute: { used: 3, remaining: 57, limit: 60, resets_in_seconds: 0 },
            day: { used: 3, remaining: 9_997, limit: 10_000, resets_in_seconds: 0 },
          },
          {
            plan: 'pro',
            minute: { used: 1, remaining: 599, limit: 600, resets_in_seconds: 0 },
            day: { used: 1, remaining: 249_999, limit: 250_000, resets_in_seconds: 0 },
          },
        ],
      });
      const table = (await catalog('usage', '--developer', String(first.id))).stdout;
      assert.match(table, /^plan +per +used +left +limit +resets in \(s\)\n/);
      assert.match(table, /^free +minute +3 +57 +60 +\d+$/m);
      assert.match(table, /^free +day +3 +9997 +10000 +\d+$/m);
      assert.equal(await ask(first.key), 200);
    });

    it('shows what was used before a plan was lowered', async () => {
      const { db } = database;
      const generous = { name: 'Lowered', requestsPerMinute: 5, requestsPerDay: 50, commercialUse: false };
      await setPlan(db, 'lowered', generous);
      const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
      const { key } = await createKey(db, { developerId: id, planId: 'lowered' });
      for (let i = 0; i < 3; i += 1) assert.equal(await ask(key), 200);
      await setPlan(db, 'lowered', { requestsPerMinute: 2 });
      const { stdout } = await catalog('usage', '--developer', String(id));
      assert.match(stdout, /^lowered +minute +3 +0 +2 +\d+$/m);
      assert.match(stdout, /^lowered +day +3 +47 +50 +\d+$/m);
      const document = JSON.parse((await catalog('usage', '--developer', String(id), '--json')).stdout) as {
        plans: { minute: { used: number } }[];
      };
      assert.deepEqual(
        document.plans.map(({ minute }) => minute.used),
        [3],
      );
    });

    it('reports a developer without a key, and what to do without Redis', async () => {
      assert.deepEqual(await catalog('usage', '--developer', '2000000000'), {
        code: 1,
        stdout: '',
        stderr: 'catalog: There is no developer 2000000000 with a key.\n',
      });
      const { id } = await newKey('free');
      assert.deepEqual(await runCommand(['usage', '--developer', String(id)], { DATABASE_URL: database.url }), {
        code: 1,
        stdout: '',
        stderr:
          'catalog: Without REDIS_URL, only the server process has the counts: see the RateLimit field of its answers to the developer.\n',
      });
    });
  });

  describe('a change of keys, developers and plans', () => {
    it('applies from the next request: keys set-plan', async () => {
      const { key, key_prefix: prefix } = await newKey('free');
      assert.equal(await planOf(key), 'free');
      assert.equal((await catalog('keys', 'set-plan', prefix, '--plan', 'pro')).code, 0);
      assert.equal(await planOf(key), 'pro');
    });

    for (const [what, table, change] of CHANGES) {
      // What a command prints makes no difference to what it does.
      for (const flags of [[], ['--json']]) {
        it(`ends the epoch after its commit and not before: ${[what, ...flags].join(' ')}`, async () => {
          const { id } = await createDeveloper(database.db, { projectName: 'P', attributionRequired: false });
          const { prefix } = await createKey(database.db, { developerId: id, planId: 'free' });
          if (what === 'developers reinstate') await suspendDeveloper(database.db, id);
          // Of the database's own timeline: only a renewal replaces it.
          const { rows } = await database.db.raw<{ rows: { system: string }[] }>(
            'select system_identifier::text as system from pg_control_system()',
          );
          const system = rows[0]?.system ?? assert.fail();
          const before = `${system}/1/before`;
          const turn = await holdCommits(database.db, table);
          try {
            await direct.set(EPOCH, before);
            const command = catalog(...change({ key_prefix: prefix, id }), ...flags);
            await eventually('the commit is held', () => turn.isWaitedFor());
            assert.equal(await direct.get(EPOCH), before);
            await turn.release();
            assert.equal((await command).code, 0);
            assert.match(String(await direct.get(EPOCH)), new RegExp(`^${system}/1/[0-9a-f-]{36}$`));
          } finally {
            await turn.release();
          }
        });
      }
    }

    it('applies within moments without REDIS_URL, as the command reports', async () => {
      const { key, key_prefix: prefix } = await newKey('free');
      assert.equal(await ask(key), 200);
      assert.deepEqual(await runCommand(['keys', 'revoke', prefix], { DATABASE_URL: database.url }), {
        code: 0,
        stdout: `Revoked ${prefix}. It is refused within moments, permanently.\n`,
        stderr: 'catalog: REDIS_URL is not set here: servers that share a Redis apply the change within moments.\n',
      });
      await eventually('the key is refused', async () => (await ask(key)) === 401);
    });

    it('applies although Redis cannot be reached, as the command reports', async () => {
      const { key, key_prefix: prefix } = await newKey('free');
      assert.equal(await ask(key), 200);
      const { key_prefix: other } = await newKey('free');
      await redis.kill();
      assert.deepEqual(await catalog('keys', 'revoke', prefix), {
        code: 0,
        stdout: `Revoked ${prefix}. It is refused within moments, permanently.\n`,
        stderr:
          `catalog: The Redis named by REDIS_URL cannot be reached (connect ECONNREFUSED ${redis.url.slice('redis://'.length)}).` +
          ' The change is made. Servers that can still reach Redis apply it within moments, through the database.\n',
      });
      assert.equal(
        (await catalog('keys', 'set-plan', other, '--plan', 'pro')).stdout,
        `Moved ${other} from plan free to pro. The new plan applies within moments.\n`,
      );
      assert.equal(await ask(key), 401);
      const usage = await catalog('usage', '--developer', '1');
      assert.equal(usage.code, 1);
      assert.match(usage.stderr, /^catalog: The Redis named by REDIS_URL cannot be reached/);
      await redis.restart();
    });
  });
});
