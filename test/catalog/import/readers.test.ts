import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { CsvReader } from '../../../src/catalog/import/csv.js';
import { mapColumns } from '../../../src/catalog/import/mapping.js';
import { NdjsonReader } from '../../../src/catalog/import/ndjson.js';
import { LONGEST_ROW, type RowReader, type RowSink } from '../../../src/catalog/import/reader.js';
import { OperatorError, withAdvice } from '../../../src/errors.js';

const HEADERS = { csv: 'svc_id,name\n', tsv: 'svc_id\tname\n', ndjson: '' };

type Format = keyof typeof HEADERS;

const FORMATS = Object.keys(HEADERS) as Format[];

/**
 * Reads a file of people in chunks that end at the cuts.
 *
 * @returns rows as `line: svc_id|name`; for malformed ones, `line! reason`; and the error, if any
 */
function read(format: Format, file: string | Buffer, cuts: readonly number[] = []): string[] {
  return readWithExcerpts(format, file, cuts).map(([event]) => event);
}

/** Reads as {@link read}. @returns each event, and the excerpt of a malformed row */
function readWithExcerpts(format: Format, file: string | Buffer, cuts: readonly number[] = []): [string, string?][] {
  const events: [string, string?][] = [];
  const sink: RowSink = {
    row: (cells, line) => events.push([`${line}: ${cells.join('|')}`]),
    malformed: (line, reason, found) => events.push([`${line}! ${reason}`, found]),
  };
  const columns = mapColumns('people', {});
  const reader: RowReader =
    format === 'ndjson' ? new NdjsonReader(columns, sink) : new CsvReader(columns, sink, format);
  const bytes = Buffer.from(file);
  try {
    let from = 0;
    for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
      reader.push(bytes.subarray(from, cut));
      from = cut;
    }
    reader.end();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    events.push([withAdvice(error)]);
  }
  return events;
}

const AFTER = 'has text after its closing quote; double a quote within a quoted field';
const WITHIN = 'has a quote but does not begin with one; put the field in quotes and double the quote';
const OPEN = 'the quote that opens field 1 is not closed';
const NO_TEXT = 'must be a string or a safe integer';
const FIELDS = 'fields, but the header has 2';

