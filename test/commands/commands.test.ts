import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { toRfc3339 } from '../../src/platform/time/micros.js';
import { programCommands, runCommand, runWithoutRedis } from '../support/programs/command.js';
import { ROOT } from '../support/guides.js';
import { createEmptyDatabase } from '../support/postgres.js';
import type { Outcome } from '../support/program.js';
import { testWorld } from '../support/world.js';

/** Wrong arguments, and what is wrong with them. */
const MISUSE: readonly (readonly [string[], RegExp])[] = [
  [['nonsense'], /^catalog: error: unknown command 'nonsense'\nRun "catalog --help" for usage\.\n$/],
  [
    ['keys', 'set-label', 'svc_aaaaaaaa'],
    /^catalog: error: missing required argument 'label'\nRun "catalog keys set-label --help" for usage\.\n$/,
  ],
  [
    ['developers', 'identities', 'x y'],
    /^catalog: error: command-argument value 'x y' is invalid for argument 'id'\. Use a whole number of 1 or more\.$/m,
  ],
  [
    ['events', '--limit', '3000000000'],
    /^catalog: error: option '--limit <number>' argument '3000000000' is invalid\. Use a whole number from 1 to 2147483647\.$/m,
  ],
  [
    ['events', '--limit', '0'],
    /^catalog: error: option '--limit <number>' argument '0' is invalid\. Use a whole number of 1 or more\.$/m,
  ],
  [
    ['import', 'x.csv', '--kind', 'film'],
    /^catalog: error: option '--kind <kind>' argument 'film' is invalid\. Allowed choices are titles, people, collections\.$/m,
  ],
  [['stat'], /^catalog: error: unknown command 'stat'\n\(Did you mean stats\?\)$/m],
  [['keys', 'rol'], /^catalog: error: unknown command 'rol'\n\(Did you mean roll\?\)$/m],
  [['keys', 'list', '--jsn'], /^catalog: error: unknown option '--jsn'\n\(Did you mean --json\?\)$/m],
  [['stats', 'verfy'], /^catalog: error: unknown command 'verfy'$/m],
  [['plans', 'set', 'Not A Plan'], /1 to 32 characters of a-z/],
  [['plans', 'set', 'free', '--per-minute', '0'], /whole number of 1 or more/],
  [['plans', 'set', 'free', '--per-minute', '1e3'], /whole number of 1 or more/],
  [['developers', 'create', '--project-name', ' '], /1 to 200 characters/],
  [['developers', 'create', '--project-name', 'Film\u001b[31m'], /Leave out line breaks and other control characters/],
  [['plans', 'set', 'free', '--name', 'Free\u202E'], /including text direction marks/],
  [['developers', 'suspend', 'x'], /whole number of 1 or more/],
  [['keys', 'create', '--developer', '1', '--plan', 'free', '--label', 'a\nb'], /Leave out line breaks/],
  [['keys', 'create', '--plan', 'free'], /required option '--developer <id>'/],
  [['feed', 'restart', '--after', 'yesterday'], /Unix time in seconds/],
  [['feed', 'restart', '--after', '1795218005000'], /Unix time in seconds/],
  [['stats', '--json', 'verify'], /^catalog: error: option '--json' must come after 'verify'$/m],
  [
    ['mirror', '--public-key', 'copies.pub', 'verify', '--from', 'http://127.0.0.1'],
    /^catalog: error: option '--public-key <file>' must come after 'verify'$/m,
  ],
];

