import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readBounds } from '../../../src/catalog/feed.js';
import { toSeconds } from '../../../src/platform/time/micros.js';
import { runCommand } from '../../support/programs/command.js';
import { eventually } from '../../support/eventually.js';
import { recordFiles } from '../../support/programs/file-events.js';
import { runProgram, startProgram, type Outcome } from '../../support/program.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { skipWithout } from '../../support/programs/skip.js';
import { testWorld } from '../../support/world.js';

const BASE_URL = 'https://catalog.example.com';

const NDJSON =
  '{"svc_id":"title-0001","media_type":"movie","title":"Title 1","has_bundles":false,"available_in_library":false}\n' +
  '{"svc_id":"title-0002","media_type":"series","title":"Title 2","has_bundles":false,"available_in_library":false}\n';

const TITLES = ['--kind', 'titles'];

describe('catalog export', () => {
  const world = testWorld();
  let folder: string;
  let stateFile: string;
  /** The flags for that state file. */
  let state: string[];

  before(() => addTitles(world.db, 2));

  beforeEach(async () => {
    folder = await temporaryFolder();
    stateFile = join(folder, 'mirror.json');
    state = ['--state', stateFile, '--base-url', BASE_URL];
  });

  function run(...flags: string[]): Promise<Outcome> {
    return runCommand(['export', ...flags], { DATABASE_URL: world.url });
  }

  async function position(): Promise<number> {
    return toSeconds((await readBounds(world.db)).newest);
  }

  it('writes only rows to standard output, and reports on standard error', async () => {
    const text = await run(...TITLES);
    assert.deepEqual([text.code, text.stdout], [0, NDJSON]);
    assert.match(text.stderr, /^titles: 2 rows written; follow from \d+\.\d+ \(.*Z\)\n$/);
    assert.ok(text.stderr.includes(`from ${await position()} `));
    const json = await run(...TITLES, '--json');
    assert.deepEqual([json.code, json.stdout], [0, NDJSON]);
    assert.deepEqual(JSON.parse(json.stderr), { kind: 'titles', rows: 2, follow_from: await position() });
    assert.deepEqual(await run('--kind', 'people'), { code: 0, stdout: '', stderr: 'people: 0 rows written\n' });
  });

  it('creates the state file of a follower that continues where the copy ends, once the copy is on the disk', async () => {
    const output = join(folder, 'output');
    assert.deepEqual(await recordFiles(['export', ...TITLES, ...state], { DATABASE_URL: world.url }, output), [
      'sync 1',
      'sync mirror.json in the making',
      'mirror.json in the making -> mirror.json',
      `sync ${basename(folder)}`,
    ]);
    assert.equal(await readFile(output, 'utf8'), NDJSON);
    const [feedId] = await world.db('catalog_feed').pluck<string[]>('identity');
    const document = { version: 1, base_url: BASE_URL, since: await position(), feed_id: feedId };
    assert.deepEqual(JSON.parse(await readFile(stateFile, 'utf8')), document);
  });

  /** Asserts that an export failed without a state file, and what it said. */
  async function assertIncomplete({ code, stderr }: Outcome, message: RegExp): Promise<void> {
    assert.equal(code, 1);
    assert.match(stderr, message);
    assert.deepEqual(await readdir(folder), []);
  }

  for (const [fault, message] of [
    ['SIGTERM', /^catalog: Interrupted\. What was written is not a complete copy\.\n$/],
    ['the loss of its connection', /^catalog: .*terminating connection .*\n$/],
  ] as const) {
    it(`fails without a state file after ${fault}`, async () => {
      const blocker = await world.db.transaction();
      try {
        await blocker.raw('lock table titles in access exclusive mode');
        const program = startProgram(['export', ...TITLES, ...state], { DATABASE_URL: world.url });
        const pid = await eventually('the export waits for the table', async () => {
          const sql = "select pid from pg_locks where not granted and relation = 'titles'::regclass";
          return (await world.db.raw<{ rows: { pid: number }[] }>(sql)).rows[0]?.pid;
        });
        if (fault === 'SIGTERM') program.child.kill('SIGTERM');
        else await world.db.raw('select pg_terminate_backend(?)', [pid]);
        await assertIncomplete(await program.ended, message);
      } finally {
        await blocker.rollback();
      }
    });
  }

  const UNWRITABLE = 'What was written is not a complete copy\\.\n$';

  it('fails without a state file if the disk is full', async function () {
    if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
    const args = ['export', ...TITLES, ...state];
    const outcome = await runProgram(args, { DATABASE_URL: world.url }, '', { stdout: '/dev/full' });
    await assertIncomplete(outcome, new RegExp(`^catalog: Cannot write to standard output: ENOSPC.* ${UNWRITABLE}`));
  });

  it('fails without a state file if the reader has closed standard output', async () => {
    const program = startProgram(['export', ...TITLES, ...state], { DATABASE_URL: world.url });
    program.child.stdout?.destroy();
    const message = new RegExp(`^catalog: Cannot write to standard output: .*EPIPE\\. ${UNWRITABLE}`);
    await assertIncomplete(await program.ended, message);
  });

  it('refuses an existing state file, and does not change it', async () => {
    const text = `{"version":1,"base_url":"${BASE_URL}","since":1}\n`;
    await writeFile(stateFile, text);
    const { code, stdout, stderr } = await run(...TITLES, ...state);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^catalog: .*mirror\.json already exists\. Overwriting it would reset the mirror that uses it\./,
    );
    assert.equal(await readFile(stateFile, 'utf8'), text);
  });

  it('refuses flags that do not fit together', async () => {
    for (const [flags, message] of [
      [['--kind', 'people', ...state], /^catalog: --state requires --kind titles: people have no feed to follow\.\n$/],
      [[...TITLES, '--state', stateFile], /^catalog: --state requires --base-url/],
      [[...TITLES, '--base-url', BASE_URL], /^catalog: --base-url requires --state or --publish\./],
      [[...TITLES, '--state', stateFile, '--base-url', 'x'], /^catalog: The base URL is not a valid URL/],
      [[...TITLES, '--publish', folder], /^catalog: --publish writes all kinds/],
      [[], /^catalog: Add --kind titles, people or collections, or --publish/],
      [['titles.csv', ...TITLES], /^catalog: error: too many arguments/],
    ] as const) {
      const { code, stdout, stderr } = await run(...flags);
      assert.deepEqual([code, stdout], [2, ''], flags.join(' '));
      assert.match(stderr, message);
    }
    assert.deepEqual(await readdir(folder), []);
  });
});
