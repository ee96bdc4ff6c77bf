import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { LONGEST_ROW } from '../../src/catalog/import/reader.js';
import { readRows as read, type Format } from './reading.js';

const HEADER = 'svc_id,name\n';

describe('import of CSV', () => {
  it('keeps quotes, delimiters and line breaks within quotes, and counts lines as an editor does', () => {
    const file = 'svc_id,name\r\na,"x, ""y"""\r\nb,"one\r\ntwo\nthree\rfour"\r\n\r\nc,"",\r\nd,"last"';
    assert.deepEqual(read('csv', file), [
      [2, 'a', 'x, "y"'],
      [3, 'b', 'one\r\ntwo\nthree\rfour'],
      'line 8: 3 fields, but the header has 2',
      [9, 'd', 'last'],
    ]);
  });

  it('takes LF, CRLF and CR for the end of a line, and does without the last one', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      assert.deepEqual(read('csv', ['svc_id,name', 'a,x', '', 'b,y'].join(end)), [
        [2, 'a', 'x'],
        [4, 'b', 'y'],
      ]);
    }
  });

  it('gives up a malformed row alone and goes on at the next line', () => {
    assert.deepEqual(read('csv', `${HEADER}a,"x"y\nb,ok\nc,7" single\nd,ok\n"e,\nf,ok\ng,"x" \nh,"ok"\n`), [
      'line 2: field 2 goes on after its closing quote; a quote within a quoted field is written twice',
      [3, 'b', 'ok'],
      'line 4: field 2 has a quote but does not begin with one; put the field in quotes and write the quote twice',
      [5, 'd', 'ok'],
      'line 6: field 1 goes on after its closing quote; a quote within a quoted field is written twice',
      [7, 'f', 'ok'],
      'line 8: field 2 goes on after its closing quote; a quote within a quoted field is written twice',
      [9, 'h', 'ok'],
    ]);
  });

  it('gives up one row for a quote that is never closed', () => {
    assert.deepEqual(read('csv', `${HEADER}a,x\nb,"y\nc,z\n`), [
      [2, 'a', 'x'],
      'line 3: the quote that opens field 2 is never closed',
      [4, 'c', 'z'],
    ]);
  });

  it('bounds a row, quoted or not, and goes on after it', () => {
    const long = 'x'.repeat(LONGEST_ROW);
    const file = `${HEADER}a,${long}\nb,"y\n${'c,z\n'.repeat(LONGEST_ROW / 4)}d,"${long}"\ne,z\n`;
    const expected = [
      'line 2: longer than 1 MiB; perhaps a quote is not closed',
      'line 3: longer than 1 MiB; perhaps a quote is not closed',
      ...Array.from({ length: LONGEST_ROW / 4 }, (_, index) => [index + 4, 'c', 'z']),
      `line ${LONGEST_ROW / 4 + 4}: longer than 1 MiB; perhaps a quote is not closed`,
      [LONGEST_ROW / 4 + 5, 'e', 'z'],
    ];
    const chunks = Array.from({ length: 100 }, (_, index) => index * 65_536);
    // A difference would be too long to print.
    assert.ok(isDeepStrictEqual(read('csv', file, chunks), expected));
    assert.ok(isDeepStrictEqual(read('csv', file), expected));
  });

  it('rejects a cell that is not UTF-8, if it is one that is needed', () => {
    const file = Buffer.concat([
      Buffer.from('svc_id,other,name\na,'),
      Buffer.from([0xe9]),
      Buffer.from(',caf\u00e9\nb,,caf'),
      Buffer.from([0xe9, 0x0a]),
    ]);
    assert.deepEqual(read('csv', file), [[2, 'a', 'café'], 'line 3: name is not valid UTF-8: "caf\\xe9"']);
  });

  it('finds columns in any order, between others, with white space around their names', () => {
    assert.deepEqual(read('csv', 'x, name ,"svc_id",x\n1,n,s,2\n'), [[2, 's', 'n']]);
  });

  it('says which column is missing, which is there twice, and that a file is empty', () => {
    assert.deepEqual(read('csv', 'id,name\na,b\n'), [
      'error: The file has no column svc_id. Its columns are "id", "name". Say which one is meant with --column svc_id=THEIRS.',
    ]);
    assert.deepEqual(read('csv', 'svc_id,name,name\na,b,c\n'), [
      'error: The header has the column "name" twice. Rename one of them.',
    ]);
    assert.deepEqual(read('csv', '\n\n'), ['error: The file is empty: it should begin with a header line.']);
    assert.deepEqual(read('csv', '"svc_id"x,name\n'), [
      'error: The header, line 1, is malformed: field 1 goes on after its closing quote; a quote within a quoted field is written twice.',
    ]);
  });
});

