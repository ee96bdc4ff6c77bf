import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { Progress } from '../../../src/platform/process/progress.js';
import { OperatorError, withAdvice } from '../../../src/errors.js';
import { isDatabaseUnavailable } from '../../../src/platform/postgres/errors.js';
import { eventually } from '../../support/eventually.js';
import { untilWaiting } from '../../support/postgres/until-waiting.js';
import { counts, testCatalogue, type TestCatalogue } from '../../support/catalog/importing.js';

/** A batch has 50,000 rows. */
const [TWO_BATCHES, FULL_BATCHES] = [55_000, 100_000];

function peopleFile(rows: number): string {
  return `svc_id,name\n${Array.from({ length: rows }, (_, index) => `p${index},Person ${index}\n`).join('')}`;
}

describe('an import', () => {
  const catalogue = testCatalogue({ each: true });

  async function assertNothingLeft() {
    const rows = await catalogue.query(`
      select (select count(*) from pg_class where relname like 'import\\_%') as tables,
             (select count(*) from pg_locks where locktype = 'advisory'
               and database = (select oid from pg_database where datname = current_database())) as locks`);
    assert.deepEqual(rows, [{ tables: 0, locks: 0 }]);
  }

  function interruptedWith(message: RegExp) {
    return (error: unknown) => {
      assert.ok(error instanceof OperatorError, String(error));
      assert.match(error.message, message);
      return true;
    };
  }

  it('writes nothing if it is interrupted while it waits for more of the file', async () => {
    const stop = new AbortController();
    const source = new PassThrough();
    source.write('svc_id,name\na,x\nb,y\n');
    const importing = catalogue.import(source, {
      kind: 'people',
      signal: stop.signal,
      onProgress: ({ rows }) => rows === 2 && stop.abort(),
    });
    await assert.rejects(importing, interruptedWith(/^Interrupted after reading 2 rows\. Nothing was written\.$/));
    assert.ok(source.destroyed);
    await assertNothingLeft();
    assert.equal((await catalogue.counts()).people, 0);
  });

  it('writes nothing if it is interrupted while it waits for another writer', async () => {
    const stop = new AbortController();
    await catalogue.db.transaction(async (writer) => {
      await writer('people').insert({ svc_id: 'z', name: 'Zoe' });
      const importing = assert.rejects(
        catalogue.import('svc_id,name\na,x\n', { kind: 'people', signal: stop.signal }),
        interruptedWith(/^Interrupted after reading 1 row\. Nothing was written\.$/),
      );
      await untilWaiting('the import waits for the lock', catalogue.db);
      stop.abort();
      await importing;
    });
    await assertNothingLeft();
    assert.equal((await catalogue.counts()).people, 1);
  });

  it('leaves whole batches if it is interrupted while it writes, and a second run completes it', async () => {
    const stop = new AbortController();
    const progress: Progress[] = [];
    const importing = catalogue.import(peopleFile(TWO_BATCHES), {
      kind: 'people',
      signal: stop.signal,
      onProgress: (report) => {
        if (report.phase === 'reading' || report.rows === 0) return;
        progress.push(report);
        stop.abort();
      },
    });
    await assert.rejects(importing, (error) => {
      assert.ok(error instanceof OperatorError, String(error));
      const written = progress[0]?.rows ?? 0;
      const count = written.toLocaleString('en-US');
      assert.equal(
        withAdvice(error),
        `Interrupted after writing ${count} of 55,000 rows: ${count} created, 0 updated, 0 unchanged. ` +
          'Run the import again to complete it.',
      );
      return true;
    });
    const written = progress[0]?.rows ?? 0;
    assert.equal(progress.length, 1);
    assert.ok(written > 0 && written < TWO_BATCHES);
    await assertNothingLeft();
    assert.equal((await catalogue.counts()).people, written);

    const { result } = await catalogue.import(peopleFile(TWO_BATCHES), { kind: 'people' });
    assert.deepEqual(result, counts({ rows: TWO_BATCHES, created: TWO_BATCHES - written, unchanged: written }));
    assert.equal((await catalogue.counts()).people, TWO_BATCHES);
  });

  it('leaves whole batches if it loses its connection, and a second run completes it', async () => {
    const file = peopleFile(FULL_BATCHES);
    let terminated: Promise<unknown> | undefined;
    const importing = catalogue.import(file, {
      kind: 'people',
      onProgress: ({ phase, rows }) => {
        if (phase === 'writing' && rows > 0)
          terminated ??= eventually('the second batch is terminated', terminateWriter);
      },
    });
    await assert.rejects(importing, isDatabaseUnavailable);
    await terminated;
    const { people } = await catalogue.counts();
    assert.ok(people > 0 && people < FULL_BATCHES, String(people));
    const { result } = await catalogue.import(file, { kind: 'people' });
    assert.deepEqual(result, counts({ rows: FULL_BATCHES, created: FULL_BATCHES - people, unchanged: people }));
  });

  async function terminateWriter(): Promise<boolean> {
    const rows = await catalogue.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'
          and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows.length === 1;
  }

  it('writes nothing if its source fails', async () => {
    const source = new PassThrough();
    source.write('svc_id,name\na,x\n');
    const importing = catalogue.import(source, {
      kind: 'people',
      onProgress: () => source.destroy(new Error('the disk is gone')),
    });
    await assert.rejects(importing, /^Error: the disk is gone$/);
    await assertNothingLeft();
    assert.equal((await catalogue.counts()).people, 0);
  });

  it('compares its rows with the commit of a writer that it waited for', async () => {
    let importing: ReturnType<TestCatalogue['import']> | undefined;
    await catalogue.db.transaction(async (writer) => {
      await writer('people').insert([
        { svc_id: 'a', name: 'Ada' },
        { svc_id: 'b', name: 'Bob' },
      ]);
      importing = catalogue.import('svc_id,name\na,Ada\nb,Rob\nc,Cy\n', { kind: 'people' });
      await untilWaiting('the import waits for the lock', catalogue.db);
    });
    assert.deepEqual((await importing)?.result, counts({ rows: 3, created: 1, updated: 1, unchanged: 1 }));
  });

  it('takes turns with other writers', async () => {
    let others = 0;
    const writing: Promise<unknown>[] = [];
    const { result } = await catalogue.import(peopleFile(TWO_BATCHES), {
      kind: 'people',
      onProgress: ({ phase, rows }) => {
        if (phase === 'writing' && rows > 0 && rows < TWO_BATCHES) {
          writing.push(
            catalogue
              .db('people')
              .insert({ svc_id: `other-${others++}`, name: 'Other' })
              .then(() => undefined),
          );
        }
      },
    });
    await Promise.all(writing);
    assert.deepEqual(result, counts({ rows: TWO_BATCHES, created: TWO_BATCHES }));
    assert.ok(others > 0);
    assert.equal((await catalogue.counts()).people, TWO_BATCHES + others);
  });
});
