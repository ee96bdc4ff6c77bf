import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { ImportOptions } from '../../../src/catalog/import/index.js';
import { OperatorError, withAdvice } from '../../../src/errors.js';
import { counts, storedTitle, testCatalogue } from '../../support/catalog/importing.js';

const TITLES = `svc_id,media_type,title,has_bundles,available_in_library
t-2,movie,"Two, or ""More""",true,no
t-1,series,"One
and a half",0,YES
t-3,movie,Drei äöü 日本 😀 \\N \\.,F,t
`;

const STORED = [
  storedTitle({ svc_id: 't-2', title: 'Two, or "More"', has_bundles: true }),
  storedTitle({ svc_id: 't-1', media_type: 'series', title: 'One\nand a half', available_in_library: true }),
  storedTitle({ svc_id: 't-3', title: 'Drei äöü 日本 😀 \\N \\.', available_in_library: true }),
];

const mapping = (entries: Record<string, Record<string, string>>): NonNullable<ImportOptions['values']> =>
  new Map(Object.entries(entries).map(([column, values]) => [column, new Map(Object.entries(values))]));

const columns = (entries: Record<string, string>) => ({ columns: new Map(Object.entries(entries)) });

const BAD_ID =
  'svc_id must be 1 to 64 of A-Z, a-z, 0-9, _ and -; no option changes ids, so shorten others, such as URIs, in the file';
const BAD_TYPE =
  'media_type must be movie or series; map other values with --value media_type:THEIRS=OURS, or leave such rows out with --skip-unmapped as well';

/** @returns the beginning of a tar archive */
const tarHeader = (): Buffer => {
  const header = Buffer.alloc(512);
  header.write('titles.csv');
  header.write('ustar', 257);
  return header;
};

