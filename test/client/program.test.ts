import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { link as hardLink, lstat, readdir, readFile, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Answer } from '../../src/contract.js';
import { runCommand, startCommand, type RunningCommand } from '../support/programs/command.js';
import { eventually } from '../support/eventually.js';
import { runProgram, startProgram, type Outcome, type RunningProgram } from '../support/program.js';
import { recordFiles } from '../support/programs/file-events.js';
import { freePort } from '../support/programs/free-port.js';
import { skipWithout } from '../support/programs/skip.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles, removeTitles, titleIds } from '../support/titles.js';
import { testWorld } from '../support/world.js';

type Entry = Answer<'getChanges'>['data'][number];

/** Entries whose lines exceed the capacity of any pipe. */
const MORE_THAN_A_PIPE = 9_000;

describe('catalog follow', () => {
  const world = testWorld({ service: true });
  let service: TestService;
  let folder: string;
  let state: string;
  /** A position before all titles of a test. */
  let start: string;

  beforeEach(async () => {
    ({ service } = world);
    await removeTitles(service.db);
    folder = await temporaryFolder();
    state = join(folder, 'mirror.json');
    start = String(Math.floor(Date.now() / 1000) - 10);
  });

  function args(...more: string[]): string[] {
    return ['follow', '--base-url', service.url, '--state', state, ...more];
  }

  function run(...more: string[]): Promise<Outcome> {
    return runCommand(args(...more), { CATALOG_API_KEY: service.key });
  }

  /** Follows without `--once`, in a process of its own. */
  function startFollowing(): RunningProgram {
    return startProgram(args('--interval', '0.1', '--since', start), { CATALOG_API_KEY: service.key });
  }

  /** The same in this process. */
  async function startHere(...more: string[]): Promise<RunningCommand> {
    const follower = startCommand(args('--interval', '0.1', '--since', start, ...more), {
      CATALOG_API_KEY: service.key,
    });
    await eventually('it has begun', () => follower.output.stderr.startsWith('Following'));
    return follower;
  }

  /** Runs the program with its standard output appended to a file. */
  function runInto(file: string, ...more: string[]): Promise<Outcome> {
    return runProgram(args('--since', start, ...more), { CATALOG_API_KEY: service.key }, '', { stdout: file });
  }

  function entries(stdout: string): Entry[] {
    assert.match(stdout, /^(?:.+\n)*$/);
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Entry);
  }

  function ids(stdout: string): string[] {
    return entries(stdout).map(({ svc_id: id }) => id);
  }

  async function saved(): Promise<unknown> {
    return JSON.parse(await readFile(state, 'utf8'));
  }

  /** The position of the last entry. */
  async function newest(): Promise<number> {
    const { rows } = await service.db.raw<{ rows: [{ at: string }] }>(
      'select extract(epoch from max(updated_at))::text as at from titles',
    );
    return Number(rows[0].at);
  }

  async function expectedState(): Promise<unknown> {
    const [feedId] = await service.db('catalog_feed').pluck<string[]>('identity');
    return { version: 1, base_url: service.url, since: await newest(), feed_id: feedId };
  }

  it('a follower that is led to another feed writes nothing of it, and keeps its state', async () => {
    await addTitles(service.db, 3);
    assert.equal((await run('--since', start, '--once')).code, 0);
    const before = await saved();
    // As another database at the same address has it, whose window includes the position.
    await service.db.raw('update catalog_feed set identity = gen_random_uuid()');
    await addTitles(service.db, 2, 'theirs');
    const { code, stdout, stderr } = await run('--once');
    assert.deepEqual([code, stdout, await saved()], [1, '', before]);
    assert.match(
      stderr,
      /The position belongs to the feed \S{36}, but the service now has the feed \S{36}\. Get a fresh full copy of the catalogue/,
    );
    // A state of an earlier version names no feed, and takes the first one that it finds.
    const { feed_id: _unknown, ...earlier } = before as { feed_id: string };
    writeFileSync(state, JSON.stringify(earlier));
    assert.deepEqual(ids((await run('--once')).stdout), ['theirs-0001', 'theirs-0002']);
    assert.deepEqual(await saved(), await expectedState());
  });

  it('a follower writes what changed, saves its position, and resumes from there', async () => {
    await addTitles(service.db, 450);
    const first = await run('--since', start, '--once');
    assert.equal(first.code, 0);
    assert.deepEqual(
      entries(first.stdout),
      await service
        .db('titles')
        .select('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles')
        .orderBy('updated_at'),
    );
    assert.match(
      first.stderr,
      new RegExp(`^Following ${service.url} from ${start} \\(.*Z\\)\\.\nStopped at \\d+\\.?\\d* \\(.*Z\\)\\.\n$`),
    );
    assert.deepEqual(await saved(), await expectedState());

    const second = await run('--once');
    assert.deepEqual([second.code, second.stdout], [0, '']);

    await service.db('titles').where({ svc_id: 'title-0007' }).update({ title: 'New' });
    await addTitles(service.db, 1, 'more');
    const third = await run('--once', '--since', start);
    assert.deepEqual([third.code, ids(third.stdout)], [0, ['title-0007', 'more-0001']]);
    assert.deepEqual(await saved(), await expectedState());
    assert.deepEqual(await readdir(folder), ['mirror.json']);
  });

  it('a follower follows until a signal, then exits with code 0', async () => {
    const follower = startFollowing();
    await addTitles(service.db, 1, 'a');
    await eventually('the first entry', () => follower.output.stdout.includes('a-0001'));
    await addTitles(service.db, 201, 'b');
    await eventually('the position is that of the last entry', async () => {
      assert.deepEqual(await saved(), await expectedState());
      return true;
    });
    follower.child.kill('SIGTERM');
    const { code, stdout, stderr } = await follower.ended;
    assert.equal(code, 0);
    assert.deepEqual(ids(stdout), ['a-0001', ...titleIds(201, 'b')]);
    assert.match(stderr, /\nStopped at .*\n$/);
    assert.deepEqual(await readdir(folder), ['mirror.json']);
  });

  it('a follower waits for a slow reader, saves no position ahead of it, and still exits on a signal', async () => {
    await addTitles(service.db, MORE_THAN_A_PIPE);
    const earlier = service.queries.length;
    const follower = startFollowing();
    follower.child.stdout?.pause();
    await eventually('it has begun', () => existsSync(state));
    // A follower that waits requests no further page.
    let pages = -1;
    await eventually('it waits', () => {
      const before = pages;
      pages = service.queries.slice(earlier).filter((sql) => sql.includes('order by updated_at')).length;
      return pages === before && pages < MORE_THAN_A_PIPE / 200;
    });
    follower.child.kill('SIGTERM');
    await once(follower.child, 'exit');
    follower.child.stdout?.resume();
    const { code, stdout } = await follower.ended;
    assert.equal(code, 0);
    const complete = ids(stdout.slice(0, stdout.lastIndexOf('\n') + 1));
    assert.deepEqual(complete, titleIds(MORE_THAN_A_PIPE).slice(0, complete.length));
    assert.ok(complete.length < MORE_THAN_A_PIPE);

    const rest = ids((await run('--once')).stdout);
    // The rest follows the saved position, and no entry lies between the first lines and that position.
    assert.deepEqual(rest, titleIds(MORE_THAN_A_PIPE).slice(-rest.length));
    assert.ok(complete.length + rest.length >= MORE_THAN_A_PIPE);
    assert.ok(rest.length < MORE_THAN_A_PIPE);
  });

  it('a follower exits with code 0 if its reader closes, and saves no position past the entries that were read', async () => {
    const follower = startFollowing();
    await eventually('it has begun', () => existsSync(state));
    follower.child.stdout?.destroy();
    await addTitles(service.db, 1);
    const { code, stderr } = await follower.ended;
    assert.equal(code, 0);
    assert.match(stderr, /^Following .*\n$/);
    const { since } = (await saved()) as { since: number };
    assert.ok(since < (await newest()), `the position is ${since}`);
  });

  it('a follower appends to a file, and ends a line that a crash cut short', async () => {
    const file = join(folder, 'changes.ndjson');
    writeFileSync(file, '{"svc_id":"earlier"}\n{"svc_id":"half');
    for (const prefix of ['a', 'b']) {
      await addTitles(service.db, 2, prefix);
      const { code } = await runInto(file, '--once');
      assert.equal(code, 0);
    }
    const lines = readFileSync(file, 'utf8').split('\n');
    assert.deepEqual(lines.slice(0, 2), ['{"svc_id":"earlier"}', '{"svc_id":"half']);
    assert.deepEqual(ids(lines.slice(2).join('\n')), ['a-0001', 'a-0002', 'b-0001', 'b-0002']);
  });

  it('a follower exits with code 1 if the disk is full, and keeps its position', async function () {
    if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
    await addTitles(service.db, 1);
    const { code, stderr } = await runInto('/dev/full');
    assert.equal(code, 1);
    assert.match(stderr, /\ncatalog: Cannot write the lines: ENOSPC.*\. The saved position is unchanged\.\n$/);
    assert.deepEqual(await readdir(folder), []);
  });

  it('a follower replaces a link in place of its new state file, and does not write through it', async () => {
    const other = join(folder, 'other');
    for (const [name, link] of Object.entries({ symlink, hardLink })) {
      await addTitles(service.db, 1, name);
      writeFileSync(other, 'of another account');
      await link(other, `${state}.new`);
      assert.equal((await run('--once', '--since', start)).code, 0);
      assert.equal(readFileSync(other, 'utf8'), 'of another account');
      assert.equal((await lstat(state)).isFile(), true);
      assert.deepEqual(await saved(), await expectedState());
      assert.deepEqual((await readdir(folder)).sort(), ['mirror.json', 'other']);
    }
  });

  it('a follower has each page on the disk before its position, and each position on the disk before it counts', async () => {
    await addTitles(service.db, 201);
    const events = await recordFiles(
      args('--since', start, '--once'),
      { CATALOG_API_KEY: service.key },
      join(folder, 'changes.ndjson'),
    );
    const page = [
      'sync 1',
      'sync mirror.json in the making',
      'mirror.json in the making -> mirror.json',
      `sync ${basename(folder)}`,
    ];
    assert.deepEqual(events, [...page, ...page]);
  });

  it('a follower retries while the service is down, and reports it', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const follower = await startHere('--base-url', url);
    await eventually('it reports', () => follower.output.stderr.includes(' Retrying in '));
    const { code, stderr } = await follower.stop();
    assert.equal(code, 0);
    assert.match(stderr, /\nCannot reach the service: connect ECONNREFUSED 127\.0\.0\.1:\d+\. Retrying in 1 s\.\n/);
  });

  async function assertRefused(outcome: Promise<Outcome>, message: RegExp): Promise<void> {
    const { code, stdout, stderr } = await outcome;
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /svc_\w{8}_/);
  }

  it('a follower refuses to start without a position or a key', async () => {
    await assertRefused(
      run('--once'),
      /^catalog: The state file .*mirror\.json does not exist yet\. Set --since to .* full copy of the catalogue\./,
    );
    for (const environment of [{}, { CATALOG_API_KEY: ' ' }] as Record<string, string>[]) {
      await assertRefused(
        runCommand(args('--since', start, '--once'), environment),
        /^catalog: Set the environment variable CATALOG_API_KEY/,
      );
    }
    assert.deepEqual(await readdir(folder), []);
  });

  it('a follower refuses a state file that is damaged or of another service, and leaves it as it is', async () => {
    const damaged =
      /^catalog: .*mirror\.json is damaged, or is not a state file\. Restore it from a backup: .* fresh copy .*\n$/;
    for (const [text, message] of [
      ['', damaged],
      ['{', damaged],
      ['null', damaged],
      ['{"version":1,"base_url":"x","since":"1"}', damaged],
      ['{"version":2,"base_url":"x","since":1}', damaged],
      ['{"version":1,"base_url":"x","since":-1}', damaged],
      [
        '{"version":1,"base_url":"https://other.example","since":1}',
        /^catalog: The state file .*mirror\.json belongs to https:\/\/other\.example, not to http:\/\/127\.0\.0\.1:\d+\. Use one state file for each service\./,
      ],
    ] as const) {
      writeFileSync(state, text);
      await assertRefused(run('--once', '--since', start), message);
      assert.equal(await readFile(state, 'utf8'), text);
    }
  });

  it('a follower refuses a state file that another one uses under any name, and ends if another takes it over', async () => {
    const follower = await startHere();
    await eventually('it has saved', () => existsSync(state));
    const alias = join(folder, 'alias.json');
    await symlink(state, alias);
    await assertRefused(
      run('--state', alias, '--once'),
      /^catalog: Another follower uses the state file .*alias\.json .*\. Stop it, or choose another state file\.\n$/,
    );
    // Another follower would do this if it took the lock for stale.
    let outcome: Outcome | undefined;
    void follower.ended.then((ended) => (outcome = ended));
    const { code, stderr } = await eventually('the follower notices', () => {
      utimesSync(`${state}.lock`, new Date(), new Date());
      return outcome;
    });
    assert.equal(code, 1);
    assert.match(stderr, /\ncatalog: Another follower has taken over the state file .*mirror\.json\.\n$/);
  });

  it('a follower refuses a state file that cannot be created or read', async () => {
    const missing = join(folder, 'none/x.json');
    await assertRefused(
      run('--state', missing, '--since', start),
      /^catalog: Cannot create the state file .*x\.json: ENOENT/,
    );
    mkdirSync(state);
    await assertRefused(run('--since', start), /^catalog: Cannot read the state file .*mirror\.json: EISDIR/);
  });

  it('a follower refuses a position or an interval that is none as misuse', async () => {
    for (const [option, value, message] of [
      ['--since', 'yesterday', /Unix time in seconds/],
      ['--since', '1795218005000', /Unix time in seconds/],
      ['--interval', '0', /seconds, from 0\.1/],
      ['--interval', 'often', /seconds, from 0\.1/],
    ] as const) {
      const { code, stdout, stderr } = await run(option, value);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    }
  });
});
