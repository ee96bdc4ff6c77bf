import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { Command, CommanderError } from 'commander';
import { registerImport } from '../../src/commands/import/import.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { OperatorError } from '../../src/errors.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { openCatalogue, type TestCatalogue } from '../support/catalog/importing.js';

/** What a command wrote, and how it ended. */
interface Run {
  readonly stdout: string;
  readonly stderr: string;
  readonly error: unknown;
}

function collect(isTTY: boolean): { stream: Writable & { isTTY: boolean }; text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY }), text: () => Buffer.concat(chunks).toString() };
}

type ErrorClass = typeof OperatorError | typeof CommanderError;

const FILE = 'id,name,kind\n1,A,Movie\n2,"B\nb",Show\n3,C,Short\n';
const FLAGS = ['--kind', 'titles', '--column', 'svc_id=id', '--column', 'title=name', '--column', 'media_type=kind'];
const VALUES = ['--value', 'media_type:Movie=movie', '--value', 'media_type:Show=series'];

describe('catalog import', () => {
  let catalogue: TestCatalogue;
  let folder: string;

  before(async () => {
    folder = await temporaryFolder();
    await mkdir(join(folder, 'folder.csv'));
    await writeFile(join(folder, 'titles.csv'), FILE);
    await writeFile(join(folder, 'titles.TSV.gz'), gzipSync(FILE.replaceAll(',', '\t')));
    await writeFile(join(folder, 'people.jsonl'), '{"svc_id":"a","name":"Ada"}\n');
    await writeFile(join(folder, 'unknown.txt'), FILE);
  });

  beforeEach(async () => {
    catalogue = await openCatalogue();
  });

  afterEach(async () => {
    await catalogue.close();
  });

  async function run(
    args: readonly string[],
    { input = '', isTTY = false }: { input?: string | Buffer; isTTY?: boolean } = {},
  ): Promise<Run> {
    const [stdout, stderr] = [collect(false), collect(isTTY)];
    const program = new Command('catalog').exitOverride().configureOutput({
      writeOut: (text) => stdout.stream.write(text),
      writeErr: (text) => stderr.stream.write(text),
    });
    registerImport(program, {
      stdin: Readable.from([Buffer.from(input)]),
      stdout: stdout.stream,
      stderr: stderr.stream,
      packageRoot: '',
      pid: 0,
      atExit: () => undefined,
      drains: () => false,
      signal: new AbortController().signal,
      workerId: undefined,
      command: 'catalog',
      clientKey: () => '',
      config: () => assert.fail(),
      withDatabase: (use) => use(catalogue.db, new Fence()),
      withRedis: () => assert.fail(),
    });
    let error: unknown;
    try {
      await program.parseAsync(['import', ...args], { from: 'user' });
    } catch (thrown) {
      error = thrown;
    }
    return { stdout: stdout.text(), stderr: stderr.text(), error };
  }

  async function assertRefused(args: readonly string[], message: RegExp, errorClass: ErrorClass = OperatorError) {
    const { stdout, error } = await run(args);
    assert.ok(error instanceof errorClass, String(error));
    assert.match(error.message, message);
    assert.equal(stdout, '');
  }

  it('maps, reports rejected rows on stderr, and sums up in one line', async () => {
    const first = await run([join(folder, 'titles.csv'), ...FLAGS, ...VALUES]);
    assert.deepEqual(first, {
      stdout: 'titles: 3 rows read: 2 created, 0 updated, 0 unchanged, 0 skipped, 1 rejected\n',
      stderr:
        'line 5: media_type is "Short", expected movie or series; map it with --value media_type:Short=movie or use --skip-unmapped\n',
      error: undefined,
    });
    const second = await run(
      [join(folder, 'titles.TSV.gz'), ...FLAGS, ...VALUES, '--skip-unmapped', '--strict'].concat(['--quote', '"']),
    );
    assert.deepEqual(second, {
      stdout: 'titles: 3 rows read: 0 created, 0 updated, 2 unchanged, 1 skipped, 0 rejected\n',
      stderr: '',
      error: undefined,
    });
  });

  it('prints one JSON document and nothing else', async () => {
    const { stdout, stderr, error } = await run([join(folder, 'people.jsonl'), '--kind', 'people', '--json'], {
      isTTY: true,
    });
    assert.deepEqual(
      { document: JSON.parse(stdout) as unknown, stderr, error },
      {
        document: { kind: 'people', rows: 1, created: 1, updated: 0, unchanged: 0, skipped: 0, rejected: 0 },
        stderr: '',
        error: undefined,
      },
    );
  });

  it('reads standard input, gzip too', async () => {
    for (const input of ['svc_id,name\na,Ada\n', gzipSync('svc_id,name\na,Ada\n')]) {
      const { stdout, error } = await run(['-', '--kind', 'collections', '--format', 'csv'], { input });
      assert.equal(error, undefined);
      assert.match(stdout, /^collections: 1 rows read: /);
    }
    assert.deepEqual(await catalogue.db('collections').select(), [{ svc_id: 'a', name: 'Ada' }]);
  });

  it('draws a bar on a terminal, and takes it away again', async () => {
    const { stdout, stderr, error } = await run([join(folder, 'titles.csv'), ...FLAGS, ...VALUES], { isTTY: true });
    assert.equal(error, undefined);
    assert.equal(stdout, 'titles: 3 rows read: 2 created, 0 updated, 0 unchanged, 0 skipped, 1 rejected\n');
    assert.match(stderr, /titles: reading .*3 rows \| [\d,]+ rows\/s/);
    assert.match(stderr, /titles: writing .*100% \| 2 rows \| [\d,]+ rows\/s/);
    assert.match(stderr, /line 5: media_type is "Short"[^\n]*\n/);
  });

  it('refuses what it cannot read', async () => {
    const flags = ['--kind', 'people'];
    await assertRefused([join(folder, 'none.csv'), ...flags], /^Cannot read .*none\.csv: there is no such file\.$/);
    await assertRefused([join(folder, 'folder.csv'), ...flags], /^.*folder\.csv is a folder: name a file\.$/);
    await assertRefused(
      [join(folder, 'unknown.txt'), ...flags],
      /^The ending of .*unknown\.txt does not tell its format: add --format csv, tsv or ndjson\.$/,
    );
    await assertRefused(['-', ...flags], /^Standard input has no name to tell its format by: add --format /);
    await assertRefused(
      [join(folder, 'titles.csv'), ...FLAGS, '--quote', '"'],
      /^--quote goes with TSV: CSV always has quotes\.$/,
    );
    await assertRefused(
      [join(folder, 'people.jsonl'), ...flags, '--quote', '"'],
      /^--quote goes with TSV: NDJSON has none\.$/,
    );
    await assertRefused(
      [join(folder, 'titles.csv'), ...FLAGS, '--strict'],
      /^line 2: media_type is "Movie", .* Nothing was written, because of --strict\.$/,
    );
  });

  for (const output of [[], ['--json']]) {
    it(`refuses a file with --strict${output.join(' ')} for a row far into it, and writes nothing`, async () => {
      const rows = Array.from({ length: 120_000 }, (_, index) => `p${index},Person\n`);
      for (const [bad, said] of [
        [{ at: 1_500, row: '!,Nobody\n' }, /^line 1502: svc_id is "!", .* Nothing was written, because of --strict\.$/],
        [{ at: 119_999, row: 'x,a,b\n' }, /^line 120001: 3 fields, .* Nothing was written, because of --strict\.$/],
        [{ at: 110_000, row: 'p7,Again\n' }, /^line 110002: svc_id p7 already stands at line 9\. Nothing was written/],
      ] as const) {
        const input = `svc_id,name\n${rows.with(bad.at, bad.row).join('')}`;
        const { stdout, stderr, error } = await run(
          ['-', '--format', 'csv', '--kind', 'people', '--strict', ...output],
          {
            input,
          },
        );
        assert.ok(error instanceof OperatorError, String(error));
        assert.match(error.message, said);
        assert.deepEqual([stdout, stderr], ['', '']);
        assert.deepEqual(await catalogue.db('people').limit(1), []);
      }
    });
  }

  it('reports arguments that it cannot understand as misuse', async () => {
    const misuse = CommanderError;
    const file = join(folder, 'titles.csv');
    await assertRefused([file], /required option '--kind <kind>' not specified/, misuse);
    await assertRefused([file, '--kind', 'films'], /Allowed choices are titles, people, collections/, misuse);
    await assertRefused([file, ...FLAGS, '--format', 'xml'], /Allowed choices are csv, tsv, ndjson/, misuse);
    await assertRefused([file, ...FLAGS, '--quote', "'"], /Allowed choices are "/, misuse);
    await assertRefused([file, ...FLAGS, '--column', 'title'], /Give OURS=THEIRS/, misuse);
    await assertRefused([file, ...FLAGS, '--column', 'title=x'], /title is mapped twice/, misuse);
    await assertRefused([file, ...FLAGS, '--value', 'Movie=movie'], /Give COLUMN:THEIRS=OURS/, misuse);
    await assertRefused([file, ...FLAGS, '--value', 'media_type:Movie'], /Give COLUMN:THEIRS=OURS/, misuse);
    await assertRefused([file, ...FLAGS, ...VALUES, ...VALUES], /media_type:Movie is mapped twice/, misuse);
  });

  it('cuts --value at the first colon and the last equals sign, and --column at the first equals sign', async () => {
    const input = 'svc_id,t=x,kind\na,A,x:y=z\nb,B,\n';
    const { stdout, stderr, error } = await run(
      ['-', '--format', 'csv', '--kind', 'titles', '--column', 'title=t=x', '--column', 'media_type=kind'].concat([
        '--value',
        'media_type:x:y=z=movie',
        '--value',
        'media_type:=series',
      ]),
      { input },
    );
    assert.deepEqual([stderr, error], ['', undefined]);
    assert.match(stdout, /^titles: 2 rows read: 2 created/);
    assert.deepEqual(
      (await catalogue.titles()).map((row) => [row.title, row.media_type]),
      [
        ['A', 'movie'],
        ['B', 'series'],
      ],
    );
  });

  it('parameterErrors itself', async () => {
    const { stdout } = await run(['--help']);
    assert.match(stdout, /Examples:\n {2}catalog import titles\.csv --kind titles\n/);
  });
});
