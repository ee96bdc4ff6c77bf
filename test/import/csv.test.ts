import assert from 'node:assert/strict';
import { CSV, CsvReader } from '../../src/catalog/import/csv.js';
import { mapColumns } from '../../src/catalog/import/mapping.js';
import { LONGEST_ROW } from '../../src/catalog/import/reader.js';
import { readRows, type Format } from './reading.js';

const AFTER = 'goes on after its closing quote; a quote within a quoted field is written twice';
const WITHIN = 'has a quote but does not begin with one; put the field in quotes and write the quote twice';

const CASES: readonly (readonly [what: string, format: Format, body: string, events: readonly unknown[]])[] = [
  ['one row', 'csv', 'a,x\n', [[2, 'a', 'x']]],
  ['a last line without an end', 'csv', 'a,x', [[2, 'a', 'x']]],
  ['a last line of an empty cell', 'csv', 'a,', [[2, 'a', '']]],
  ['a carriage return at the end of the file', 'csv', 'a,x\r', [[2, 'a', 'x']]],
  [
    'line ends of three kinds',
    'csv',
    'a,1\nb,2\rc,3\r\nd,4',
    [
      [2, 'a', '1'],
      [3, 'b', '2'],
      [4, 'c', '3'],
      [5, 'd', '4'],
    ],
  ],
  ['empty lines of three kinds', 'csv', '\n\r\r\n\na,x', [[6, 'a', 'x']]],
  ['a line feed before a carriage return', 'csv', '\n\ra,x', [[4, 'a', 'x']]],
  ['a line of a blank', 'csv', ' \na,x', ['line 2: 1 fields, but the header has 2', [3, 'a', 'x']]],
  ['a line of an empty quoted field', 'csv', '""\na,x', ['line 2: 1 fields, but the header has 2', [3, 'a', 'x']]],
  ['a line of a delimiter', 'csv', ',\n', [[2, '', '']]],
  [
    'a field too few and one too many',
    'csv',
    'a\nb,x,y\nc,z',
    ['line 2: 1 fields, but the header has 2', 'line 3: 3 fields, but the header has 2', [4, 'c', 'z']],
  ],
  ['quoted fields', 'csv', '"a","x"\n', [[2, 'a', 'x']]],
  ['quoted fields at the end of the file', 'csv', '"a","x"', [[2, 'a', 'x']]],
  [
    'quoted fields before a carriage return',
    'csv',
    '"a","x"\rb,y',
    [
      [2, 'a', 'x'],
      [3, 'b', 'y'],
    ],
  ],
  [
    'quoted fields before both',
    'csv',
    '"a","x"\r\nb,y',
    [
      [2, 'a', 'x'],
      [3, 'b', 'y'],
    ],
  ],
  ['an empty quoted field', 'csv', '"",""\n', [[2, '', '']]],
  [
    'doubled quotes',
    'csv',
    '"""a""","""",\n"""","a""b"\n',
    ['line 2: 3 fields, but the header has 2', [3, '"', 'a"b']],
  ],
  ['three pairs of quotes', 'csv', '"a""b""c","""x"""', [[2, 'a"b"c', '"x"']]],
  ['a delimiter within quotes', 'csv', '"a,b",x', [[2, 'a,b', 'x']]],
  [
    'line breaks within quotes',
    'csv',
    '"a\nb","x\r\ny\rz"\r\nc,w',
    [
      [2, 'a\nb', 'x\r\ny\rz'],
      [6, 'c', 'w'],
    ],
  ],
  [
    'a carriage return alone within quotes',
    'csv',
    '"a\rb",x\nc,w',
    [
      [2, 'a\rb', 'x'],
      [4, 'c', 'w'],
    ],
  ],
  [
    'a line feed alone within quotes',
    'csv',
    '"a\nb",x\nc,w',
    [
      [2, 'a\nb', 'x'],
      [4, 'c', 'w'],
    ],
  ],
  ['a backslash', 'csv', '\\N,\\t', [[2, '\\N', '\\t']]],
  ['a tab', 'csv', 'a\tb,x', [[2, 'a\tb', 'x']]],
  ['characters near the delimiter', 'csv', "!#$%&'()*+,-./", [[2, "!#$%&'()*+", '-./']]],
  ['letters outside ASCII', 'csv', 'é,"日本 𝄞"', [[2, 'é', '日本 𝄞']]],
  ['text after a closing quote', 'csv', '"a"b,x\nc,y', [`line 2: field 1 ${AFTER}`, [3, 'c', 'y']]],
  ['a blank after a closing quote', 'csv', 'a,"x" \nc,y', [`line 2: field 2 ${AFTER}`, [3, 'c', 'y']]],
  ['a quote within a field', 'csv', 'a"b,x\nc,y', [`line 2: field 1 ${WITHIN}`, [3, 'c', 'y']]],
  ['a quote behind a blank', 'csv', 'a, "x"\nc,y', [`line 2: field 2 ${WITHIN}`, [3, 'c', 'y']]],
  ['a quote within the last field', 'csv', 'a,x"', [`line 2: field 2 ${WITHIN}`]],
  ['a malformed row before a carriage return', 'csv', '"a"b\rc,y', [`line 2: field 1 ${AFTER}`, [3, 'c', 'y']]],
  ['a malformed row before both', 'csv', '"a"b\r\nc,y', [`line 2: field 1 ${AFTER}`, [3, 'c', 'y']]],
  ['a malformed row at the end of the file', 'csv', '"a"b\r', [`line 2: field 1 ${AFTER}`]],
  [
    'two malformed rows',
    'csv',
    'a"\nb"\nc,y',
    [`line 2: field 1 ${WITHIN}`, `line 3: field 1 ${WITHIN}`, [4, 'c', 'y']],
  ],
  [
    'a malformed row that began a line above',
    'csv',
    '"a\nb"c,x\nd,y',
    [`line 2: field 1 ${AFTER}`, `line 3: field 1 ${WITHIN}`, [4, 'd', 'y']],
  ],
  [
    'a quote that never closes',
    'csv',
    '"a\nb,y\n',
    ['line 2: the quote that opens field 1 is never closed', [3, 'b', 'y']],
  ],
  [
    'a quote that never closes in the second field',
    'csv',
    'a,"',
    ['line 2: the quote that opens field 2 is never closed'],
  ],
  [
    'a quote that is doubled and never closes',
    'csv',
    'a,"x""',
    ['line 2: the quote that opens field 2 is never closed'],
  ],
  ['a quote in TSV', 'tsv', '"a\t"x"y\n', [[2, '"a', '"x"y']]],
  ['a comma in TSV', 'tsv', 'a,b\tx,y\n', [[2, 'a,b', 'x,y']]],
  ['escapes in TSV', 'tsv', '\\N\ta\\tb\n', [[2, '', 'a\tb']]],
  ['every escape of TSV', 'tsv', '\\\\N\t\\b\\f\\n\\r\\t\\v\\\\\\x', [[2, '\\N', '\b\f\n\r\t\v\\\\x']]],
  ['an empty line of TSV', 'tsv', '\na\tx', [[3, 'a', 'x']]],
  ['a line of a quote in TSV', 'tsv', '"\na\tx', ['line 2: 1 fields, but the header has 2', [3, 'a', 'x']]],
  ['quotes in TSV that has them', 'quoted tsv', '"a\tb"\t7" x\n', [[2, 'a\tb', '7" x']]],
  ['escapes in TSV that has quotes', 'quoted tsv', '\\N\t\\t', [[2, '\\N', '\\t']]],
];