describe('import of TSV', () => {
  const HEADER = 'svc_id\tname\n';

  it('takes a quote for a character like any other, wherever it stands', () => {
    assert.deepEqual(read('tsv', `${HEADER}a\t"Heroes"\nb\t"Weird Al" Yankovic\nc\t7" single\nd\t"\n"e"\t""\n`), [
      [2, 'a', '"Heroes"'],
      [3, 'b', '"Weird Al" Yankovic'],
      [4, 'c', '7" single'],
      [5, 'd', '"'],
      [6, '"e"', '""'],
    ]);
    assert.deepEqual(read('tsv', 'svc_id\t"name"\na\tb\n'), [
      'error: The file has no column name. Its columns are "svc_id", "\\"name\\"". Say which one is meant with --column name=THEIRS.',
    ]);
  });

  it('reads the escapes that PostgreSQL writes, and \\N as an empty cell', () => {
    const cells: readonly (readonly [written: string, read: string])[] = [
      ['\\N', ''],
      ['', ''],
      ['\\t\\n\\r\\b\\f\\v\\\\', '\t\n\r\b\f\v\\'],
      ['\\\\N', '\\N'],
      ['\\\\n', '\\n'],
      ['\\\\\\n', '\\\n'],
      ['x\\Nx', 'x\\Nx'],
    ];
    for (const [written, name] of cells) assert.deepEqual(read('tsv', `${HEADER}a\t${written}\n`), [[2, 'a', name]]);
    assert.deepEqual(read('tsv', 'tab\\there\tsvc_id\n'), [
      'error: The file has no column name. Its columns are "tab\\there", "svc_id". Say which one is meant with --column name=THEIRS.',
    ]);
  });

  it('keeps a backslash that PostgreSQL would have doubled', () => {
    for (const name of ['AC\\DC', '\\', 'x\\', '\\.', '\\101', '\\x41', 'C:\\Windows']) {
      assert.deepEqual(read('tsv', `${HEADER}a\t${name}\r\n`), [[2, 'a', name]]);
    }
  });

  it('bounds a row, and says nothing of quotes', () => {
    assert.deepEqual(read('tsv', `${HEADER}a\t"${'x'.repeat(LONGEST_ROW)}\nb\ty\n`), [
      'line 2: longer than 1 MiB',
      [3, 'b', 'y'],
    ]);
  });
});

describe('import of TSV with quotes', () => {
  it('keeps what is quoted like CSV, takes a quote within a field as it is, and a backslash too', () => {
    const file = 'svc_id\t"name"\na\t"x\ty\n""z"""\nb\t7" single, "so called"\nc\t"\\t"\nd\t\\N\n';
    assert.deepEqual(read('quoted tsv', file), [
      [2, 'a', 'x\ty\n"z"'],
      [4, 'b', '7" single, "so called"'],
      [5, 'c', '\\t'],
      [6, 'd', '\\N'],
    ]);
  });
});

