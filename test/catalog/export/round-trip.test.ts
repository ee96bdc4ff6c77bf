import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { to as copyTo } from 'pg-copy-streams';
import { withSession } from '../../../src/catalog/session.js';
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { anyTitles } from '../../support/catalog/any-titles.js';
import { counts, STORED_COLUMNS, testCatalogue, type StoredTitle } from '../../support/catalog/importing.js';
import { LONG } from '../../support/catalog/chance.js';
import { eventually } from '../../support/eventually.js';
import { exportText } from './exporting.js';

/** The escapes that PostgreSQL writes. */
const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

const escaped = (value: string): string => value.replace(/[\\\b\f\n\r\t\v]/g, (character) => ESCAPES[character] ?? '');
const quoted = (value: string): string => `"${value.replaceAll('"', '""')}"`;

/** Write rows like other programs. */
const WRITERS = {
  csv: (rows: readonly StoredTitle[]) => writeLines(rows, ',', quoted),
  tsv: (rows: readonly StoredTitle[]) => writeLines(rows, '\t', escaped),
  ndjson: (rows: readonly StoredTitle[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
};

function writeLines(rows: readonly StoredTitle[], delimiter: string, write: (value: string) => string): string {
  const cell = (value: string | boolean | null): string => write(String(value ?? ''));
  const lines = [STORED_COLUMNS, ...rows.map((row) => STORED_COLUMNS.map((column) => cell(row[column])))];
  return lines.map((line) => `${line.join(delimiter)}\r\n`).join('');
}

describe('a catalogue of any titles', () => {
  const [catalogue, other] = [testCatalogue(), testCatalogue()];
  let run = 0;

  /** Checks a property of any titles. They cannot be removed, so each run has ids of its own. */
  function forAnyTitles(check: (rows: readonly StoredTitle[]) => Promise<void>): Promise<void> {
    const property = fc.asyncProperty(anyTitles, async (generated) => {
      const prefix = `${++run}_`;
      await check(generated.map((row) => ({ ...row, svc_id: prefix + row.svc_id })));
    });
    return fc.assert(property, { numRuns: 5 * LONG });
  }

  for (const format of ['csv', 'tsv', 'ndjson'] as const) {
    const write = WRITERS[format];

    it(`is imported exactly from ${format}, in the order of the file, and a second import changes nothing`, () =>
      forAnyTitles(async (rows) => {
        const first = await catalogue.import(write(rows), { format });
        assert.deepEqual(first, { result: counts({ rows: rows.length, created: rows.length }), rejected: [] });
        assert.deepEqual((await catalogue.titles()).slice(-rows.length || Infinity), rows);
        const feed = await catalogue.feed();
        const second = await catalogue.import(write(rows), { format });
        assert.deepEqual(second.result, counts({ rows: rows.length, unchanged: rows.length }));
        assert.deepEqual(await catalogue.feed(), feed);
      }));
  }

  it('is exported and imported elsewhere exactly, in the same order', () =>
    forAnyTitles(async (rows) => {
      await catalogue.import(WRITERS.ndjson(rows), { format: 'ndjson' });
      const exported = await exportText(catalogue.db);
      const titles = await catalogue.titles();
      assert.equal(exported.rows, titles.length);
      assert.deepEqual((await other.import(exported.text, { format: 'ndjson' })).rejected, []);
      assert.deepEqual(await other.titles(), titles);
    }));

  for (const [format, options] of [
    ['csv', 'csv, header true'],
    ['tsv', 'text, header true'],
  ] as const) {
    it(`is imported exactly from the ${format.toUpperCase()} that PostgreSQL writes`, () =>
      forAnyTitles(async (rows) => {
        await catalogue.import(WRITERS.ndjson(rows), { format: 'ndjson' });
        const sql = `copy (select ${STORED_COLUMNS.join()} from titles order by updated_at) to stdout (format ${options})`;
        const text = await withSession(catalogue.db, undefined, (session) => buffer(session.query(copyTo(sql))));
        assert.deepEqual((await other.import(text, { format })).rejected, []);
        assert.deepEqual(await other.titles(), await catalogue.titles());
      }));
  }
});

describe('an export', () => {
  const catalogue = testCatalogue();

  it('has people and collections sorted by their ids, and no position', async () => {
    const expected =
      '{"svc_id":"B","name":"two\\nlines"}\n{"svc_id":"a","name":"Ada\\\\n"}\n{"svc_id":"b","name":"Bob, \\"the\\" 2nd"}\n';
    for (const kind of ['people', 'collections'] as const) {
      await catalogue.import('svc_id,name\nb,"Bob, ""the"" 2nd"\na,Ada\\n\nB,"two\nlines"\n', { kind });
      const { rows, position, text } = await exportText(catalogue.db, { kind });
      assert.deepEqual([rows, position, text], [3, undefined, expected]);
    }
    const { rows, text } = await exportText(catalogue.db);
    assert.deepEqual([rows, text], [0, '']);
  });

  it('fails if its connection is cut in the middle of a row', async () => {
    await catalogue.query("insert into people select 'p' || i, repeat('x', 1000) from generate_series(1, 20000) i");
    let cut = 0;
    const exporting = exportText(catalogue.db, { kind: 'people' }, async () => {
      if (cut > 0) return;
      // The remaining rows fill all buffers, so the server is in the middle of sending.
      cut = await eventually('the export waits for its reader', async () => {
        const found = await catalogue.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'ClientWrite' and query like 'copy %'",
        );
        return found.length > 0 ? found.length : false;
      });
    });
    await assert.rejects(exporting, isDatabaseUnavailable);
    assert.equal(cut, 1);
  });
});