function headerOf(format: Format): string {
  return format === 'csv' ? 'svc_id,name\n' : 'svc_id\tname\n';
}

describe('rows of text', () => {
  for (const [what, format, body, events] of CASES) {
    it(`are read, whole or byte by byte: ${what}`, () => {
      const file = headerOf(format) + body;
      assert.deepEqual(readRows(format, file), events);
      const everyByte = Array.from({ length: Buffer.byteLength(file) }, (_, index) => index);
      assert.deepEqual(readRows(format, file, everyByte), events);
      for (const cut of everyByte) assert.deepEqual(readRows(format, file, [cut]), events);
    });
  }

  for (const [what, file, error] of [
    ['no header', '', 'The file is empty: it should begin with a header line.'],
    ['empty lines alone', '\n\r\n', 'The file is empty: it should begin with a header line.'],
    [
      'a header that goes on after its quote',
      '\n"svc_id"x,name\n',
      'The header, line 2, is malformed: field 1 goes on after its closing quote; a quote within a quoted field is written twice.',
    ],
    [
      'a header whose quote never closes',
      'svc_id,"name\n',
      'The header, line 1, is malformed: the quote that opens field 2 is never closed.',
    ],
  ] as const) {
    it(`are refused with their file where it has no sound header: ${what}`, () => {
      assert.deepEqual(readRows('csv', file), [`error: ${error}`]);
    });
  }

  it('may have a header of one line alone, without its end', () => {
    assert.deepEqual(readRows('csv', 'svc_id,name'), []);
  });

  it('are refused where the header is not UTF-8', () => {
    assert.deepEqual(readRows('csv', Buffer.from('svc_id,n\xe9me\n', 'latin1')), [
      'error: The header is not valid UTF-8: "n\\xe9me"',
    ]);
  });

  it('name the column that is not UTF-8, and go on after it', () => {
    const bytes = Buffer.from('svc_id,name\n\xe9,x\na,\xff\x00\nb,y\n', 'latin1');
    assert.deepEqual(readRows('csv', bytes), [
      'line 2: svc_id is not valid UTF-8: "\\xe9"',
      'line 3: name is not valid UTF-8: "\\xff\\x00"',
      [4, 'b', 'y'],
    ]);
  });

  it('are found by the names of the header, in any order and without blanks around', () => {
    assert.deepEqual(readRows('csv', 'name,other, svc_id \nx,y,a\n'), [[2, 'a', 'x']]);
  });

  it('may be as long as 1 MiB, with their end, and not one byte longer', () => {
    const longest = 'x'.repeat(LONGEST_ROW - 'a,\n'.length);
    assert.deepEqual(readRows('csv', `svc_id,name\na,"${longest.slice(2)}"\nb,y\n`), [
      [2, 'a', longest.slice(2)],
      [3, 'b', 'y'],
    ]);
    assert.deepEqual(readRows('csv', `svc_id,name\na,"${longest.slice(1)}"\nb,y\n`), [
      'line 2: longer than 1 MiB; perhaps a quote is not closed',
      [3, 'b', 'y'],
    ]);
    assert.deepEqual(readRows('tsv', `svc_id\tname\na\t${longest}x\nb\ty\n`, [LONGEST_ROW + 1_000]), [
      'line 2: longer than 1 MiB',
      [3, 'b', 'y'],
    ]);
  });

  for (const [what, pushed, events] of [
    ['lines that end in LF', 'a,x\nb,y\nc', ['2: a', '3: b']],
    ['lines that end in CRLF', 'a,x\r\nb,y\r\nc', ['2: a', '3: b']],
    ['lines that end in CR', 'a,x\rb,y\rc', ['2: a', '3: b']],
    ['a malformed row, and LF', 'a"\nb,y\nc', ['2: malformed', '3: b']],
    ['a malformed row, and CRLF', 'a"\r\nb,y\r\nc', ['2: malformed', '3: b']],
    ['a malformed row, and CR', 'a"\rb,y\rc', ['2: malformed', '3: b']],
    ['a quote that is open for 1 MiB', `a,"${'x'.repeat(LONGEST_ROW)}`, ['2: malformed']],
  ] as const) {
    it(`are handed on as soon as they are whole: ${what}`, () => {
      const seen: string[] = [];
      const reader = new CsvReader(
        mapColumns('people', {}),
        {
          row: ([id = ''], line) => seen.push(`${line}: ${id}`),
          unusable: (line) => seen.push(`${line}: malformed`),
        },
        CSV,
      );
      reader.push(Buffer.from(`svc_id,name\n${pushed}`));
      assert.deepEqual(seen, events);
    });
  }

  it('are as long as they are, wherever in the file they begin', () => {
    const half = 'x'.repeat(600_000);
    const before = `svc_id,name\na,"${half}"\n`;
    assert.deepEqual(readRows('csv', `${before}b,"${half}"\n"c"d\n`, [before.length + half.length]), [
      [2, 'a', half],
      [3, 'b', half],
      `line 4: field 1 ${AFTER}`,
    ]);
  });

  it('hold no more than 1 MiB of a quote that is never closed', () => {
    const file = `svc_id,name\na,"${'x'.repeat(LONGEST_ROW)}`;
    assert.deepEqual(readRows('csv', `${file}\nb,y\n`, [file.length, file.length + 1]), [
      'line 2: longer than 1 MiB; perhaps a quote is not closed',
      [3, 'b', 'y'],
    ]);
  });
});