const CASES: Readonly<Record<Format, readonly (readonly [what: string, body: string, events: readonly string[]])[]>> = {
  csv: [
    ['one row', 'a,x\n', ['2: a|x']],
    ['a last line without an end', 'a,x', ['2: a|x']],
    ['a last line that ends in an empty cell', 'a,', ['2: a|']],
    ['line ends of three kinds', 'a,1\nb,2\rc,3\r\nd,4\r', ['2: a|1', '3: b|2', '4: c|3', '5: d|4']],
    ['empty lines of three kinds', '\n\r\r\n\na,x', ['6: a|x']],
    ['a line feed before a carriage return', '\n\ra,x', ['4: a|x']],
    ['a line of a blank', ' \na,x', [`2! 1 ${FIELDS}`, '3: a|x']],
    ['a line of an empty quoted field', '""\na,x', [`2! 1 ${FIELDS}`, '3: a|x']],
    ['a line of a delimiter', ',\n', ['2: |']],
    ['too few and too many fields', 'a\nb,x,y\nc,z', [`2! 1 ${FIELDS}`, `3! 3 ${FIELDS}`, '4: c|z']],
    [
      'quoted fields before each line end',
      '"a","x"\r"b","y"\r\n"c",""\n"d","z"',
      ['2: a|x', '3: b|y', '4: c|', '5: d|z'],
    ],
    [
      'doubled quotes',
      '"""a""b","""",\n"""","a""b"\n"a""b""c","""x"""',
      [`2! 3 ${FIELDS}`, '3: "|a"b', '4: a"b"c|"x"'],
    ],
    ['a delimiter within quotes', '"a,b",x', ['2: a,b|x']],
    ['line breaks within quotes', '"a\nb","x\r\ny\rz"\r\nc,w', ['2: a\nb|x\r\ny\rz', '6: c|w']],
    ['a backslash and a tab', '\\N,\\t\t', ['2: \\N|\\t\t']],
    ['characters near the delimiter', "!#$%&'()*+,-./", ["2: !#$%&'()*+|-./"]],
    ['letters outside ASCII', 'é,"日本 𝄞"', ['2: é|日本 𝄞']],
    ['text after a closing quote', '"a"b,x\nc,y', [`2! field 1 ${AFTER}`, '3: c|y']],
    ['a blank after a closing quote', 'a,"x" \r\nc,y', [`2! field 2 ${AFTER}`, '3: c|y']],
    ['a quote within a field', 'a,7" x\nc,y', [`2! field 2 ${WITHIN}`, '3: c|y']],
    ['a quote after a blank', 'a, "x"\rc,y', [`2! field 2 ${WITHIN}`, '3: c|y']],
    ['a malformed row at the end of the file', '"a"b\r', [`2! field 1 ${AFTER}`]],
    ['two malformed rows', 'a"\nb"\nc,y', [`2! field 1 ${WITHIN}`, `3! field 1 ${WITHIN}`, '4: c|y']],
    ['a malformed row of two lines', '"a\nb"c,x\nd,y', [`2! field 1 ${AFTER}`, `3! field 1 ${WITHIN}`, '4: d|y']],
    ['a quote that never closes', '"a\nb,y\nc,z\n', [`2! ${OPEN}`, '3: b|y', '4: c|z']],
    ['a quote that closes in a later row', '"a,x\nb,"y"\nc,z', [`2! field 1 ${AFTER}`, '3: b|y', '4: c|z']],
    ['a doubled quote that never closes', '"x""', [`2! ${OPEN}`]],
  ],
  tsv: [
    ['a quote anywhere', '"a\t"x"y\nb\t"\n"c"\t""\n', ['2: "a|"x"y', '3: b|"', '4: "c"|""']],
    ['a comma', 'a,b\tx,y\n', ['2: a,b|x,y']],
    ['every escape', '\\\\N\t\\b\\f\\n\\r\\t\\v\\\\\\x', ['2: \\N|\b\f\n\r\t\v\\\\x']],
    ['null', '\\N\tx\\N\n', ['2: |x\\N']],
    ['a backslash that escapes nothing', 'AC\\DC\tx\\\n\\.\t\\101\n', ['2: AC\\DC|x\\', '3: \\.|\\101']],
    ['an empty line', '\na\tx', ['3: a|x']],
    ['a line of a quote', '"\na\tx', [`2! 1 ${FIELDS}`, '3: a|x']],
  ],
  ndjson: [
    ['objects', '{"svc_id":"a","name":"x","other":[1]}\r\n{"name":"y","svc_id":"é"}', ['1: a|x', '2: é|y']],
    ['empty lines', '\n \n{"svc_id":"a","name":"x"}', ['3: a|x']],
    ['numbers, null and absence', '{"svc_id":1917,"name":null}\n{"name":"x"}', ['1: 1917|', '2: |x']],
    [
      'lines that are not objects',
      'null\n[1]\n"a"\n{"svc_id":"b","name":"ok"}',
      ['1! not a JSON object', '2! not a JSON object', '3! not a JSON object', '4: b|ok'],
    ],
    [
      'values that a text cannot have',
      '{"svc_id":12345678901234567890}\n{"svc_id":1.5}\n{"name":{"en":"x"}}\n{"name":true}\n{"svc_id":"b","name":"ok"}',
      [...['svc_id', 'svc_id', 'name', 'name'].map((name, at) => `${at + 1}! ${name} ${NO_TEXT}`), '5: b|ok'],
    ],
  ],
};

