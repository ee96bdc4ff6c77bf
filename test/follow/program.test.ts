import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { link as hardLink, lstat, readdir, readFile, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Answer } from '../../src/contract.js';
import { runCommand } from '../support/programs/command.js';
import { eventually } from '../support/eventually.js';
import { startProgram, type Outcome, type RunningProgram } from '../support/program.js';
import { recordFiles } from '../support/programs/file-events.js';
import { freePort } from '../support/programs/free-port.js';
import { skipWithout } from '../support/programs/skip.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles, removeTitles, titleIds } from '../support/titles.js';
import { testWorld } from '../support/world.js';

type Entry = Answer<'getChanges'>['data'][number];

const CLI = fileURLToPath(new URL('../../.build/cli.js', import.meta.url));

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

  /** Follows without `--once`. */
  function startFollowing(...more: string[]): RunningProgram {
    return startProgram(args('--interval', '0.1', ...more), { CATALOG_API_KEY: service.key });
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
    return { version: 1, base_url: service.url, since: await newest() };
  }

  it('writes what changed, saves its position, and resumes from there', async () => {
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

  it('saves its position even if nothing has changed', async () => {
    const { code, stdout } = await run('--since', `${start}.123456`, '--once');
    assert.deepEqual([code, stdout], [0, '']);
    assert.deepEqual(await saved(), { version: 1, base_url: service.url, since: Number(`${start}.123456`) });
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`follows until ${signal}, then exits with code 0`, async () => {
      const follower = startFollowing('--since', start);
      await addTitles(service.db, 1, 'a');
      await eventually('the first entry', () => follower.output.stdout.includes('a-0001'));
      await addTitles(service.db, 201, 'b');
      await eventually(
        'the position is that of the last entry',
        async () => existsSync(state) && JSON.stringify(await saved()) === JSON.stringify(await expectedState()),
      );
      follower.child.kill(signal);
      const { code, stdout, stderr } = await follower.ended;
      assert.equal(code, 0);
      assert.deepEqual(ids(stdout), ['a-0001', ...titleIds(201, 'b')]);
      assert.match(stderr, /\nStopped at .*\n$/);
      assert.deepEqual(await readdir(folder), ['mirror.json']);
    });
  }

  it('waits for a slow reader, saves no position ahead of it, and still exits on a signal', async () => {
    await addTitles(service.db, MORE_THAN_A_PIPE);
    const earlier = service.queries.length;
    const follower = startFollowing('--since', start);
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

  it('exits with code 0 if its reader closes, and saves no position past the entries that were read', async () => {
    const follower = startFollowing('--since', start);
    await eventually('it has begun', () => existsSync(state));
    follower.child.stdout?.destroy();
    await addTitles(service.db, 1);
    const { code, stderr } = await follower.ended;
    assert.equal(code, 0);
    assert.match(stderr, /^Following .*\n$/);
    const { since } = (await saved()) as { since: number };
    assert.ok(since < (await newest()), `the position is ${since}`);
  });

  it('appends to a file, and ends a line that a crash cut short', async () => {
    const file = join(folder, 'changes.ndjson');
    writeFileSync(file, '{"svc_id":"earlier"}\n{"svc_id":"half');
    for (const prefix of ['a', 'b']) {
      await addTitles(service.db, 2, prefix);
      const fd = openSync(file, 'a');
      const child = spawn(process.execPath, [CLI, ...args('--since', start, '--once')], {
        env: { CATALOG_API_KEY: service.key },
        stdio: ['ignore', fd, 'pipe'],
      });
      child.stderr?.resume();
      assert.deepEqual(await once(child, 'close'), [0, null]);
      closeSync(fd);
    }
    const lines = readFileSync(file, 'utf8').split('\n');
    assert.deepEqual(lines.slice(0, 2), ['{"svc_id":"earlier"}', '{"svc_id":"half']);
    assert.deepEqual(ids(lines.slice(2).join('\n')), ['a-0001', 'a-0002', 'b-0001', 'b-0002']);
  });

  it('exits with code 1 if the disk is full, and keeps its position', async function () {
    if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
    await addTitles(service.db, 1);
    const fd = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [CLI, ...args('--since', start)], {
      env: { CATALOG_API_KEY: service.key },
      stdio: ['ignore', fd, 'pipe'],
    });
    let stderr = '';
    child.stderr?.on('data', (data: Buffer) => (stderr += data.toString()));
    assert.deepEqual(await once(child, 'close'), [1, null]);
    closeSync(fd);
    assert.match(stderr, /\ncatalog: Cannot write the lines: ENOSPC.*\. The saved position is unchanged\.\n$/);
    assert.deepEqual(await readdir(folder), []);
  });

  it('replaces a link in place of its new state file, and does not write through it', async () => {
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

  it('has each page on the disk before its position, and each position on the disk before it counts', async () => {
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

  it('retries while the service is down, and reports it', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const follower = startFollowing('--base-url', url, '--since', start);
    await eventually('it reports', () => /Retrying in \d+ s\.\n/.test(follower.output.stderr));
    follower.child.kill('SIGTERM');
    const { code, stderr } = await follower.ended;
    assert.equal(code, 0);
    assert.match(
      stderr,
      new RegExp(
        `\nCannot reach the service: connect ECONNREFUSED ${url.slice('http://'.length)}\\. Retrying in 1 s\\.\n`,
      ),
    );
  });

  async function assertRefused(outcome: Promise<Outcome>, message: RegExp): Promise<void> {
    const { code, stdout, stderr } = await outcome;
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /svc_\w{8}_/);
  }

  it('refuses to start without a position', async () => {
    await assertRefused(
      run('--once'),
      /^catalog: The state file .*mirror\.json does not exist yet\. Set --since to .* full copy of the catalogue\./,
    );
    assert.deepEqual(await readdir(folder), []);
  });

  it('refuses to start without a key', async () => {
    for (const environment of [{}, { CATALOG_API_KEY: ' ' }] as Record<string, string>[]) {
      await assertRefused(
        runCommand(args('--since', start, '--once'), environment),
        /^catalog: Set the environment variable CATALOG_API_KEY/,
      );
    }
  });

  it('refuses a key that the service does not accept, and keeps the position', async () => {
    const { key, prefix } = await service.newKey();
    const follow = (): Promise<Outcome> => runCommand(args('--since', start, '--once'), { CATALOG_API_KEY: key });
    await follow();
    const before = await saved();
    await service.db('api_keys').where({ prefix }).update({ revoked_at: service.db.fn.now() });
    await assertRefused(
      follow(),
      /\ncatalog: The service does not accept the key in CATALOG_API_KEY \(401 invalid_api_key: .*[^.]\)\. Set it to a valid key and start again; the position is kept\.\n$/,
    );
    assert.deepEqual(await saved(), before);
  });

  for (const damaged of [
    '',
    '{',
    'null',
    '{"version":1,"base_url":"x","since":"1"}',
    '{"version":2,"base_url":"x","since":1}',
    '{"version":1,"base_url":"x","since":-1}',
  ]) {
    it(`refuses a state file with ${JSON.stringify(damaged)}`, async () => {
      writeFileSync(state, damaged);
      await assertRefused(
        run('--once', '--since', start),
        /^catalog: .*mirror\.json is damaged, or is not a state file\. Restore it from a backup: .* fresh copy .*\n$/,
      );
      assert.equal(await readFile(state, 'utf8'), damaged);
    });
  }

  it('refuses a state file of another service', async () => {
    writeFileSync(state, JSON.stringify({ version: 1, base_url: 'https://other.example', since: 1 }));
    await assertRefused(
      run('--once', '--since', start),
      /^catalog: The state file .*mirror\.json belongs to https:\/\/other\.example, not to http:\/\/127\.0\.0\.1:\d+\. Use one state file for each service\./,
    );
  });

  it('refuses a state file that another follower uses, under any name', async () => {
    const follower = startFollowing('--since', start);
    await eventually('it has begun', () => existsSync(state));
    const alias = join(folder, 'alias.json');
    await symlink(state, alias);
    await assertRefused(
      runCommand(['follow', '--base-url', service.url, '--state', alias, '--once'], { CATALOG_API_KEY: service.key }),
      /^catalog: Another follower uses the state file .*alias\.json .*\. Stop it, or choose another state file\.\n$/,
    );
    follower.child.kill('SIGTERM');
    assert.equal((await follower.ended).code, 0);
  });

  it('refuses a state file that cannot be created or read', async () => {
    const missing = runCommand(
      ['follow', '--base-url', service.url, '--state', join(folder, 'none/x.json'), '--since', start],
      { CATALOG_API_KEY: service.key },
    );
    await assertRefused(missing, /^catalog: Cannot create the state file .*x\.json: ENOENT/);
    mkdirSync(state);
    await assertRefused(run('--since', start), /^catalog: Cannot read the state file .*mirror\.json: EISDIR/);
  });

  for (const [option, value, message] of [
    ['--since', 'yesterday', /Unix time in seconds/],
    ['--since', '1795218005000', /Unix time in seconds/],
    ['--interval', '0', /seconds, from 0\.1/],
    ['--interval', 'often', /seconds, from 0\.1/],
  ] as const) {
    it(`refuses ${option} ${value} as misuse`, async () => {
      const { code, stdout, stderr } = await run(option, value);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    });
  }

  it('exits if another follower takes its lock, and saves nothing more', async () => {
    const follower = startFollowing('--since', start);
    await eventually('it has begun', () => existsSync(state));
    // Another follower would do this if it took the lock for stale.
    await eventually('the follower notices', () => {
      utimesSync(`${state}.lock`, new Date(), new Date());
      return follower.child.exitCode !== null;
    });
    const { code, stderr } = await follower.ended;
    assert.equal(code, 1);
    assert.match(stderr, /\ncatalog: Another follower has taken over the state file .*mirror\.json\.\n$/);
  });
});