describe('import of NDJSON', () => {
  it('takes whole numbers for text, null and absence for empty, and passes over empty lines', () => {
    const file = '{"svc_id":"a","name":"x","other":[1]}\r\n\n{"svc_id":1917,"name":null}\n \n{"svc_id":"c"}';
    assert.deepEqual(read('ndjson', file), [
      [1, 'a', 'x'],
      [3, '1917', ''],
      [5, 'c', ''],
    ]);
  });

  it('reports each line that is no object, or has a value that cannot be used, and goes on', () => {
    const lines = [
      '{"svc_id":"a","name":"x"',
      '[1]',
      'null',
      '"a"',
      '{"svc_id":12345678901234567890,"name":"x"}',
      '{"svc_id":1.5,"name":"x"}',
      '{"svc_id":"a","name":{"en":"x"}}',
      '{"svc_id":"a","name":true}',
      '{"svc_id":"b","name":"ok"}',
    ];
    const [malformed, ...events] = read('ndjson', lines.join('\n'));
    assert.match(String(malformed), /^line 1: not JSON: /);
    assert.deepEqual(events, [
      'line 2: an array, expected an object',
      'line 3: null, expected an object',
      'line 4: a string, expected an object',
      'line 5: svc_id is a number that is not a whole one below 2^53, expected a string',
      'line 6: svc_id is a number that is not a whole one below 2^53, expected a string',
      'line 7: name is an object, expected a string',
      'line 8: name is true, expected a string',
      [9, 'b', 'ok'],
    ]);
  });

  it('rejects a line that is not UTF-8, and one longer than 1 MiB', () => {
    const invalid = Buffer.from('{"svc_id":"a","name":"\xe9"}\n', 'latin1');
    const long = Buffer.from(`{"svc_id":"b","name":"${'x'.repeat(LONGEST_ROW)}"}\n`);
    const file = Buffer.concat([invalid, long, Buffer.from('{"svc_id":"c","name":"ok"}\n')]);
    assert.deepEqual(read('ndjson', file, [invalid.length + 500_000, invalid.length + LONGEST_ROW + 10]), [
      'line 1: not valid UTF-8',
      'line 2: longer than 1 MiB',
      [3, 'c', 'ok'],
    ]);
  });

  it('stops when a required column is in none of the first 100 rows, or in none at all', () => {
    const missing =
      'error: The file has no column name. Its columns are "svc_id", "title". Say which one is meant with --column name=THEIRS.';
    const events = read('ndjson', '{"svc_id":"a","title":"x"}\n'.repeat(500));
    assert.deepEqual([events.length, events.at(-1)], [100, missing]);
    assert.deepEqual(read('ndjson', '{"svc_id":"a","title":"x"}\n'), [[1, 'a', ''], missing]);
    assert.deepEqual(read('ndjson', ''), []);
  });
});

describe('import in chunks', () => {
  const cuts = fc.array(fc.nat(), { maxLength: 20 });
  const pieces: Record<Format, readonly string[]> = {
    csv: ['a', 'é', '"', '""', ',', '\n', '\r', '\r\n', ' ', '"x"', 'a,b\n', '"a\n",b\r\n'],
    tsv: ['a', 'é', '"', '\\', '\\N', '\\\\', '\t', '\n', '\r', '\r\n', ' ', '"x"', 'a\tb\n', '\\na\tb\r\n'],
    'quoted tsv': ['a', 'é', '"', '""', '\t', '\n', '\r', '\r\n', ' ', '"x"', 'a\tb\n', '"a\r\n"\tb\r\n'],
    ndjson: ['{"svc_id":"é","name":"x"}', '{', '}', '"a"', '\n', '\r\n', '[]', ' '],
  };

  for (const format of ['csv', 'tsv', 'quoted tsv', 'ndjson'] as const) {
    it(`reads any ${format}, also malformed, the same however it is cut`, () => {
      const header = { csv: HEADER, tsv: 'svc_id\tname\r\n', 'quoted tsv': 'svc_id\tname\r\n', ndjson: '' }[format];
      const content = fc.array(fc.constantFrom(...pieces[format]), { maxLength: 30 }).map((parts) => parts.join(''));
      fc.assert(
        fc.property(content, cuts, (body, at) => {
          assert.deepEqual(read(format, header + body, at), read(format, header + body));
        }),
        { numRuns: 500 },
      );
    });

    it(`gives every line of any ${format} to one row at most, in order`, () => {
      const header = { csv: HEADER, tsv: 'svc_id\tname\n', 'quoted tsv': 'svc_id\tname\n', ndjson: '' }[format];
      const content = fc.array(fc.constantFrom(...pieces[format]), { maxLength: 30 }).map((parts) => parts.join(''));
      fc.assert(
        fc.property(content, (body) => {
          const lines = read(format, header + body)
            .filter((event) => Array.isArray(event) || String(event).startsWith('line '))
            .map((event) => (Array.isArray(event) ? Number(event[0]) : Number(/\d+/.exec(String(event))?.[0])));
          assert.deepEqual(
            lines,
            [...new Set(lines)].sort((a, b) => a - b),
          );
          const total = (header + body).split(/\r\n|\n|\r/).length;
          assert.ok(lines.every((line) => line >= 1 && line <= total));
        }),
        { numRuns: 300 },
      );
    });
  }
});