describe('an import', () => {
  const catalogue = testCatalogue({ each: true });

  async function assertRefused(content: string | Buffer, options: Partial<ImportOptions>, message: string | RegExp) {
    await assert.rejects(catalogue.import(content, options), (error) => {
      assert.ok(error instanceof OperatorError, String(error));
      if (typeof message === 'string') assert.equal(withAdvice(error), message);
      else assert.match(withAdvice(error), message);
      return true;
    });
    assert.deepEqual(await catalogue.titles(), []);
  }

  it('creates titles in the order of the file, across batches, whatever the length of the rows', async () => {
    const ids = Array.from({ length: 55_000 }, (_, index) => `t${index}`);
    const rows = ids.map((id, index) => `${id},movie,${'x'.repeat(1 + ((index * 37) % 90))}`);
    const { result } = await catalogue.import(`svc_id,media_type,title\n${rows.join('\n')}`);
    assert.deepEqual(result, counts({ rows: ids.length, created: ids.length }));
    assert.deepEqual(await catalogue.db('titles').orderBy('updated_at').pluck('svc_id'), ids);
  });

  it('creates titles in the order of the file, from CSV with or without gzip and a byte order mark', async () => {
    assert.deepEqual(await catalogue.import(TITLES), { result: counts({ rows: 3, created: 3 }), rejected: [] });
    assert.deepEqual(await catalogue.titles(), STORED);
    assert.deepEqual(await catalogue.counts(), {
      titles: 3,
      movies: 2,
      series: 1,
      available_in_library: 2,
      people: 0,
      collections: 0,
    });
    const feed = await catalogue.feed();
    const [head, tail] = [TITLES.slice(0, 70), TITLES.slice(70)];
    for (const content of [
      `\ufeff${TITLES}`,
      gzipSync(TITLES),
      gzipSync(`\ufeff${TITLES}`),
      Buffer.concat([gzipSync(head), gzipSync(tail)]),
      TITLES.replaceAll('\n', '\r\n').replace('One\r\n', 'One\n'),
    ]) {
      assert.deepEqual(await catalogue.import(content), { result: counts({ rows: 3, unchanged: 3 }), rejected: [] });
    }
    assert.deepEqual(await catalogue.feed(), feed);
  });

  it('creates and updates people and collections', async () => {
    for (const kind of ['people', 'collections'] as const) {
      const first = await catalogue.import('name,svc_id\nAda,a\nBob,b\n', { kind });
      assert.deepEqual(first, { result: counts({ rows: 2, created: 2 }), rejected: [] });
      const second = await catalogue.import(
        '{"svc_id":"b","name":"Rob"}\n{"svc_id":"a","name":"Ada"}\n{"svc_id":"c","name":"Cy"}',
        {
          kind,
          format: 'ndjson',
        },
      );
      assert.deepEqual(second, { result: counts({ rows: 3, created: 1, updated: 1, unchanged: 1 }), rejected: [] });
      assert.deepEqual(await catalogue.db(kind).select().orderBy('svc_id'), [
        { svc_id: 'a', name: 'Ada' },
        { svc_id: 'b', name: 'Rob' },
        { svc_id: 'c', name: 'Cy' },
      ]);
    }
    const { people, collections, titles } = await catalogue.counts();
    assert.deepEqual({ people, collections, titles }, { people: 3, collections: 3, titles: 0 });
  });

  it('updates only rows that differ, and moves only those to the end of the feed', async () => {
    await catalogue.import(TITLES);
    const before = await catalogue.db('titles').where('svc_id', 't-1').pluck('updated_at');
    const changed = TITLES.replace('Drei', 'Vier').replace('t-2,movie', 't-2,series').concat('t-0,movie,Zero,,\n');
    assert.deepEqual(await catalogue.import(changed), {
      result: counts({ rows: 4, created: 1, updated: 2, unchanged: 1 }),
      rejected: [],
    });
    const [first, ...moved] = await catalogue.titles();
    assert.deepEqual(first, STORED[1]);
    assert.deepEqual(moved.map(({ svc_id: id, media_type: type, title }) => [id, type, title]).sort(), [
      ['t-0', 'movie', 'Zero'],
      ['t-2', 'series', 'Two, or "More"'],
      ['t-3', 'movie', 'Vier äöü 日本 😀 \\N \\.'],
    ]);
    const after = await catalogue.db('titles').where('svc_id', 't-1').pluck('updated_at');
    assert.deepEqual(after, before);
    const { movies, series } = await catalogue.counts();
    assert.deepEqual([movies, series], [2, 2]);
  });

  it('keeps the value of a known row if the column is absent or the cell is empty', async () => {
    await catalogue.import(TITLES);
    const { result } = await catalogue.import(
      'svc_id,media_type,title,has_bundles\nt-2,movie,"Two, or ""More""",\nt-3,movie,New,\nt-1,series,"One\nand a half",true\n',
    );
    assert.deepEqual(result, counts({ rows: 3, updated: 2, unchanged: 1 }));
    assert.deepEqual(await catalogue.titles(), [
      STORED[0],
      { ...STORED[2], title: 'New' },
      { ...STORED[1], has_bundles: true },
    ]);
  });

  it('maps columns and values, and skips or rejects other values', async () => {
    const file =
      'id,kind,name,lib\n1,Movie,A,\n2,TV Show,B,Y\n3,Short,C,\n4,series,D,n\n5,,E,\n6,"a=b:c",F,\n!,Short,,\n';
    const options: Partial<ImportOptions> = {
      columns: new Map([
        ['svc_id', 'id'],
        ['media_type', 'kind'],
        ['title', 'name'],
        ['available_in_library', 'lib'],
      ]),
      values: mapping({
        media_type: { Movie: 'movie', 'TV Show': 'series', 'a=b:c': 'movie' },
        available_in_library: { Y: 'yes', n: 'false', '': '1' },
      }),
    };
    assert.deepEqual(await catalogue.import(file, options), {
      result: counts({ rows: 7, created: 4, rejected: 3 }),
      rejected: [
        `line 4: ${BAD_TYPE}: "Short"`,
        'line 6: media_type is empty, expected movie or series: "5,,E"',
        `line 8: ${BAD_ID}: "!"`,
      ],
    });
    assert.deepEqual(await catalogue.import(file, { ...options, skipUnmapped: true }), {
      result: counts({ rows: 7, unchanged: 4, skipped: 3 }),
      rejected: [],
    });
    assert.deepEqual(
      (await catalogue.titles()).map((row) => [row.svc_id, row.media_type, row.title, row.available_in_library]),
      [
        ['1', 'movie', 'A', true],
        ['2', 'series', 'B', true],
        ['4', 'series', 'D', false],
        ['6', 'movie', 'F', true],
      ],
    );
  });

  it('refuses invalid mappings and headers', async () => {
    for (const [file, options, message] of [
      [
        TITLES,
        columns({ has_bundles: 'Box' }),
        /^The file has no column "Box", given for has_bundles\. Its columns: "svc_id", "media_type", /,
      ],
      [
        'svc_id,media_type,title\n',
        { values: mapping({ has_bundles: { y: 'true' } }) },
        /^The file has no column has_bundles\. /,
      ],
      [
        TITLES,
        { values: mapping({ title: { a: 'b' } }) },
        /^--value: titles have no column "title" with .* Columns with one: media_type, has_bundles, available_in_library\.$/,
      ],
      [
        TITLES,
        { values: mapping({ media_type: { a: 'film' } }) },
        '--value media_type: "film" is not one of movie or series.',
      ],
      [
        'svc_id,media_type,name\n',
        {},
        'The file has no column title. Its columns: "svc_id", "media_type", "name". Choose one with --column title=THEIRS.',
      ],
      [
        'id,title\n',
        {},
        'The file has no column svc_id or media_type. Its columns: "id", "title". Choose them with --column svc_id=THEIRS --column media_type=THEIRS, or fill a missing column with --value media_type:=OURS.',
      ],
      ['svc_id;media_type;title\n', {}, /^The header is separated by semicolons\. Save the file with commas/],
      ['svc_id\tmedia_type\n', {}, 'The header is separated by tabs. Add --format tsv.'],
      ['\n[\n  {\n', { format: 'ndjson' }, /^The file is a JSON array\. Write .* jq -c '\.\[\]' FILE$/],
      [
        '{"svc_id":"a","media_type":"movie","title":"x"}\n',
        { format: 'ndjson', ...columns({ has_bundles: 'box' }) },
        /^The file has no column "box", given for has_bundles\. /,
      ],
    ] as const) {
      await assertRefused(file, options, message);
    }
  });

  it('fills a column that the file lacks with one value, and skips what spreadsheets write before the header', async () => {
    for (const [before, quoted] of [
      ['sep=,\r\n', 'm1'],
      ['#TYPE System.Data.DataRow\r\n', '"m2"'],
      ['', 'm3'],
    ] as const) {
      const file = `${before}movieId,title,genres\r\n${quoted},Toy Story,Comedy\r\n`;
      const options = { ...columns({ svc_id: 'movieId' }), values: mapping({ media_type: { '': 'movie' } }) };
      assert.deepEqual(await catalogue.import(file, options), {
        result: counts({ rows: 1, created: 1 }),
        rejected: [],
      });
    }
    const ndjson = '{"movieId":4,"title":"Heat"}\n';
    const options = { ...columns({ svc_id: 'movieId' }), values: mapping({ media_type: { '': 'movie' } }) };
    await catalogue.import(ndjson, { ...options, format: 'ndjson' });
    assert.deepEqual(
      (await catalogue.titles()).map(({ svc_id, media_type }) => `${svc_id} ${media_type}`),
      ['m1 movie', 'm2 movie', 'm3 movie', '4 movie'],
    );
    const { rejected } = await catalogue.import('movieId,title,media_type\n5,X,film\n', options);
    assert.deepEqual(rejected, [`line 2: ${BAD_TYPE}: "film"`]);
  });

  it('rejects every row that the database would refuse, with its line, and imports the others', async () => {
    const rows = [
      ' s1 ,movie,White space around an id is no part of it',
      'a b,movie,x',
      `${'x'.repeat(65)},movie,x`,
      ',movie,x',
      's2,Movie,x',
      's3,movie,',
      's4,movie,   ',
      's5,movie,NUL \0 here',
      `s6,movie,${'😀'.repeat(1001)}`,
      `s7,movie,${'😀'.repeat(1000)}`,
      's8,movie,"two\nlines",maybe',
      's9,movie,  white space is kept  ',
      `s10,"${'y'.repeat(90)}",x`,
      's11,\u001b[2J\u202e,x',
    ];
    const file = `svc_id,media_type,title,has_bundles\n${rows.map((row) => (row.endsWith('maybe') ? row : `${row},`)).join('\n')}\n`;
    const { result, rejected } = await catalogue.import(file);
    assert.deepEqual(rejected, [
      `line 3: ${BAD_ID}: "a b"`,
      `line 4: ${BAD_ID}: "${'x'.repeat(65)}"`,
      'line 5: svc_id is empty: ",movie,x"',
      `line 6: ${BAD_TYPE}: "Movie"`,
      'line 7: title is empty: "s3,movie"',
      'line 8: title is empty: "s4,movie,   "',
      'line 9: title contains a NUL character: "NUL � here"',
      `line 10: title is longer than 1000 characters: "${'😀'.repeat(79)}…"`,
      'line 12: has_bundles must be true or false (1 or 0, yes or no, t or f); map other values with --value ' +
        'has_bundles:THEIRS=OURS, or leave such rows out with --skip-unmapped as well: "maybe"',
      `line 15: ${BAD_TYPE}: "${'y'.repeat(79)}…"`,
      `line 16: ${BAD_TYPE}: "�[2J�"`,
    ]);
    assert.deepEqual(result, counts({ rows: 14, created: 3, rejected: 11 }));
    assert.deepEqual(
      (await catalogue.titles()).map(({ svc_id, title }) => [svc_id, title]),
      [
        ['s1', 'White space around an id is no part of it'],
        ['s7', '😀'.repeat(1000)],
        ['s9', '  white space is kept  '],
      ],
    );
  });

  it('rejects NUL and half a surrogate pair from JSON escapes', async () => {
    const file = [
      '{"svc_id":"a","media_type":"movie","title":"x\\u0000"}',
      '{"svc_id":"b","media_type":"movie","title":"x\\ud83d"}',
      '{"svc_id":"c","media_type":"movie","title":"x\\ud83d\\ude00"}',
    ].join('\n');
    assert.deepEqual(await catalogue.import(file, { format: 'ndjson' }), {
      result: counts({ rows: 3, created: 1, rejected: 2 }),
      rejected: ['line 1: title contains a NUL character: "x�"', 'line 2: title contains half a surrogate pair: "x�"'],
    });
  });

  it('imports the first of several rows with the same id', async () => {
    const file =
      'svc_id,media_type,title\na,movie,first\nb,movie,"two\nlines"\na,movie,second\n a ,series,third\nb,movie,other\n';
    assert.deepEqual(await catalogue.import(file), {
      result: counts({ rows: 5, created: 2, rejected: 3 }),
      rejected: [
        'line 5: svc_id repeats that of an earlier line: a, as in line 2',
        'line 6: svc_id repeats that of an earlier line: a, as in line 2',
        'line 7: svc_id repeats that of an earlier line: b, as in line 3',
      ],
    });
    assert.deepEqual(
      (await catalogue.titles()).map(({ svc_id, title }) => [svc_id, title]),
      [
        ['a', 'first'],
        ['b', 'two\nlines'],
      ],
    );
  });

  it('reports each rejected row once and in order, wherever the chunks of a file end', async () => {
    // Long names make COPY send many blocks. Valid and invalid rows alternate, so an invalid one also ends a block.
    const ids = Array.from({ length: 12_000 }, (_, index) => (index % 2 === 0 ? `p${index}` : `p ${index}`));
    const file = Buffer.from(`svc_id,name\n${ids.map((id) => `${id},${'n'.repeat(97)}\n`).join('')}`);
    const expected = ids.flatMap((id, index) => (index % 2 === 0 ? [] : [`line ${index + 2}: ${BAD_ID}: "${id}"`]));
    // The chunks end within a row, after a row, and at the end of the file.
    for (const size of [4_099, 4_096, file.length]) {
      const chunks = Array.from({ length: Math.ceil(file.length / size) }, (_, index) =>
        file.subarray(index * size, (index + 1) * size),
      );
      const { result, rejected } = await catalogue.import(Readable.from(chunks), { kind: 'people' });
      // A difference would be too long to print.
      assert.ok(isDeepStrictEqual(rejected, expected), `${rejected.length} of ${expected.length} reported`);
      assert.deepEqual([result.rows, result.rejected], [ids.length, expected.length]);
    }
  });

  it('reports each row that repeats an id, however many do', async () => {
    const repeated = 20_001;
    const rows = Array.from({ length: repeated }, (_, index) => `r${index},Name\n`).join('');
    const { result, rejected } = await catalogue.import(`svc_id,name\n${rows}${rows}`, { kind: 'people' });
    const expected = Array.from(
      { length: repeated },
      (_, index) =>
        `line ${repeated + index + 2}: svc_id repeats that of an earlier line: r${index}, as in line ${index + 2}`,
    );
    assert.ok(isDeepStrictEqual(rejected, expected), `${rejected.length} of ${expected.length} reported`);
    assert.deepEqual(result, counts({ rows: 2 * repeated, created: repeated, rejected: repeated }));
  });

  it('refuses damaged gzip data and files that are not text, and writes nothing', async () => {
    const gzip = gzipSync(TITLES.repeat(50));
    await assertRefused(gzip.subarray(0, gzip.length - 20), {}, /^The gzip data is damaged or incomplete \(/);
    const flipped = Buffer.from(gzip);
    flipped.writeUInt8(flipped.readUInt8(gzip.length - 8) ^ 1, gzip.length - 8);
    await assertRefused(flipped, {}, /^The gzip data is damaged or incomplete \(/);
    await assertRefused(Buffer.from(`\ufeff${TITLES}`, 'utf16le'), {}, 'The file is UTF-16 text. Convert it to UTF-8.');
    await assertRefused(gzipSync(tarHeader()), {}, /^The file is a tar archive\. Unpack it/);
    await assertRefused(Buffer.from('PK\x03\x04...'), {}, /^The file is a ZIP archive or a spreadsheet/);
    for (const [name, program, bytes] of [
      ['zstd', 'zstd', '28b52ffd'],
      ['xz', 'xz', 'fd377a585a00'],
      ['bzip2', 'bzip2', '425a6839314159265359'],
    ] as const) {
      const content = Buffer.concat([Buffer.from(bytes, 'hex'), Buffer.alloc(50, 0xe9)]);
      const message = `The file is compressed with ${name}. Decompress it first, with "${program} -dc".`;
      await assertRefused(content, {}, message);
      await assertRefused(content, { format: 'ndjson' }, message);
    }
    await assertRefused('', {}, 'The file is empty; a header line is required.');
    assert.deepEqual((await catalogue.import('', { format: 'ndjson' })).result, counts({}));
    assert.deepEqual((await catalogue.import('svc_id,media_type,title\n')).result, counts({}));
  });

  it('leaves no temporary table in a pooled connection', async () => {
    for (let round = 0; round < 6; round++) {
      await catalogue.import(TITLES);
      await assert.rejects(catalogue.import('x\n'), OperatorError);
    }
    const rows = await catalogue.query("select count(*) as tables from pg_class where relname like 'import\\_%'");
    assert.deepEqual(rows, [{ tables: 0 }]);
  });
});
