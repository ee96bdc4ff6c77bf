import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { lstat, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { readBounds } from '../../src/catalog/feed.js';
import { toSeconds } from '../../src/platform/time/micros.js';
import { runCommand } from '../support/programs/command.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { recordFiles } from '../support/programs/file-events.js';
import { runProgram, startProgram, type Outcome } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';
import { skipWithout } from '../support/programs/skip.js';

const BASE_URL = 'https://catalog.example.com';

const CSV =
  'svc_id,media_type,title,has_bundles,available_in_library\n' +
  'title-0001,movie,Title 1,false,false\ntitle-0002,series,Title 2,false,false\n';

const NDJSON =
  '{"svc_id":"title-0001","media_type":"movie","title":"Title 1","has_bundles":false,"available_in_library":false}\n' +
  '{"svc_id":"title-0002","media_type":"series","title":"Title 2","has_bundles":false,"available_in_library":false}\n';

describe('catalog export', () => {
  let database: OpenTestDatabase;
  let folder: string;

  before(async () => {
    database = await openTestDatabase();
    await addTitles(database.db, 2);
  });

  beforeEach(async () => {
    folder = await temporaryFolder();
  });

  after(() => database.close());

  function run(file: string, ...flags: string[]): Promise<Outcome> {
    return runCommand(['export', file, ...flags], { DATABASE_URL: database.url });
  }

  function inFolder(name: string): string {
    return join(folder, name);
  }

  async function position(): Promise<number> {
    return toSeconds((await readBounds(database.db)).newest);
  }

  it('writes what the file name says, and says in one line what it did', async () => {
    for (const [name, expected] of [
      ['titles.csv', CSV],
      ['titles.CSV.GZ', CSV],
      ['titles.ndjson', NDJSON],
      ['titles.jsonl.gz', NDJSON],
    ] as const) {
      const { code, stdout, stderr } = await run(inFolder(name), '--kind', 'titles');
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /^titles: 2 rows written; a mirror follows on from \d+\.\d+ \(.*Z\)\n$/);
      assert.ok(stdout.includes(`from ${await position()} `));
      const bytes = await readFile(inFolder(name));
      assert.equal((/gz$/i.test(name) ? gunzipSync(bytes) : bytes).toString(), expected);
    }
    assert.deepEqual(
      (await run(inFolder('people'), '--kind', 'people', '--format', 'csv')).stdout,
      'people: 0 rows written\n',
    );
  });

  it('writes rows and nothing else to standard output, and reports on standard error', async () => {
    const text = await run('-', '--kind', 'titles', '--format', 'ndjson');
    assert.deepEqual([text.code, text.stdout], [0, NDJSON]);
    assert.match(text.stderr, /^titles: 2 rows written; a mirror follows on from .*\n$/);
    const json = await run('-', '--kind', 'titles', '--format', 'csv', '--json');
    assert.deepEqual([json.code, json.stdout], [0, CSV]);
    assert.deepEqual(JSON.parse(json.stderr), {
      kind: 'titles',
      format: 'csv',
      rows: 2,
      follow_from: await position(),
    });
  });

  it('prints one JSON document', async () => {
    const { stdout, stderr } = await run(inFolder('collections.ndjson'), '--kind', 'collections', '--json');
    assert.deepEqual([JSON.parse(stdout), stderr], [{ kind: 'collections', format: 'ndjson', rows: 0 }, '']);
  });

  it('makes the state file of a follower that begins where the copy ends', async () => {
    const flags = ['--kind', 'titles', '--state', inFolder('mirror.json'), '--base-url', `${BASE_URL}/api/v1/`];
    assert.equal((await run(inFolder('titles.csv'), ...flags)).code, 0);
    assert.deepEqual(JSON.parse(await readFile(inFolder('mirror.json'), 'utf8')), {
      version: 1,
      base_url: BASE_URL,
      since: await position(),
    });
    assert.deepEqual((await readdir(folder)).sort(), ['mirror.json', 'titles.csv']);
  });

  for (const file of ['titles.csv', '-']) {
    it(`has the copy (${file}) on the disk before the state file gets its name`, async () => {
      const target = file === '-' ? file : inFolder(file);
      const events = await recordFiles(
        [
          'export',
          target,
          '--kind',
          'titles',
          '--format',
          'csv',
          '--state',
          inFolder('mirror.json'),
          '--base-url',
          BASE_URL,
        ],
        { DATABASE_URL: database.url },
        inFolder('output'),
      );
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

  it('replaces a file that is there, and a link but not what it leads to', async () => {
    await writeFile(inFolder('old.csv'), 'old');
    await writeFile(inFolder('target'), 'kept');
    await symlink(inFolder('target'), inFolder('link.csv'));
    for (const name of ['old.csv', 'link.csv']) {
      assert.equal((await run(inFolder(name), '--kind', 'titles')).code, 0);
      assert.ok((await lstat(inFolder(name))).isFile());
      assert.equal(await readFile(inFolder(name), 'utf8'), CSV);
    }
    assert.equal(await readFile(inFolder('target'), 'utf8'), 'kept');
  });

  describe('that does not come to its end', () => {
    /** An export that waits for a table, with a file of the same name there. */
    async function whileItWaits(act: (program: ReturnType<typeof startProgram>) => Promise<void>): Promise<Outcome> {
      await writeFile(inFolder('titles.csv'), 'old');
      const blocker = await database.db.transaction();
      try {
        await blocker.raw('lock table titles in access exclusive mode');
        const program = startProgram(
          [
            'export',
            inFolder('titles.csv'),
            '--kind',
            'titles',
            '--state',
            inFolder('mirror.json'),
            '--base-url',
            BASE_URL,
          ],
          { DATABASE_URL: database.url },
        );
        await eventually('it waits', async () => (await waiting()).length === 1);
        assert.ok((await readdir(folder)).some((name) => name.startsWith('titles.csv.') && name.endsWith('.partial')));
        await act(program);
        return await program.ended;
      } finally {
        await blocker.rollback();
      }
    }

    async function waiting(): Promise<{ pid: number }[]> {
      const sql = "select pid from pg_locks where not granted and relation = 'titles'::regclass";
      return (await database.db.raw<{ rows: { pid: number }[] }>(sql)).rows;
    }

    async function assertNothingLeft({ code, stdout, stderr }: Outcome, said: RegExp): Promise<void> {
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, said);
      assert.deepEqual(await readdir(folder), ['titles.csv']);
      assert.equal(await readFile(inFolder('titles.csv'), 'utf8'), 'old');
    }

    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      it(`on ${signal} leaves no half file, no state file, and the earlier copy`, async () => {
        const outcome = await whileItWaits(async ({ child }) => void child.kill(signal));
        await assertNothingLeft(outcome, /^catalog: Interrupted\. Nothing was left behind\.\n$/);
      });
    }

    it('for the loss of its connection leaves no half file, no state file, and the earlier copy', async () => {
      const outcome = await whileItWaits(async () => {
        for (const { pid } of await waiting()) await database.db.raw('select pg_terminate_backend(?)', [pid]);
      });
      await assertNothingLeft(outcome, /^catalog: .*terminating connection .*\n$/);
    });

    it('for a full disk says so, and makes no state file', async function () {
      if (!existsSync('/dev/full')) skipWithout('/dev/full', this);
      const state = ['--state', inFolder('mirror.json'), '--base-url', BASE_URL];
      const { code, stderr } = await runProgram(
        ['export', '-', '--kind', 'titles', '--format', 'csv', ...state],
        { DATABASE_URL: database.url },
        '',
        { stdout: '/dev/full' },
      );
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^catalog: Standard output cannot be written: ENOSPC.* The written part is not a complete copy\.\n$/,
      );
      assert.deepEqual(await readdir(folder), []);
    });

    it('for a reader that has gone says so, and makes no state file', async () => {
      const state = ['--state', inFolder('mirror.json'), '--base-url', BASE_URL];
      const program = startProgram(['export', '-', '--kind', 'titles', '--format', 'csv', ...state], {
        DATABASE_URL: database.url,
      });
      program.child.stdout?.destroy();
      const { code, stderr } = await program.ended;
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^catalog: Standard output cannot be written: .*EPIPE\. The written part is not a complete copy\.\n$/,
      );
      assert.deepEqual(await readdir(folder), []);
    });
  });

  describe('refuses', () => {
    async function assertRefused(outcome: Promise<Outcome>, said: RegExp, exitCode = 1): Promise<void> {
      const { code, stdout, stderr } = await outcome;
      assert.deepEqual([code, stdout], [exitCode, '']);
      assert.match(stderr, said);
    }

    it('a file whose format it cannot tell', async () => {
      await assertRefused(
        run('-', '--kind', 'titles'),
        /^catalog: Standard output has no name to tell a format by: add --format/,
      );
      for (const name of ['titles.tsv', 'titles', 'titles.gz']) {
        await assertRefused(
          run(inFolder(name), '--kind', 'titles'),
          /^catalog: The ending of .* does not tell a format/,
        );
      }
      assert.deepEqual(await readdir(folder), []);
    });

    it('a place where no file can be made', async () => {
      mkdirSync(inFolder('folder.csv'));
      await assertRefused(
        run(inFolder('folder.csv'), '--kind', 'titles'),
        /^catalog: .*folder\.csv is a folder: name a file\.\n$/,
      );
      await assertRefused(
        run(inFolder('none/titles.csv'), '--kind', 'titles'),
        /^catalog: .*titles\.csv cannot be written: ENOENT/,
      );
      await assertRefused(
        run('/dev/null', '--kind', 'titles', '--format', 'csv'),
        /^catalog: \/dev\/null is not a regular file. Give - instead/,
      );
      assert.ok((await lstat('/dev/null')).isCharacterDevice());
    });

    it('a state file that exists, and changes neither it nor the copy', async () => {
      await writeFile(inFolder('titles.csv'), 'old');
      const text = `{"version":1,"base_url":"${BASE_URL}","since":1}\n`;
      await writeFile(inFolder('mirror.json'), text);
      const flags = ['--kind', 'titles', '--state', inFolder('mirror.json'), '--base-url', BASE_URL];
      await assertRefused(
        run(inFolder('titles.csv'), ...flags),
        /^catalog: There is a state file .*mirror\.json already, and its follower would lose its place\. Name another one, or remove it\.\n$/,
      );
      assert.equal(await readFile(inFolder('mirror.json'), 'utf8'), text);
      assert.equal(await readFile(inFolder('titles.csv'), 'utf8'), 'old');
    });

    it('a state file that makes no sense', async () => {
      const [file, state] = [inFolder('x.csv'), inFolder('mirror.json')];
      for (const kind of ['people', 'collections']) {
        await assertRefused(
          run(file, '--kind', kind, '--state', state, '--base-url', BASE_URL),
          new RegExp(`^catalog: --state goes with --kind titles: ${kind} have no feed of changes to follow\\.\n$`),
        );
      }
      const titles = ['--kind', 'titles'];
      await assertRefused(run(file, ...titles, '--state', state), /^catalog: --state needs --base-url: /);
      await assertRefused(run(file, ...titles, '--base-url', BASE_URL), /^catalog: --base-url goes with --state/);
      await assertRefused(
        run(file, ...titles, '--state', file, '--base-url', BASE_URL),
        /^catalog: The copy and its state need a file each\./,
      );
      await assertRefused(
        run(file, ...titles, '--state', state, '--base-url', 'x'),
        /^catalog: The base URL is not a valid URL/,
      );
      assert.deepEqual(await readdir(folder), []);
    });

    it('arguments that it cannot understand, as misuse', async () => {
      await assertRefused(run(inFolder('x.csv')), /required option '--kind <kind>' not specified/, 2);
      await assertRefused(
        run(inFolder('x.csv'), '--kind', 'films'),
        /Allowed choices are titles, people, collections/,
        2,
      );
      await assertRefused(
        run(inFolder('x.csv'), '--kind', 'titles', '--format', 'tsv'),
        /Allowed choices are ndjson, csv/,
        2,
      );
    });
  });
});
