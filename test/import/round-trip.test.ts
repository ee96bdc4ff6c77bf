import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { to as copyTo } from 'pg-copy-streams';
import type { Format } from '../../src/catalog/import/index.js';
import { withSession } from '../../src/catalog/session.js';
import { counts, openCatalogue, type StoredTitle, type TestCatalogue } from '../support/catalog/importing.js';
import { anyTitles } from '../support/catalog/any-titles.js';

const COLUMNS = ['svc_id', 'media_type', 'title', 'has_bundles', 'available_in_library'] as const;

type Written = Format | 'quoted tsv';

/** As PostgreSQL writes them. */
const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};

function write(format: Written, rows: readonly StoredTitle[]): string {
  if (format === 'ndjson') return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const delimiter = format === 'csv' ? ',' : '\t';
  const field = (value: string | boolean): string =>
    format === 'tsv'
      ? String(value).replace(/[\\\b\f\n\r\t\v]/g, (character) => ESCAPES[character] ?? '')
      : `"${String(value).replaceAll('"', '""')}"`;
  const lines = [COLUMNS, ...rows.map((row) => COLUMNS.map((column) => field(row[column])))];
  return lines.map((line) => `${line.join(delimiter)}\r\n`).join('');
}

describe('import of any titles', () => {
  let catalogue: TestCatalogue;
  let run = 0;

  before(async () => {
    catalogue = await openCatalogue();
  });

  after(async () => {
    await catalogue.close();
  });

  for (const written of ['csv', 'tsv', 'quoted tsv', 'ndjson'] as const) {
    const format = written === 'quoted tsv' ? 'tsv' : written;
    const options = { format, quotedTsv: written === 'quoted tsv' };

    it(`stores exactly what the ${written} says, in its order, and again changes nothing`, async () => {
      await fc.assert(
        fc.asyncProperty(anyTitles, async (generated) => {
          // Titles cannot be removed, so each run has ids of its own.
          const prefix = `${++run}_`;
          const rows = generated.map((row) => ({ ...row, svc_id: prefix + row.svc_id }));
          const content = write(written, rows);
          const first = await catalogue.import(content, options);
          assert.deepEqual(first, { result: counts({ rows: rows.length, created: rows.length }), rejected: [] });
          const stored = (await catalogue.titles()).filter(({ svc_id }) => svc_id.startsWith(prefix));
          assert.deepEqual(stored, rows);
          const feed = await catalogue.feed();
          const second = await catalogue.import(content, options);
          assert.deepEqual(second, { result: counts({ rows: rows.length, unchanged: rows.length }), rejected: [] });
          assert.deepEqual(await catalogue.feed(), feed);
        }),
        { numRuns: 30 },
      );
    });
  }

  it('reads the TSV that PostgreSQL writes as the titles that it wrote', async () => {
    const other = await openCatalogue();
    try {
      await fc.assert(
        fc.asyncProperty(anyTitles, async (generated) => {
          const prefix = `${++run}_`;
          await catalogue.import(
            write(
              'ndjson',
              generated.map((row) => ({ ...row, svc_id: prefix + row.svc_id })),
            ),
            {
              format: 'ndjson',
            },
          );
          const { rejected } = await other.import(await copyOut(catalogue), { format: 'tsv' });
          assert.deepEqual(rejected, []);
          assert.deepEqual(await other.titles(), await catalogue.titles());
        }),
        { numRuns: 20 },
      );
    } finally {
      await other.close();
    }
  });
});

function copyOut({ db }: TestCatalogue): Promise<Buffer> {
  const sql = `copy (select ${COLUMNS.join(', ')} from titles order by updated_at) to stdout (format text, header true)`;
  return withSession(db, undefined, (session) => buffer(session.query(copyTo(sql))));
}
