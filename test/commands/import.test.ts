import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { runCommand, type CommandOptions } from '../support/programs/command.js';
import type { Outcome } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

const FILE = 'id,name,kind\n1,A,Movie\n2,"B\nb",Show\n3,C,Short\n';
const FLAGS = ['--kind', 'titles', '--column', 'svc_id=id', '--column', 'title=name', '--column', 'media_type=kind'];
const VALUES = ['--value', 'media_type:Movie=movie', '--value', 'media_type:Show=series'];
const SUMMARY = 'titles: 3 rows read: 2 created, 0 updated, 0 unchanged, 0 skipped, 1 rejected\n';
const BAD_ID =
  'svc_id must be 1 to 64 of A-Z, a-z, 0-9, _ and -; no option changes ids, so shorten others, such as URIs, in the file';
const NO_ESCAPES = 'if the file has no escapes, import it with --no-escapes';
const REJECTED = /1 row rejected: media_type must be movie or series; map [^\n]*\n {2}line 5: "Short"\n/m;

describe('catalog import', () => {
  const world = testWorld({ each: true });
  let folder: string;

  before(async () => {
    folder = await temporaryFolder();
    await mkdir(inFolder('folder.csv'));
    await writeFile(inFolder('titles.csv'), FILE);
    await writeFile(inFolder('titles.TSV.gz'), gzipSync(FILE.replaceAll(',', '\t').replace('"B\nb"', 'B\\nb')));
    await writeFile(inFolder('people.jsonl'), '{"svc_id":"a","name":"Ada"}\n');
    await writeFile(inFolder('unknown.txt'), FILE);
  });

  function inFolder(name: string): string {
    return join(folder, name);
  }

  function run(args: readonly string[], input?: string | Buffer, options?: CommandOptions): Promise<Outcome> {
    return runCommand(['import', ...args], { DATABASE_URL: world.url }, input, options);
  }

  async function assertRefused(args: readonly string[], message: RegExp, exitCode = 1): Promise<void> {
    const { code, stdout, stderr } = await run(args);
    assert.deepEqual([code, stdout], [exitCode, '']);
    assert.match(stderr, message);
  }

  it('maps columns and values, reports rejected rows on stderr, and prints a summary', async () => {
    const first = await run([inFolder('titles.csv'), ...FLAGS, ...VALUES]);
    assert.deepEqual([first.code, first.stdout], [0, SUMMARY]);
    assert.match(first.stderr, REJECTED);
    const flags = [...FLAGS, ...VALUES, '--skip-unmapped', '--strict'];
    assert.deepEqual(await run([inFolder('titles.TSV.gz'), ...flags]), {
      code: 0,
      stdout: 'titles: 3 rows read: 0 created, 0 updated, 2 unchanged, 1 skipped, 0 rejected\n',
      stderr: `1 row accepted: title has a control character; ${NO_ESCAPES}\n  line 3: "B�b"\n`,
    });
  });

  it('reads standard input, plain or gzip', async () => {
    for (const input of ['svc_id,name\na,Ada\n', gzipSync('svc_id,name\na,Ada\n')]) {
      const { code, stdout } = await run(['-', '--kind', 'collections', '--format', 'csv'], input);
      assert.equal(code, 0);
      assert.match(stdout, /^collections: 1 rows read: /);
    }
    assert.deepEqual(await world.db('collections').select(), [{ svc_id: 'a', name: 'Ada' }]);
  });

  it('shows progress on a terminal, and nothing but one JSON document with --json', async () => {
    const { stdout, stderr } = await run([inFolder('titles.csv'), ...FLAGS, ...VALUES], '', { isTTY: true });
    assert.equal(stdout, SUMMARY);
    assert.match(stderr, /titles: reading: 100 %, 3 rows/);
    assert.match(stderr, /titles: writing: 100 %, 2 rows/);
    assert.match(stderr, REJECTED);
    const json = await run([inFolder('people.jsonl'), '--kind', 'people', '--json'], '', { isTTY: true });
    const counts = { rows: 1, created: 1, updated: 0, unchanged: 0, skipped: 0, rejected: 0 };
    assert.deepEqual([json.code, json.stderr], [0, '']);
    assert.deepEqual(JSON.parse(json.stdout), { kind: 'people', ...counts, rejections: [], warnings: [] });
  });

  it('imports and reports names with control characters, which an escape made, and keeps backslashes with --no-escapes', async () => {
    const flags = ['-', '--kind', 'people', '--format', 'tsv'];
    const file = 'svc_id\tname\na\tC:\\new\\table\nb\t\\x\nc\tdel\u007f\n\\N\ta\\tb\n';
    const names = async () => (await world.db('people').orderBy('svc_id').pluck('name')) as unknown;
    const escaped = await run(flags, file);
    assert.deepEqual(escaped, {
      code: 0,
      stdout: 'people: 4 rows read: 3 created, 0 updated, 0 unchanged, 0 skipped, 1 rejected\n',
      stderr: [
        `2 rows accepted: name has a control character; ${NO_ESCAPES}`,
        '  line 2: "C:�ew�able"',
        '  line 4: "del�"',
        '1 row rejected: svc_id is empty',
        '  line 5: ",a�b"',
        '',
      ].join('\n'),
    });
    assert.deepEqual(await names(), ['C:\new\table', '\\x', 'del\u007f']);
    const { stderr } = await run([...flags, '--no-escapes', '--verbose'], file);
    assert.equal(stderr, 'line 4: name has a control character: "del�"\nline 5: svc_id is empty: ",a\\\\tb"\n');
    assert.deepEqual(await names(), ['C:\\new\\table', '\\x', 'del\u007f']);
    const { stdout } = await run([...flags, '--json'], file);
    const { warnings } = JSON.parse(stdout) as { warnings: { rows: number }[] };
    assert.deepEqual(
      warnings.map(({ rows }) => rows),
      [2],
    );
  });

  describe('with rejected rows', () => {
    const flags = ['-', '--kind', 'people', '--format', 'csv'];
    const file = (rows: readonly string[]): string => `svc_id,name\n${rows.map((row) => `${row}\n`).join('')}`;
    const mixed = file([...Array.from({ length: 1_207 }, (_, i) => `! ${i},Name`), 'a,', 'b,x,y', 'c,Cleo']);

    it('groups rejected rows by their reason, with the first lines of each', async () => {
      const { code, stdout, stderr } = await run(flags, mixed);
      assert.equal(code, 0);
      assert.equal(stdout, 'people: 1,210 rows read: 1 created, 0 updated, 0 unchanged, 0 skipped, 1,209 rejected\n');
      assert.equal(
        stderr,
        [
          `1,207 rows rejected: ${BAD_ID}`,
          ...[0, 1, 2, 3, 4].map((i) => `  line ${i + 2}: "! ${i}"`),
          '  … and 1,202 more',
          '1 row rejected: name is empty',
          '  line 1209: "a"',
          '1 row rejected: 3 fields, but the header has 2',
          '  line 1210: "b,x,y"',
          '',
        ].join('\n'),
      );
    });

    it('reports every rejected row with --verbose, and the groups as JSON with --json', async () => {
      const lines = (await run([...flags, '--verbose'], mixed)).stderr.split('\n');
      assert.equal(lines.length, 1_210);
      assert.equal(lines[1_206], `line 1208: ${BAD_ID}: "! 1206"`);
      const { stdout, stderr } = await run([...flags, '--json'], mixed);
      assert.equal(stderr, '');
      const { rejections } = JSON.parse(stdout) as { rejections: { reason: string; rows: number; first: object[] }[] };
      assert.deepEqual(
        rejections.map(({ reason, rows, first }) => [reason.slice(0, 11), rows, first.length]),
        [
          ['svc_id must', 1_207, 5],
          ['name is emp', 1, 1],
          ['3 fields, b', 1, 1],
        ],
      );
      assert.deepEqual(rejections[1]?.first, [{ found: '"a"', line: 1_209, rows: 1 }]);
    });

    it('lists the values of a group with their rows, the most frequent first', async () => {
      const values = ['Movie', 'Show', 'Movie', 'Short', 'Movie', 'Show'];
      const { stderr } = await run(
        ['-', '--kind', 'titles', '--format', 'csv'],
        `svc_id,media_type,title\n${values.map((value, index) => `t${index},${value},T\n`).join('')}ok,movie,T\n`,
      );
      assert.deepEqual(stderr.split('\n').slice(1), [
        '  "Movie": 3 rows, first line 2',
        '  "Show": 2 rows, first line 3',
        '  line 5: "Short"',
        '',
      ]);
    });

    it('tells a bounded number of reasons apart', async () => {
      const rows = Array.from({ length: 80 }, (_, i) => `a${',x'.repeat(i + 2)}`);
      const { stderr } = await run(flags, file([...rows, 'c,Cleo']));
      assert.equal(stderr.match(/rejected: /g)?.length, 51);
      assert.match(stderr, /^30 rows rejected: other reasons\n {2}.*: 30 rows, first line 52$/m);
    });

    it('exits with code 1 if no row was accepted, or there is none', async () => {
      const none = await run(flags, file(['!,x', '?,y']));
      assert.deepEqual(
        [none.code, none.stdout],
        [1, 'people: 2 rows read: 0 created, 0 updated, 0 unchanged, 0 skipped, 2 rejected\n'],
      );
      assert.match(
        none.stderr,
        /^2 rows rejected: svc_id must .*\ncatalog: Nothing was imported: no row of the file was accepted\.\n$/s,
      );
      const skipped = await run(
        ['-', '--format', 'csv', ...FLAGS, '--value', 'media_type:Film=movie', '--skip-unmapped'],
        'id,name,kind\na,A,Other\n',
      );
      assert.deepEqual(
        [skipped.code, skipped.stderr],
        [1, 'catalog: Nothing was imported: no row of the file was accepted.\n'],
      );
      await run(flags, file(['a,Ada']));
      assert.equal((await run(flags, file(['a,Ada']))).code, 0);
      for (const [format, empty] of [
        ['csv', file([])],
        ['ndjson', ''],
      ] as const) {
        const { code, stderr } = await run(['-', '--kind', 'people', '--format', format], empty);
        assert.deepEqual([code, stderr], [1, 'catalog: Nothing was imported: the file has no rows.\n']);
      }
    });
  });

  it('refuses files that it cannot read or whose format it cannot infer', async () => {
    const flags = ['--kind', 'people'];
    await assertRefused([inFolder('none.csv'), ...flags], /^catalog: Cannot read .*none\.csv: ENOENT: no such file/m);
    await assertRefused(
      [inFolder('folder.csv'), ...flags],
      /^catalog: Cannot read .*folder\.csv: EISDIR: .* directory/m,
    );
    // It exists, and cannot be opened, not even by root.
    const socket = createServer().listen(inFolder('socket.csv'));
    await once(socket, 'listening');
    await assertRefused([inFolder('socket.csv'), ...flags], /^catalog: Cannot read .*socket\.csv: /m);
    socket.close();
    const advice = 'add --format csv or --format tsv or --format ndjson\\.$';
    const unknown = new RegExp(`Cannot infer a format for .*unknown\\.txt: ${advice}`, 'm');
    await assertRefused([inFolder('unknown.txt'), ...flags], unknown, 2);
    await writeFile(inFolder('titles.csv.zst'), Buffer.from('28b52ffde9e9e9e9e9e9', 'hex'));
    await assertRefused(
      [inFolder('titles.csv.zst'), ...flags],
      /^catalog: The file is compressed with zstd\. .*"zstd -dc"\.$/m,
    );
    await assertRefused(['-', ...flags], new RegExp(`Cannot infer a format for standard input: ${advice}`, 'm'), 2);
  });

  it('writes nothing with --strict if a row far into the file is invalid, malformed or repeated', async () => {
    for (const [at, row, message] of [
      [1_500, '!,Nobody\n', /^catalog: line 1502: svc_id must be .*: "!"\. Nothing was written \(--strict\)\.\n$/],
      [119_999, 'x,a,b\n', /^catalog: line 120001: 3 fields, .*Nothing was written \(--strict\)\.\n$/],
      [110_000, 'p7,Again\n', /^catalog: line 110002: svc_id repeats .*: p7, as in line 9\. Nothing was written/],
    ] as const) {
      const rows = Array.from({ length: 120_000 }, (_, index) => `p${index},Person\n`).with(at, row);
      const flags = ['--format', 'csv', '--kind', 'people', '--strict'];
      const { code, stdout, stderr } = await run(['-', ...flags], `svc_id,name\n${rows.join('')}`);
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, message);
      assert.deepEqual(await world.db('people').limit(1), []);
    }
  });

  it('writes nothing once more rows are rejected than --max-rejected allows', async () => {
    const file = 'svc_id,name\n!,a\np1,b\n?,c\np1,d\n';
    const flags = ['-', '--format', 'csv', '--kind', 'people', '--max-rejected'];
    const refused = await run([...flags, '2'], file);
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /^catalog: line 5: svc_id repeats .* Nothing was written \(--max-rejected 2\)\.\n$/);
    assert.deepEqual(await world.db('people').limit(1), []);
    const accepted = await run([...flags, '3'], file);
    assert.deepEqual([accepted.code, accepted.stdout.includes('1 created')], [0, true]);
    await world.db('people').delete();
  });

  it('reports invalid arguments as misuse', async () => {
    for (const [args, message] of [
      [[], /required option '--kind <kind>' not specified/],
      [[...FLAGS, '--format', 'xml'], /Allowed choices are csv, tsv, ndjson/],
      [[...FLAGS, '--column', 'title'], /Use OURS=THEIRS/],
      [[...FLAGS, '--column', 'title=x'], /title is mapped twice/],
      [[...FLAGS, '--value', 'Movie=movie'], /Use COLUMN:THEIRS=OURS/],
      [[...FLAGS, '--value', 'media_type:Movie'], /Use COLUMN:THEIRS=OURS/],
      [[...FLAGS, ...VALUES, ...VALUES], /media_type:Movie is mapped twice/],
      [
        [...FLAGS, '--column', 'nope=x'],
        /^catalog: --column: titles have no column "nope"\. Columns: svc_id, media_type, title, /,
      ],
      [[...FLAGS, '--max-rejected', '0'], /--max-rejected/],
      [[...FLAGS, '--no-escapes'], /^catalog: --no-escapes requires a TSV file/],
      [[...FLAGS, '--skip-unmapped'], /^catalog: --skip-unmapped requires --value/],
    ] as const) {
      await assertRefused([inFolder('titles.csv'), ...args], message, 2);
    }
  });

  it('splits --value at the first colon and the last equals sign, and --column at the first equals sign', async () => {
    const flags = ['--column', 'title=t=x', '--column', 'media_type=kind', '--value', 'media_type:x:y=z=movie'];
    const { code, stderr } = await run(
      ['-', '--format', 'csv', '--kind', 'titles', ...flags, '--value', 'media_type:=series'],
      'svc_id,t=x,kind\na,A,x:y=z\nb,B,\n',
    );
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(await world.db('titles').orderBy('svc_id').select('title', 'media_type'), [
      { title: 'A', media_type: 'movie' },
      { title: 'B', media_type: 'series' },
    ]);
  });
});