describe('the command line', () => {
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

  it('the help of every command has a description, fits into 80 columns, and has an example where there are no subcommands', async () => {
    const commands = await programCommands();
    assert.ok(commands.length > 30 && commands.some(({ name }) => name === 'keys create'));
    for (const { name, command } of commands) {
      const words = name.split(' ');
      const { code, stdout, stderr } = await catalog(...words, '--help');
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      const [usage = '', , description = ''] = stdout.split('\n');
      assert.ok(`${usage} `.startsWith(`Usage: catalog ${name} `), usage);
      assert.match(description, /^[A-Z].*\w/, `"${name}" has no description`);
      assert.deepEqual(stdout.match(/^.{81,}$/gm), null, `"${name}" has lines of more than 80 columns`);
      if (words.length === 1) assert.equal((await catalog('help', name)).stdout, stdout);
      if (command.commands.length > 0) continue;
      assert.match(stdout, new RegExp(`^Examples?:\\n  .*catalog ${name}`, 'm'), name);
      assert.equal(stdout.match(/^Examples?:$/gm)?.length, 1, `"${name}" has the examples of another command`);
    }
    const { code, stdout } = await catalog('--help');
    assert.deepEqual([code, stdout.match(/^.{81,}$/gm)], [0, null]);
    assert.equal((await catalog('help')).stdout, stdout);
  });

  it('"help" for a command that does not exist is refused', async () => {
    const { code, stdout, stderr } = await catalog('help', 'nope');
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^Usage: catalog /);
  });

  it('the help fits into a narrower terminal', async () => {
    const { stdout } = await runCommand(['import', '--help'], {}, '', { columns: 60 });
    const notes = stdout.slice(stdout.indexOf('Rows with new ids'), stdout.indexOf('Examples:'));
    assert.ok(notes.length > 500);
    assert.deepEqual(notes.match(/^.{61,}$/gm), null);
  });

  it('the help fits into 80 columns also where commands are written the way the program was started', async () => {
    const { stdout } = await runCommand(['export', '--help'], {}, '', { command: 'node .build/cli.js' });
    assert.match(stdout, /"node .build\/cli.js\s+import"/);
    assert.deepEqual(stdout.slice(0, stdout.indexOf('Examples:')).match(/^.{81,}$/gm), null);
  });

  it('the version is that of the package, with that of Node.js', async () => {
    const { version } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8')) as { version: string };
    for (const flag of ['--version', '-V']) {
      const { code, stdout } = await catalog(flag);
      assert.deepEqual([code, stdout], [0, `catalog ${version} (Node.js ${process.versions.node})\n`]);
    }
  });

  it('wrong arguments end a command with code 2 and an error without control characters', async () => {
    for (const [args, message] of MISUSE) {
      const { code, stdout, stderr } = await catalog(...args);
      assert.deepEqual({ code, stdout }, { code: 2, stdout: '' }, args.join(' '));
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /(?!\n)[\p{Cc}\u202E]/u);
    }
  });

  it('plans are listed, changed and added, but not without their limits', async () => {
    const { stdout } = await catalog('plans', 'list');
    assert.match(stdout, /^id +name +per minute +per day +commercial use$/m);
    assert.match(stdout, /^free +Free +60 +10000 +no$/m);
    assert.deepEqual(await json('plans', 'set', 'pro', '--per-minute', '900'), {
      plan: { id: 'pro', name: 'Pro', requests_per_minute: 900, requests_per_day: 250_000, commercial_use: true },
      created: false,
    });
    const values = '--name Trial --per-minute 5 --per-day 50 --no-commercial-use'.split(' ');
    assert.deepEqual(await json('plans', 'set', 'trial', ...values), {
      plan: { id: 'trial', name: 'Trial', requests_per_minute: 5, requests_per_day: 50, commercial_use: false },
      created: true,
    });
    const { code, stderr } = await catalog('plans', 'set', 'half', '--name', 'Half');
    assert.equal(code, 1);
    assert.match(stderr, /There is no plan "half" yet.*--per-minute/);
    const { plans } = await json('plans', 'list');
    assert.deepEqual(
      (plans as { id: string }[]).map(({ id }) => id),
      ['trial', 'free', 'pro', 'scale'],
    );
  });

  describe('"feed restart"', () => {
    async function feedStart(): Promise<string> {
      const [at = ''] = await world.db('catalog_feed').pluck<string[]>('feed_start');
      return at;
    }

    it('"feed restart" restarts the feed and reports the feed start', async () => {
      const { feed_start: seconds, clock } = await json('feed', 'restart', '--yes');
      assert.equal(await feedStart(), toRfc3339(BigInt(Number(seconds)) * 1_000_000n));
      assert.ok(Number(seconds) > Number(clock) + 60);
      const { code, stdout } = await catalog('feed', 'restart', '--yes');
      assert.equal(code, 0);
      const at = await feedStart();
      assert.equal(
        stdout.split('\n')[0],
        `The feed start is now ${String(Date.parse(at) / 1000)} (${at}). Mirrors with an earlier position are refused and need a fresh copy.`,
      );
      assert.match(
        stdout,
        /^The feed refuses published copies made before, too\. Publish one now: .* --publish FOLDER$/m,
      );
    });

    it('"feed restart" asks on a terminal, and requires --yes elsewhere', async () => {
      const before = await feedStart();
      const restart = (answer: string, isTTY = true): Promise<Outcome> =>
        runCommand(['feed', 'restart'], { DATABASE_URL: world.url }, answer, { isTTY });
      for (const answer of ['n\n', '\n', '']) {
        assert.deepEqual(await restart(answer), {
          code: 1,
          stdout: '',
          stderr:
            'Every mirror will need a fresh copy. Restart the feed? [y/N] catalog: Not confirmed. The feed is unchanged.\n',
        });
      }
      const { code, stderr } = await restart('y\n', false);
      assert.equal(code, 2);
      assert.match(stderr, /^catalog: error: required option '--yes' not specified/);
      assert.equal(await feedStart(), before);
      assert.equal((await restart('y\n')).code, 0);
      assert.notEqual(await feedStart(), before);
    });

    it('"feed restart" reports how far ahead of the clock the feed start is, and refuses days', async () => {
      const now = Math.floor(Date.now() / 1000);
      const { code, stdout } = await catalog('feed', 'restart', '--yes', '--after', `${now + 7_200}.5`);
      assert.equal(code, 0);
      const at = await feedStart();
      assert.ok(Date.parse(at) / 1000 > now + 7_200);
      assert.match(
        stdout,
        /\nThis is 7\d{3} s ahead of the database's clock: until the clock catches up, new entries have timestamps in the future/,
      );

      const refused = await catalog('feed', 'restart', '--yes', '--after', String(now + 3 * 86_400));
      assert.deepEqual([refused.code, refused.stdout], [1, '']);
      assert.match(refused.stderr, /^catalog: The position \S+ is more than a day ahead of the database's clock/);
      assert.equal(await feedStart(), at);
    });
  });

  it('"stats" prints the stored counts', async () => {
    await world.db('catalog_counts').update({ movies: 7 });
    assert.match(
      (await catalog('stats')).stdout,
      /^counter +value\ntitles +0\nmovies +7\nseries +0\navailable in library +0\n/,
    );
    const { counts } = await json('stats');
    assert.deepEqual(counts, { titles: 0, movies: 7, series: 0, available_in_library: 0, people: 0, collections: 0 });
    await world.db('catalog_counts').update({ movies: 0 });
  });

  it('"stats verify" finds, names and repairs a wrong counter', async () => {
    await world.db.raw(
      "insert into titles (svc_id, media_type, title) values ('a', 'movie', 'A'), ('b', 'series', 'B')",
    );
    assert.deepEqual((await json('stats', 'verify')).mismatches, []);
    await world.db('catalog_counts').update({ movies: 7 });
    const found = await catalog('stats', 'verify');
    assert.equal(found.code, 1);
    assert.match(found.stderr, /^catalog: Wrong counter movies: stored 7, counted 1\. Correct them with --repair\.$/m);
    const document = await catalog('stats', 'verify', '--json');
    assert.equal(document.code, 1);
    assert.deepEqual((JSON.parse(document.stdout) as Record<string, unknown>).mismatches, [
      { counter: 'movies', kept: 7, counted: 1 },
    ]);
    const repaired = await catalog('stats', 'verify', '--repair');
    assert.equal(repaired.code, 0);
    assert.match(repaired.stdout, /^Repaired movies: stored 7/m);
    assert.match((await catalog('stats', 'verify')).stdout, /^All counters are correct: titles 2, movies 1, series 1/);
  });

  it('a database named by DATABASE_URL is migrated only by "migrate"', async () => {
    const empty = await createEmptyDatabase();
    try {
      const environment = { DATABASE_URL: empty.url };
      const refused = await runCommand(['plans', 'list'], environment);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /^catalog: .* lacks the migrations 001_.*"catalog migrate"/);
      assert.match((await runCommand(['migrate'], environment)).stdout, /^Applied 001_/);
      assert.equal((await runCommand(['migrate'], environment)).stdout, 'The schema is up to date.\n');
      assert.match((await runCommand(['plans', 'list'], environment)).stdout, /^free/m);
    } finally {
      await empty.drop();
    }
  });

  it('a database that cannot be reached is reported without its password', async () => {
    const environment = { DATABASE_URL: 'postgres://someone:s3cret@127.0.0.1:1/nothing' };
    const { code, stdout, stderr } = await runCommand(['plans', 'list'], environment);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^catalog: The database named by DATABASE_URL cannot be reached: .*ECONNREFUSED/);
    assert.equal(stderr.includes('s3cret'), false);
  });
});
