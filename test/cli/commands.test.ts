import assert from 'node:assert/strict';
import { toRfc3339 } from '../../src/platform/time/micros.js';
import { runCommand, runWithoutRedis } from '../support/programs/command.js';
import { createEmptyDatabase } from '../support/postgres.js';
import { runProgram, type Outcome } from '../support/program.js';
import { testWorld } from '../support/world.js';

const COMMANDS = [
  'serve',
  'migrate',
  'import',
  'export',
  'follow',
  'plans list',
  'plans set',
  'developers create',
  'developers list',
  'developers set-plan',
  'developers suspend',
  'developers reinstate',
  'keys create',
  'keys list',
  'keys set-plan',
  'keys roll',
  'keys revoke',
  'events',
  'feed restart',
  'stats verify',
  'usage',
];

/** Writes a text with escapes, for the title of a test. */
function printable(text: string): string {
  return text.replaceAll(/[^ -~]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describe('command line', () => {
  const world = testWorld();

  function catalog(...args: string[]): Promise<Outcome> {
    return runWithoutRedis(args, world.url);
  }

  /** Runs a command that must succeed with one JSON document on stdout and nothing anywhere else. */
  async function json(...args: string[]): Promise<Record<string, unknown>> {
    const { code, stdout, stderr } = await catalog(...args, '--json');
    assert.equal(stderr, '');
    assert.equal(code, 0);
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  describe('help', () => {
    it('the help of every command has an example', async () => {
      for (const command of COMMANDS) {
        const { code, stdout, stderr } = await catalog(...command.split(' '), '--help');
        assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
        assert.match(stdout, /^Usage: catalog /);
        assert.match(stdout, new RegExp(`^Examples?:\\n  .*catalog ${command}`, 'm'));
      }
    });

    it('the help of the program names every command', async () => {
      const { stdout } = await catalog('--help');
      for (const command of COMMANDS) assert.match(stdout, new RegExp(`^  ${command.split(' ')[0] ?? ''}\\b`, 'm'));
    });
  });

  describe('misuse', () => {
    const cases: readonly (readonly [string[], RegExp])[] = [
      [['nonsense'], /unknown command 'nonsense'/],
      [['plans', 'set'], /missing required argument 'plan'/],
      [['plans', 'set', 'Not A Plan'], /1 to 32 characters of a-z/],
      [['plans', 'set', 'free', '--per-minute', '0'], /whole number of 1 or more/],
      [['plans', 'set', 'free', '--per-minute', '1e3'], /whole number of 1 or more/],
      [['developers', 'create'], /required option '--project-name <name>'/],
      [['developers', 'create', '--project-name', ' '], /1 to 200 characters/],
      [
        ['developers', 'create', '--project-name', 'Film\u001b[31m'],
        /Leave out line breaks and other control characters/,
      ],
      [['plans', 'set', 'free', '--name', 'Free\u202E'], /including text direction marks/],
      [['developers', 'suspend', 'x'], /whole number of 1 or more/],
      [['keys', 'create', '--developer', '1', '--plan', 'free', '--label', 'a\nb'], /Leave out line breaks/],
      [['keys', 'create', '--plan', 'free'], /required option '--developer <id>'/],
      [['keys', 'create', '--developer', '1'], /required option '--plan <plan>'/],
      [['keys', 'set-plan', 'svc_aaaaaaaa'], /required option '--plan <plan>'/],
      [['keys', 'revoke'], /missing required argument 'prefix'/],
      [['feed', 'restart', '--after', 'yesterday'], /Unix time in seconds/],
      [['feed', 'restart', '--after', '1795218005000'], /Unix time in seconds/],
      [['stats', 'verify', '--nonsense'], /unknown option '--nonsense'/],
    ];
    for (const [args, message] of cases) {
      it(`"${printable(args.join(' '))}" is misuse and ends with code 2`, async () => {
        const { code, stdout, stderr } = await catalog(...args);
        assert.equal(stdout, '');
        assert.match(stderr, message);
        assert.doesNotMatch(stderr, /(?!\n)[\p{Cc}\u202E]/u);
        assert.equal(code, 2);
      });
    }
  });

  describe('plans', () => {
    it('plans are listed, changed and added', async () => {
      const { stdout } = await catalog('plans', 'list');
      assert.match(stdout, /^id +name +per minute +per day +commercial use$/m);
      assert.match(stdout, /^free +Free +60 +10000 +no$/m);

      assert.deepEqual(await json('plans', 'set', 'pro', '--per-minute', '900'), {
        plan: { id: 'pro', name: 'Pro', requests_per_minute: 900, requests_per_day: 250_000, commercial_use: true },
        created: false,
      });
      assert.deepEqual(
        await json(
          'plans',
          'set',
          'trial',
          '--name',
          'Trial',
          '--per-minute',
          '5',
          '--per-day',
          '50',
          '--no-commercial-use',
        ),
        {
          plan: { id: 'trial', name: 'Trial', requests_per_minute: 5, requests_per_day: 50, commercial_use: false },
          created: true,
        },
      );
      const { plans } = await json('plans', 'list');
      assert.deepEqual(
        (plans as { id: string }[]).map(({ id }) => id),
        ['trial', 'free', 'pro', 'scale'],
      );
    });

    it('a plan is not added without its limits', async () => {
      const { code, stderr } = await catalog('plans', 'set', 'half', '--name', 'Half');
      assert.equal(code, 1);
      assert.match(stderr, /There is no plan "half" yet.*--per-minute/);
    });
  });

  describe('developers and keys', () => {
    it('commands take a developer and a key through their whole life', async () => {
      const created = (await json('developers', 'create', '--project-name', ' Film club ', '--attribution-required'))
        .developer as Record<string, unknown>;
      const id = String(created.id);
      assert.equal(created.project_name, 'Film club');
      assert.equal(created.attribution_required, true);
      assert.match(String(created.created_at), TIMESTAMP);
      assert.equal(created.suspended_at, null);

      const key = await json('keys', 'create', '--developer', id, '--plan', 'free', '--label', 'production');
      assert.match(String(key.key), /^svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/);
      const prefix = String(key.key_prefix);
      assert.equal(String(key.key).startsWith(`${prefix}_`), true);
      assert.deepEqual(Object.keys(key).sort(), [
        'created_at',
        'developer_id',
        'expires_at',
        'key',
        'key_prefix',
        'label',
        'last_used_at',
        'plan_id',
        'revoked_at',
        'state',
        'successor',
        'successor_active',
      ]);

      const table = await catalog('keys', 'list', '--developer', id);
      assert.match(table.stdout, new RegExp(`^${prefix} +${id} +free +production +\\S+ +- +- +active$`, 'm'));
      assert.equal(table.stdout.includes(String(key.key)), false);
      assert.match((await catalog('developers', 'suspend', id)).stdout, /^Suspended developer/);
      assert.match(
        String(((await json('developers', 'suspend', id)).developer as Record<string, unknown>).suspended_at),
        TIMESTAMP,
      );
      assert.equal(
        ((await json('developers', 'reinstate', id)).developer as Record<string, unknown>).suspended_at,
        null,
      );

      const moved = await catalog('keys', 'set-plan', prefix, '--plan', 'scale');
      assert.deepEqual(moved, {
        code: 0,
        stdout: `Moved ${prefix} from plan free to scale. The new plan applies within moments.\n`,
        stderr: '',
      });
      assert.deepEqual(await catalog('keys', 'set-plan', prefix, '--plan', 'scale'), {
        code: 0,
        stdout: `Key ${prefix} is already on plan scale.\n`,
        stderr: '',
      });
      const { key: _key, ...record } = key;
      assert.deepEqual(await json('keys', 'set-plan', prefix, '--plan', 'free'), { ...record, changed: true });

      const revoked = await catalog('keys', 'revoke', prefix);
      assert.equal(revoked.stdout, `Revoked ${prefix}. It is refused within moments, permanently.\n`);
      const again = await json('keys', 'revoke', prefix);
      assert.match(String(again.revoked_at), TIMESTAMP);
      const refused = await catalog('keys', 'set-plan', prefix, '--plan', 'pro');
      assert.deepEqual(refused, {
        code: 1,
        stdout: '',
        stderr: `catalog: Key ${prefix} is revoked. Create a new one: "catalog keys create --developer ${id} --plan pro".\n`,
      });
    });

    it('a name with control characters, written by SQL, is shown without them', async () => {
      await world
        .db('developers')
        .insert({ project_name: 'Film \u001b[31mclub \u202E\u2069', attribution_required: false });
      const { stdout } = await catalog('developers', 'list');
      assert.match(stdout, /Film \uFFFD\[31mclub \uFFFD\uFFFD/);
    });

    it('a command that names something unknown fails with code 1 and shows how to list it', async () => {
      for (const [args, message] of [
        [['developers', 'suspend', '999'], /^catalog: There is no developer 999\..*developers list/],
        [['keys', 'revoke', 'svc_aaaaaaaa'], /^catalog: No key has the prefix "svc_aaaaaaaa"\..*keys list/],
        [['keys', 'create', '--developer', '1', '--plan', 'no'], /^catalog: There is no plan "no"\..*plans list/],
      ] as const) {
        const { code, stdout, stderr } = await catalog(...args);
        assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
        assert.match(stderr, message);
      }
    });
  });

  describe('feed restart', () => {
    async function beginning(): Promise<string> {
      const [at = ''] = await world.db('catalog_feed').pluck<string[]>('beginning');
      return at;
    }

    it('the feed restarts, and the command reports where', async () => {
      const { beginning: seconds, clock } = await json('feed', 'restart');
      assert.equal(await beginning(), toRfc3339(BigInt(Number(seconds)) * 1_000_000n));
      assert.ok(Number(seconds) > Number(clock) + 60);
      const { code, stdout } = await catalog('feed', 'restart');
      assert.equal(code, 0);
      const at = await beginning();
      assert.equal(
        stdout.split('\n')[0],
        `The feed now begins at ${String(Date.parse(at) / 1000)} (${at}). Mirrors with an earlier position are refused and need a fresh copy.`,
      );
    });

    it('the command reports how far ahead of the clock the feed begins, and refuses days', async () => {
      const now = Math.floor(Date.now() / 1000);
      const { code, stdout } = await catalog('feed', 'restart', '--after', `${now + 7_200}.5`);
      assert.equal(code, 0);
      const at = await beginning();
      assert.ok(Date.parse(at) / 1000 > now + 7_200);
      assert.match(
        stdout,
        /\nThis is 7\d{3} s ahead of the database's clock: until then, new entries have times in the future/,
      );

      const refused = await catalog('feed', 'restart', '--after', String(now + 3 * 86_400));
      assert.deepEqual([refused.code, refused.stdout], [1, '']);
      assert.match(refused.stderr, /^catalog: The position \S+ is more than a day ahead of the database's clock/);
      assert.equal(await beginning(), at);
    });
  });

  describe('stats verify', () => {
    it('a wrong counter is found, named and repaired', async () => {
      await world.db.raw(
        "insert into titles (svc_id, media_type, title) values ('a', 'movie', 'A'), ('b', 'series', 'B')",
      );
      assert.deepEqual((await json('stats', 'verify')).mismatches, []);

      await world.db('catalog_counts').update({ movies: 7 });
      const found = await catalog('stats', 'verify');
      assert.equal(found.code, 1);
      assert.match(found.stderr, /^catalog: Wrong: movies is kept as 7, but a recount found 1$/m);
      const document = await catalog('stats', 'verify', '--json');
      assert.equal(document.code, 1);
      assert.deepEqual((JSON.parse(document.stdout) as Record<string, unknown>).mismatches, [
        { counter: 'movies', kept: 7, counted: 1 },
      ]);

      const repaired = await catalog('stats', 'verify', '--repair');
      assert.equal(repaired.code, 0);
      assert.match(repaired.stdout, /^Repaired movies is kept as 7/m);
      assert.match((await catalog('stats', 'verify')).stdout, /^All counters are right: titles 2, movies 1, series 1/);
    });
  });

  describe('the database', () => {
    it('a database named by DATABASE_URL is migrated only by "migrate"', async () => {
      const empty = await createEmptyDatabase();
      try {
        const environment = { DATABASE_URL: empty.url };
        const refused = await runCommand(['plans', 'list'], environment);
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /^catalog: .* lacks 001_.*"catalog migrate"/);
        assert.match((await runCommand(['migrate'], environment)).stdout, /^Applied 001_/);
        assert.equal((await runCommand(['migrate'], environment)).stdout, 'The schema is up to date.\n');
        assert.match((await runCommand(['plans', 'list'], environment)).stdout, /^free/m);
      } finally {
        await empty.drop();
      }
    });

    it('a database that cannot be reached is reported without its password', async () => {
      const { code, stdout, stderr } = await runCommand(['plans', 'list'], {
        DATABASE_URL: 'postgres://someone:s3cret@127.0.0.1:1/nothing',
      });
      assert.equal(stdout, '');
      assert.match(stderr, /^catalog: The database named by DATABASE_URL cannot be reached: .*ECONNREFUSED/);
      assert.equal(stderr.includes('s3cret'), false);
      assert.equal(code, 1);
    });
  });

  it('all wrong settings are reported at once, before anything starts', async () => {
    const { code, stdout, stderr } = await runProgram(['serve'], {
      PORT: 'eighty',
      HOST: 'not a host',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://root:s3cret@x/y',
      DATABASE_POOL_SIZE: '1',
    });
    assert.equal(stdout, '');
    for (const name of ['PORT', 'HOST', 'LOG_LEVEL', 'DATABASE_URL', 'DATABASE_POOL_SIZE']) {
      assert.match(stderr, new RegExp(`^  ${name} must be `, 'm'));
    }
    assert.equal(stderr.includes('s3cret'), false);
    assert.equal(code, 1);
  });
});
