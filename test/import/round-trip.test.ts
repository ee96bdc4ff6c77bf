import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Format } from '../../src/catalog/import/index.js';
import { counts, openCatalogue, type StoredTitle, type TestCatalogue } from './importing.js';

const COLUMNS = ['svc_id', 'media_type', 'title', 'has_bundles', 'available_in_library'] as const;

/** Text that PostgreSQL stores and that is not blank, with all that has a meaning in some format on the way. */
const text = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
    fc.string({
      unit: fc.constantFrom('"', ',', '\t', '\n', '\r', '\\', 'N', '.', "'", '{', ' ', 'é', '😀', '\ufeff'),
    }),
    fc.string({ unit: 'binary', minLength: 1000, maxLength: 1000 }),
  )
  .filter((value) => value.trim() !== '' && !/[\0\p{Cs}]/u.test(value));

const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,50}$/);

const titles = fc.uniqueArray(
  fc.record<StoredTitle>({
    svc_id: id,
    media_type: fc.constantFrom('movie', 'series'),
    title: text,
    has_bundles: fc.boolean(),
    available_in_library: fc.boolean(),
  }),
  { selector: ({ svc_id }) => svc_id, maxLength: 20 },
);

function write(format: Format, rows: readonly StoredTitle[]): string {
  if (format === 'ndjson') return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const delimiter = format === 'csv' ? ',' : '\t';
  const field = (value: string | boolean) => `"${String(value).replaceAll('"', '""')}"`;
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

  for (const format of ['csv', 'tsv', 'ndjson'] as const) {
    it(`stores exactly what the ${format} says, in its order, and again changes nothing`, async () => {
      await fc.assert(
        fc.asyncProperty(titles, async (generated) => {
          // Titles cannot be removed, so each run has ids of its own.
          const prefix = `${++run}_`;
          const rows = generated.map((row) => ({ ...row, svc_id: prefix + row.svc_id }));
          const content = write(format, rows);
          const first = await catalogue.import(content, { format });
          assert.deepEqual(first, { result: counts({ rows: rows.length, created: rows.length }), rejected: [] });
          const stored = (await catalogue.titles()).filter(({ svc_id }) => svc_id.startsWith(prefix));
          assert.deepEqual(stored, rows);
          const feed = await catalogue.feed();
          const second = await catalogue.import(content, { format });
          assert.deepEqual(second, { result: counts({ rows: rows.length, unchanged: rows.length }), rejected: [] });
          assert.deepEqual(await catalogue.feed(), feed);
        }),
        { numRuns: 30 },
      );
    });
  }
});