describe('a reader of files', () => {
  for (const format of FORMATS) {
    it(`reads ${format}, however it is divided into chunks`, () => {
      for (const [what, body, events] of CASES[format]) {
        const file = HEADERS[format] + body;
        assert.deepEqual(read(format, file), events, what);
        const everyByte = Array.from({ length: Buffer.byteLength(file) }, (_, index) => index);
        assert.deepEqual(read(format, file, everyByte), events, what);
        for (const cut of everyByte) assert.deepEqual(read(format, file, [cut]), events, what);
      }
    });
  }

  it('finds columns by the header of CSV, in any order, and says what is wrong with a header', () => {
    for (const [file, events] of [
      ['x, name ,"svc_id",x\n1,n,s,2\n', ['2: s|n']],
      ['svc_id,name', []],
      ['\n\r\n', ['The file is empty; a header line is required.']],
      [
        'q1,Ada\nq2,Bob\n',
        [
          'The file has no column svc_id or name. Its columns: "q1", "Ada". Choose them with --column svc_id=THEIRS ' +
            '--column name=THEIRS. If the file has no header line, put one before it that names each column, such as ' +
            'svc_id, name.',
        ],
      ],
      [
        'id,name\na,b\n',
        ['The file has no column svc_id. Its columns: "id", "name". Choose one with --column svc_id=THEIRS.'],
      ],
      ['svc_id,name,name\n', ['The header has the column "name" twice. Rename one of them.']],
      ['\n"svc_id"x,name\n', [`The header, line 2, is malformed: field 1 ${AFTER}.`]],
      ['"svc_id\n', [`The header, line 1, is malformed: ${OPEN}.`]],
    ] as const) {
      assert.deepEqual(read('csv', file), events);
    }
  });

  it('keeps each backslash of TSV without escapes, but not the sign for an empty cell', () => {
    const events: string[] = [];
    const sink: RowSink = {
      row: (cells) => events.push(cells.join('|')),
      malformed: (_line, reason) => assert.fail(reason),
    };
    const reader = new CsvReader(mapColumns('people', {}), sink, 'plain tsv');
    reader.push(Buffer.from('svc_id\tname\n\\N\tC:\\new\\table\nAC\\\\DC\t\\Nx\n'));
    reader.end();
    assert.deepEqual(events, ['|C:\\new\\table', 'AC\\\\DC|\\Nx']);
  });

  it('rejects a needed cell that is not UTF-8, and reads the next row', () => {
    const bytes = Buffer.from('svc_id,other,name\na,\xe9,x\n\xe9,,x\nb,,caf\xe9\nc,,y\n', 'latin1');
    assert.deepEqual(read('csv', bytes), [
      '2: a|x',
      '3! svc_id is not valid UTF-8; convert the file, for example with iconv -f latin1 -t utf-8 FILE',
      '4! name is not valid UTF-8; convert the file, for example with iconv -f latin1 -t utf-8 FILE',
      '5: c|y',
    ]);
    assert.deepEqual(read('csv', Buffer.from('svc_id,n\xe9me\n', 'latin1')), [
      'The header is not valid UTF-8; convert the file, for example with iconv -f latin1 -t utf-8 FILE: "n�me"',
    ]);
    assert.deepEqual(read('ndjson', Buffer.from('{"svc_id":"\xe9"}\n', 'latin1')), [
      '1! not valid UTF-8; convert the file, for example with iconv -f latin1 -t utf-8 FILE',
    ]);
  });

  it('rejects NDJSON that is not JSON with a message that is safe to print', () => {
    const [[event, found = ''] = assert.fail()] = readWithExcerpts('ndjson', '{"svc_id":"\u001b[2J"}\n');
    assert.equal(event, '1! not JSON');
    assert.match(found, /^Bad control character|^Unexpected token/);
    assert.ok(!found.includes('\u001b'));
  });

  it('stops if a needed column is in none of the first 100 rows of NDJSON, or in none at all', () => {
    const missing =
      'The file has no column name. Its columns: "svc_id", "title". Choose one with --column name=THEIRS.';
    const events = read('ndjson', '{"svc_id":"a","title":"x"}\n'.repeat(500));
    assert.deepEqual([events.length, events.at(-1)], [100, missing]);
    assert.deepEqual(read('ndjson', '{"svc_id":"a","title":"x"}\n'), ['1: a|', missing]);
    assert.deepEqual(read('ndjson', ''), []);
  });

  it('accepts rows of up to 1 MiB with their line end, and rejects longer ones', () => {
    const longest = 'x'.repeat(LONGEST_ROW - 'a,""\n'.length);
    const rest = '\nb,y\n';
    assert.deepEqual(read('csv', `${HEADERS.csv}a,"${longest}"${rest}`), [`2: a|${longest}`, '3: b|y']);
    const tooLong = '2! longer than 1 MiB; a quote may not be closed';
    for (const file of [`${HEADERS.csv}a,"${longest}x"${rest}`, `${HEADERS.csv}a,${longest}xxx${rest}`]) {
      assert.deepEqual(read('csv', file), [tooLong, '3: b|y']);
      assert.deepEqual(read('csv', file, [LONGEST_ROW + 100]), [tooLong, '3: b|y']);
    }
    assert.deepEqual(read('tsv', `${HEADERS.tsv}a\t${longest}xxx\nb\ty`), ['2! longer than 1 MiB', '3: b|y']);
    const ndjson = `{"svc_id":"${longest}","name":"x"}\n{"svc_id":"b","name":"y"}`;
    assert.deepEqual(read('ndjson', ndjson, [500_000, LONGEST_ROW + 10]), ['1! longer than 1 MiB', '2: b|y']);
  });

  it('rejects one row for a quote that stays open for 1 MiB, and reads the lines below it', () => {
    const rows = LONGEST_ROW / 4;
    const file = `${HEADERS.csv}b,"y\n${'c,z\n'.repeat(rows)}d,w\n`;
    const expected = [
      '2! longer than 1 MiB; a quote may not be closed',
      ...Array.from({ length: rows }, (_, index) => `${index + 3}: c|z`),
      `${rows + 3}: d|w`,
    ];
    const chunks = Array.from({ length: 20 }, (_, index) => index * 65_536);
    // A difference would be too long to print.
    assert.ok(isDeepStrictEqual(read('csv', file, chunks), expected));
  });

  it('shows the beginning of malformed rows', () => {
    for (const [format, body, excerpts] of [
      ['csv', 'a,b,c\n"a"x,b\n"é\nc,y', ['"a,b,c"', String.raw`"\"a\"x"`, String.raw`"\"é"`]],
      ['tsv', 'a\tb\tc\n', ['"a�b�c"']],
      [
        'ndjson',
        '{"a":\n["é"]\n{"svc_id":1.5}\n',
        [/^Unexpected end of JSON/, String.raw`"[\"é\"]"`, String.raw`"{\"svc_id\":1.5}"`],
      ],
      ['csv', 'é'.repeat(200), [`"${'é'.repeat(79)}…"`]],
    ] as const) {
      const shown = readWithExcerpts(format, HEADERS[format] + body).flatMap(([, found]) => found ?? []);
      assert.equal(shown.length, excerpts.length);
      for (const [index, excerpt] of excerpts.entries()) {
        if (typeof excerpt === 'string') assert.equal(shown[index], excerpt);
        else assert.match(shown[index] ?? '', excerpt);
      }
    }
  });

  it('emits each row before the next chunk arrives', () => {
    for (const [what, pushed, events] of [
      ['LF', 'a,x\nb,y\nc', ['2', '3']],
      ['CRLF', 'a,x\r\nb,y\r\nc', ['2', '3']],
      ['CR', 'a,x\rb,y\rc', ['2', '3']],
      ['a malformed row', 'a"\r\nb,y\r\nc', ['2!', '3']],
      ['an open quote of 1 MiB', `a,"${'x'.repeat(LONGEST_ROW)}`, ['2!']],
    ] as const) {
      const seen: string[] = [];
      const sink: RowSink = {
        row: (_cells, line) => seen.push(String(line)),
        malformed: (line) => seen.push(`${line}!`),
      };
      new CsvReader(mapColumns('people', {}), sink, 'csv').push(Buffer.from(HEADERS.csv + pushed));
      assert.deepEqual(seen, events, what);
    }
  });

  const PIECES: Readonly<Record<Format, readonly string[]>> = {
    csv: ['a', 'é', '"', '""', ',', '\n', '\r', '\r\n', ' ', '"x"', 'a,b\n', '"a\n",b\r\n'],
    tsv: ['a', 'é', '"', '\\', '\\N', '\\\\', '\t', '\n', '\r', '\r\n', ' ', '"x"', 'a\tb\n', '\\na\tb\r\n'],
    ndjson: ['{"svc_id":"é","name":"x"}', '{', '}', '"a"', '\n', '\r\n', '[]', ' '],
  };

  for (const format of FORMATS) {
    it(`reads any ${format} the same in any chunks, with at most one row for each line, in order`, () => {
      const body = fc.array(fc.constantFrom(...PIECES[format]), { maxLength: 30 }).map((parts) => parts.join(''));
      const cuts = fc.array(fc.nat(), { maxLength: 20 });
      fc.assert(
        fc.property(body, cuts, (text, at) => {
          const file = HEADERS[format] + text;
          const events = read(format, file);
          assert.deepEqual(readWithExcerpts(format, file, at), readWithExcerpts(format, file));
          const lines = events.flatMap((event) => (/^\d/.test(event) ? [parseInt(event)] : []));
          assert.ok(lines.every((line, index) => line > (lines[index - 1] ?? 0)));
          assert.ok((lines.at(-1) ?? 1) <= file.split(/\r\n|\n|\r/).length);
        }),
        { numRuns: 500 },
      );
    });
  }
});
