import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isDatabaseUnavailable } from '../../src/platform/postgres/errors.js';
import { eventually } from '../support/eventually.js';
import { counts, openCatalogue, type TestCatalogue } from '../support/catalog/importing.js';
import { anyTitles } from '../support/catalog/any-titles.js';
import { exportText } from './exporting.js';

describe('export of any titles', () => {
  let catalogue: TestCatalogue;
  let other: TestCatalogue;
  let run = 0;

  before(async () => {
    catalogue = await openCatalogue();
    other = await openCatalogue();
  });

  after(async () => {
    await other.close();
    await catalogue.close();
  });

  for (const format of ['csv', 'ndjson'] as const) {
    it(`to ${format} and import elsewhere gives the same titles in the same order`, async () => {
      await fc.assert(
        fc.asyncProperty(anyTitles, async (generated) => {
          // Titles cannot be removed, so each run has ids of its own.
          const prefix = `${++run}_`;
          const lines = generated.map((row) => `${JSON.stringify({ ...row, svc_id: prefix + row.svc_id })}\n`);
          await catalogue.import(lines.join(''), { format: 'ndjson' });
          const { rows, text } = await exportText(catalogue.db, { format });
          const titles = await catalogue.titles();
          assert.equal(rows, titles.length);
          const { result, rejected } = await other.import(text, { format });
          assert.deepEqual([result.rows, rejected], [rows, []]);
          assert.deepEqual(await other.titles(), titles);
        }),
        { numRuns: 20 },
      );
    });

    it(`to ${format} gives people and collections by their ids`, async () => {
      for (const kind of ['people', 'collections'] as const) {
        await catalogue.import('svc_id,name\nb,"Bob, ""the"" 2nd"\na,Ada\\n\nB,"two\nlines"\n', { kind });
        const { rows, position, text } = await exportText(catalogue.db, { kind, format });
        assert.deepEqual([rows, position], [3, undefined]);
        assert.equal(
          text,
          format === 'csv'
            ? 'svc_id,name\nB,"two\nlines"\na,Ada\\n\nb,"Bob, ""the"" 2nd"\n'
            : '{"svc_id":"B","name":"two\\nlines"}\n{"svc_id":"a","name":"Ada\\\\n"}\n{"svc_id":"b","name":"Bob, \\"the\\" 2nd"}\n',
        );
        const { result } = await other.import(text, { kind, format });
        assert.equal(result.rows, 3);
        assert.equal(result.rejected, 0);
      }
    });
  }

  it('of an empty catalogue is a file that an import takes', async () => {
    const empty = await openCatalogue();
    try {
      const csv = await exportText(empty.db);
      assert.deepEqual([csv.rows, csv.text], [0, 'svc_id,media_type,title,has_bundles,available_in_library\n']);
      assert.deepEqual((await empty.import(csv.text)).result, counts({}));
      assert.equal((await exportText(empty.db, { format: 'ndjson' })).text, '');
    } finally {
      await empty.close();
    }
  });

  it('fails when its connection is cut in the middle of a row, however much has come', async () => {
    await other.query("insert into people select 'p' || i, repeat('x', 1000) from generate_series(1, 40000) i");
    const pids: number[] = [];
    const exporting = exportText(other.db, { kind: 'people' }, async () => {
      if (pids.length > 0) return;
      // The rest fills all buffers on the way, so the server is in the midst of sending.
      const rows = await eventually('the export waits for its reader', async () => {
        const found = await other.query(
          "select pid from pg_stat_activity where wait_event = 'ClientWrite' and query like 'copy %'",
        );
        return found.length > 0 ? found : false;
      });
      pids.push(...(rows as { pid: number }[]).map(({ pid }) => pid));
      await other.query(`select pg_terminate_backend(${pids.join()})`);
    });
    await assert.rejects(exporting, isDatabaseUnavailable);
    assert.equal(pids.length, 1);
  });
});
