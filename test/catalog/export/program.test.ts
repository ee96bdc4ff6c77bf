import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { readBounds } from '../../../src/catalog/feed.js';
import { toSeconds } from '../../../src/platform/time/micros.js';
import { runCommand } from '../../support/programs/command.js';
import { eventually } from '../../support/eventually.js';
import { runProgram, startProgram, type Outcome } from '../../support/program.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { exportText } from './exporting.js';
import { skipWithout } from '../../support/programs/skip.js';
import { testWorld } from '../../support/world.js';

const TITLES = ['--kind', 'titles'];

const INTERRUPTED = /^catalog: Interrupted\. What was written is not a complete copy\.\n$/;

describe('catalog export', () => {
  const world = testWorld();

  /** The rows, as an export to memory has them. */
  let ndjson: string;

  before(async () => {
    await addTitles(world.db, 2);
    ({ text: ndjson } = await exportText(world.db));
    assert.match(ndjson, /^\{"svc_id":"title-0001",.+\}\n\{"svc_id":"title-0002",.+\}\n$/);
  });

  function run(...flags: string[]): Promise<Outcome> {
    return runCommand(['export', ...flags], { DATABASE_URL: world.url });
  }

  async function position(): Promise<number> {
    return toSeconds((await readBounds(world.db)).newest);
  }

  it('writes only rows to standard output, and reports on standard error', async () => {
    const text = await run(...TITLES);
    assert.deepEqual([text.code, text.stdout], [0, ndjson]);
    assert.match(text.stderr, /^titles: 2 rows written; follow from \d+\.\d+ \(.*Z\)\n$/);
    assert.ok(text.stderr.includes(`from ${await position()} `));
    const json = await run(...TITLES, '--json');
    assert.deepEqual([json.code, json.stdout], [0, ndjson]);
    assert.deepEqual(JSON.parse(json.stderr), { kind: 'titles', rows: 2, follow_from: await position() });
    assert.deepEqual(await run('--kind', 'people'), { code: 0, stdout: '', stderr: 'people: 0 rows written\n' });
  });

  function assertIncomplete({ code, stderr }: Outcome, message: RegExp): void {
    assert.equal(code, 1);
    assert.match(stderr, message);
  }

  for (const [fault, message] of [
    ['SIGTERM', INTERRUPTED],
    ['the loss of its connection', /^catalog: .*terminating connection .*\n$/],
  ] as const) {
    it(`fails after ${fault}`, async () => {
      const blocker = await world.db.transaction();
      try {
        await blocker.raw('lock table titles in access exclusive mode');
        const program = startProgram(['export', ...TITLES], { DATABASE_URL: world.url });
        const pid = await eventually('the export waits for the table', async () => {
          const sql = "select pid from pg_locks where not granted and relation = 'titles'::regclass";
          return (await world.db.raw<{ rows: { pid: number }[] }>(sql)).rows[0]?.pid;
        });
        if (fault === 'SIGTERM') program.child.kill('SIGTERM');
        else await world.db.raw('select pg_terminate_backend(?)', [pid]);
        assertIncomplete(await program.ended, message);
      } finally {
        await blocker.rollback();
      }
    });
  }

  it('fails if the disk is full, and names the reason', async function () {
    if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
    const args = ['export', ...TITLES];
    const outcome = await runProgram(args, { DATABASE_URL: world.url }, '', { stdout: '/dev/full' });
    assertIncomplete(outcome, /not a complete copy\.\ncatalog: the output cannot be written: ENOSPC.*\n$/);
  });

  it('fails if the reader has closed standard output', async () => {
    const program = startProgram(['export', ...TITLES], { DATABASE_URL: world.url });
    program.child.stdout?.destroy();
    assertIncomplete(await program.ended, INTERRUPTED);
  });

  it('refuses flags that do not fit together', async () => {
    const folder = await temporaryFolder();
    for (const [flags, message] of [
      [[...TITLES, '--base-url', 'https://catalog.example.com'], /^catalog: --base-url requires --publish\./],
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
