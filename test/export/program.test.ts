import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { readBounds } from '../../src/catalog/feed.js';
import { toSeconds } from '../../src/platform/time/micros.js';
import { runCommand } from '../support/programs/command.js';
import { eventually } from '../support/eventually.js';
import { recordFiles } from '../support/programs/file-events.js';
import { runProgram, startProgram, type Outcome } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';
import { skipWithout } from '../support/programs/skip.js';
import { testWorld } from '../support/world.js';

const BASE_URL = 'https://catalog.example.com';

const CSV =
  'svc_id,media_type,title,has_bundles,available_in_library\n' +
  'title-0001,movie,Title 1,false,false\ntitle-0002,series,Title 2,false,false\n';

const NDJSON =
  '{"svc_id":"title-0001","media_type":"movie","title":"Title 1","has_bundles":false,"available_in_library":false}\n' +
  '{"svc_id":"title-0002","media_type":"series","title":"Title 2","has_bundles":false,"available_in_library":false}\n';

const TITLES = ['--kind', 'titles'];

describe('catalog export', () => {
  const world = testWorld();
  let folder: string;
  /** The flags for a state file in the folder. */
  let state: string[];

  before(() => addTitles(world.db, 2));

  beforeEach(async () => {
    folder = await temporaryFolder();
    state = ['--state', inFolder('mirror.json'), '--base-url', BASE_URL];
  });

  function run(file: string, ...flags: string[]): Promise<Outcome> {
    return runCommand(['export', file, ...flags], { DATABASE_URL: world.url });
  }

  function inFolder(name: string): string {
    return join(folder, name);
  }

  async function position(): Promise<number> {
    return toSeconds((await readBounds(world.db)).newest);
  }

  it('writes the format of the file name, and prints a summary', async () => {
    for (const [name, expected] of [
      ['titles.csv', CSV],
      ['titles.CSV.GZ', CSV],
      ['titles.ndjson', NDJSON],
      ['titles.jsonl.gz', NDJSON],
    ] as const) {
      const { code, stdout, stderr } = await run(inFolder(name), ...TITLES);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^titles: 2 rows written; follow from \d+\.\d+ \(.*Z\)\n$/);
      assert.ok(stdout.includes(`from ${await position()} `));
      const bytes = await readFile(inFolder(name));
      assert.equal((/gz$/i.test(name) ? gunzipSync(bytes) : bytes).toString(), expected);
    }
    const people = await run(inFolder('people'), '--kind', 'people', '--format', 'csv');
    assert.equal(people.stdout, 'people: 0 rows written\n');
    const collections = await run(inFolder('collections.ndjson'), '--kind', 'collections', '--json');
    assert.deepEqual(JSON.parse(collections.stdout), { kind: 'collections', format: 'ndjson', rows: 0 });
  });

  it('writes only rows to standard output, and reports on standard error', async () => {
    const text = await run('-', ...TITLES, '--format', 'ndjson');
    assert.deepEqual([text.code, text.stdout], [0, NDJSON]);
    assert.match(text.stderr, /^titles: 2 rows written; follow from .*\n$/);
    const json = await run('-', ...TITLES, '--format', 'csv', '--json');
    assert.deepEqual([json.code, json.stdout], [0, CSV]);
    const report = { kind: 'titles', format: 'csv', rows: 2, follow_from: await position() };
    assert.deepEqual(JSON.parse(json.stderr), report);
  });

  it('creates the state file of a follower that continues where the copy ends', async () => {
    const flags = ['--state', inFolder('mirror.json'), '--base-url', `${BASE_URL}/api/v1/`];
    assert.equal((await run(inFolder('titles.csv'), ...TITLES, ...flags)).code, 0);
    const document = { version: 1, base_url: BASE_URL, since: await position() };
    assert.deepEqual(JSON.parse(await readFile(inFolder('mirror.json'), 'utf8')), document);
    assert.deepEqual((await readdir(folder)).sort(), ['mirror.json', 'titles.csv']);
  });

  for (const file of ['titles.csv', '-']) {
    it(`has the copy (${file}) on the disk before the state file gets its name`, async () => {
      const args = ['export', file === '-' ? file : inFolder(file), ...TITLES, '--format', 'csv', ...state];
      const events = await recordFiles(args, { DATABASE_URL: world.url }, inFolder('output'));
      const name = basename(folder);
      const copy = ['sync titles.csv in the making', 'titles.csv in the making -> titles.csv', `sync ${name}`];
      assert.deepEqual(events, [
        ...(file === '-' ? ['sync 1'] : copy),
        'sync mirror.json in the making',
        'mirror.json in the making -> mirror.json',
        `sync ${name}`,
      ]);
    });
  }

  it('replaces an earlier file, and a symbolic link but not its target', async () => {
    await writeFile(inFolder('old.csv'), 'old');
    await writeFile(inFolder('target'), 'kept');
    await symlink(inFolder('target'), inFolder('link.csv'));
    for (const name of ['old.csv', 'link.csv']) {
      assert.equal((await run(inFolder(name), ...TITLES)).code, 0);
      assert.ok((await lstat(inFolder(name))).isFile());
      assert.equal(await readFile(inFolder(name), 'utf8'), CSV);
    }
    assert.equal(await readFile(inFolder('target'), 'utf8'), 'kept');
  });

  /** Runs an export that waits for a table, with an earlier file of the same name. */
  async function whileItWaits(act: (program: ReturnType<typeof startProgram>) => Promise<void>): Promise<string> {
    await writeFile(inFolder('people.csv'), 'old');
    const blocker = await world.db.transaction();
    try {
      await blocker.raw('lock table people in access exclusive mode');
      const args = ['export', inFolder('people.csv'), '--kind', 'people'];
      const program = startProgram(args, { DATABASE_URL: world.url });
      await eventually('the export waits', async () => (await waiting()).length === 1);
      await eventually('the partial file exists', async () =>
        (await readdir(folder)).some((name) => /^people\.csv\..*\.partial$/.test(name)),
      );
      await act(program);
      const { code, stdout, stderr } = await program.ended;
      assert.deepEqual([code, stdout], [1, '']);
      assert.deepEqual(await readdir(folder), ['people.csv']);
      assert.equal(await readFile(inFolder('people.csv'), 'utf8'), 'old');
      return stderr;
    } finally {
      await blocker.rollback();
    }
  }

  async function waiting(): Promise<{ pid: number }[]> {
    const sql = "select pid from pg_locks where not granted and relation = 'people'::regclass";
    return (await world.db.raw<{ rows: { pid: number }[] }>(sql)).rows;
  }

  it('leaves no partial file and keeps the earlier copy after SIGTERM', async () => {
    const stderr = await whileItWaits(async ({ child }) => void child.kill('SIGTERM'));
    assert.equal(stderr, 'catalog: Interrupted. Nothing was written.\n');
  });

  it('leaves no partial file and keeps the earlier copy after the loss of its connection', async () => {
    const stderr = await whileItWaits(async () => {
      for (const { pid } of await waiting()) await world.db.raw('select pg_terminate_backend(?)', [pid]);
    });
    assert.match(stderr, /^catalog: .*terminating connection .*\n$/);
  });

  const PARTIAL = 'What was written is not a complete copy\\.\n$';

  it('creates no state file if the disk is full', async function () {
    if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
    const args = ['export', '-', ...TITLES, '--format', 'csv', ...state];
    const { code, stderr } = await runProgram(args, { DATABASE_URL: world.url }, '', { stdout: '/dev/full' });
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^catalog: Cannot write to standard output: ENOSPC.* ${PARTIAL}`));
    assert.deepEqual(await readdir(folder), []);
  });

  it('creates no state file if the reader has closed standard output', async () => {
    const program = startProgram(['export', '-', ...TITLES, '--format', 'csv', ...state], {
      DATABASE_URL: world.url,
    });
    program.child.stdout?.destroy();
    const { code, stderr } = await program.ended;
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^catalog: Cannot write to standard output: .*EPIPE\\. ${PARTIAL}`));
    assert.deepEqual(await readdir(folder), []);
  });

  async function assertRefused(outcome: Promise<Outcome>, message: RegExp, exitCode = 1): Promise<void> {
    const { code, stdout, stderr } = await outcome;
    assert.deepEqual([code, stdout], [exitCode, '']);
    assert.match(stderr, message);
  }

  it('refuses a file whose format it cannot infer, or that cannot be created', async () => {
    await assertRefused(
      run('-', ...TITLES),
      /^catalog: Cannot infer a format for standard output: add --format csv or/,
      2,
    );
    for (const name of ['titles.tsv', 'titles', 'titles.gz']) {
      await assertRefused(
        run(inFolder(name), ...TITLES),
        /^catalog: Cannot infer a format for .*: add --format csv or/,
        2,
      );
    }
    assert.deepEqual(await readdir(folder), []);
    await mkdir(inFolder('folder.csv'));
    await assertRefused(run(inFolder('folder.csv'), ...TITLES), /folder\.csv is a directory, not a file\.\n$/);
    await assertRefused(run(inFolder('none/titles.csv'), ...TITLES), /^catalog: The folder .*none does not exist\.\n$/);
    const device = run('/dev/null', ...TITLES, '--format', 'csv');
    await assertRefused(device, /^catalog: \/dev\/null is not a regular file\. To write to it, use - and/);
    assert.ok((await lstat('/dev/null')).isCharacterDevice());
  });

  it('refuses an existing state file, and changes neither it nor the earlier copy', async () => {
    await writeFile(inFolder('titles.csv'), 'old');
    const text = `{"version":1,"base_url":"${BASE_URL}","since":1}\n`;
    await writeFile(inFolder('mirror.json'), text);
    const message = /^catalog: .*mirror\.json already exists\. Overwriting it would reset the mirror that uses it\./;
    await assertRefused(run(inFolder('titles.csv'), ...TITLES, ...state), message);
    assert.equal(await readFile(inFolder('mirror.json'), 'utf8'), text);
    assert.equal(await readFile(inFolder('titles.csv'), 'utf8'), 'old');
  });

  it('refuses flags that do not fit together', async () => {
    const [file, mirror] = [inFolder('x.csv'), inFolder('mirror.json')];
    for (const [flags, message] of [
      [['--kind', 'people', ...state], /^catalog: --state requires --kind titles: people have no feed to follow\.\n$/],
      [[...TITLES, '--state', mirror], /^catalog: --state requires --base-url/],
      [[...TITLES, '--base-url', BASE_URL], /^catalog: --base-url requires --state or --publish\./],
      [[...TITLES, '--state', file, '--base-url', BASE_URL], /^catalog: The copy and its state file must differ\./],
      [[...TITLES, '--state', mirror, '--base-url', 'x'], /^catalog: The base URL is not a valid URL/],
    ] as const) {
      await assertRefused(run(file, ...flags), message, 2);
    }
    for (const [flags, message] of [
      [[], /A file has rows of one kind: add --kind titles, people or collections\./],
      [['--kind', 'films'], /Allowed choices are titles, people, collections/],
      [[...TITLES, '--format', 'tsv'], /Allowed choices are csv, ndjson/],
    ] as const) {
      await assertRefused(run(file, ...flags), message, 2);
    }
    assert.deepEqual(await readdir(folder), []);
  });
});
