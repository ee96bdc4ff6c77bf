import assert from 'node:assert/strict';
import { COLUMNS, type Columns } from '../../src/catalog/columns.js';
import type { Format } from '../../src/catalog/import/index.js';
import { counts, openCatalogue, type Outcome, type TestCatalogue } from '../support/catalog/importing.js';

/** Columns that a later version might add, of each type that an optional one may have. */
const KNOWN: Columns = {
  ...COLUMNS,
  titles: [
    ...COLUMNS.titles,
    { name: 'tagline', type: 'text', required: false },
    { name: 'seasons', type: 'integer', required: false },
    { name: 'released', type: 'date', required: false },
    { name: 'adult', type: 'boolean', required: false },
  ],
};

describe('import into optional columns of any type', () => {
  let catalogue: TestCatalogue;

  before(async () => {
    catalogue = await openCatalogue();
    await catalogue.query(
      `alter table titles add tagline text, add seasons integer default 1, add released date,
                          add adult boolean default true`,
    );
  });

  after(() => catalogue.close());

  function importText(text: string, format: Format = 'csv'): Promise<Outcome> {
    return catalogue.import(text, { format, known: KNOWN });
  }

  async function stored(id: string): Promise<unknown> {
    const query = `select tagline, seasons, released::text, adult from titles where svc_id = '${id}'`;
    return (await catalogue.query(query))[0];
  }

  it('writes the values, and the defaults of the table where a new row has none', async () => {
    const outcome = await importText(
      'svc_id,media_type,title,tagline,seasons,released,adult\n' +
        'full,series,T,Only the brave,-2147483648,1982-06-25,no\n' +
        'bare,movie,T,,,,\n',
    );
    assert.deepEqual(outcome, { result: counts({ rows: 2, created: 2 }), rejected: [] });
    assert.deepEqual(await stored('full'), {
      tagline: 'Only the brave',
      seasons: -(2 ** 31),
      released: '1982-06-25',
      adult: false,
    });
    assert.deepEqual(await stored('bare'), { tagline: null, seasons: 1, released: null, adult: true });
  });

  it('leaves what the catalogue has where a cell is empty, and finds a row unchanged that says the same', async () => {
    const before = await stored('full');
    const same = await importText(
      'svc_id,media_type,title,tagline,seasons,released\nfull,series,T,,,\nbare,movie,T,,1,\n',
    );
    assert.deepEqual(same.result, counts({ rows: 2, unchanged: 2 }));
    assert.deepEqual(await stored('full'), before);
    const changed = await importText('{"svc_id":"full","media_type":"series","title":"T","seasons":7}\n', 'ndjson');
    assert.deepEqual(changed.result, counts({ rows: 1, updated: 1 }));
    assert.deepEqual(await stored('full'), { ...(before as object), seasons: 7 });
  });

  it('rejects what the column cannot hold, with the reason', async () => {
    const { rejected } = await importText(
      'svc_id,media_type,title,seasons,released\n' +
        'a,movie,T,2147483648,\nb,movie,T,1.5,\nc,movie,T,,2001-02-30\nd,movie,T,,0000-01-01\ne,movie,T,,1/2/2001\n',
    );
    const range = 'expected a whole number from -2147483648 to 2147483647';
    const day = 'expected a day such as 1982-06-25';
    assert.deepEqual(rejected, [
      `line 2: seasons is "2147483648", ${range}`,
      `line 3: seasons is "1.5", ${range}`,
      `line 4: released is "2001-02-30", ${day}`,
      `line 5: released is "0000-01-01", ${day}`,
      `line 6: released is "1/2/2001", ${day}`,
    ]);
  });
});
