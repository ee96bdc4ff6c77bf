import assert from 'node:assert/strict';
import { toSeconds, type Micros } from '../../../src/platform/time/micros.js';
import { startService, type TestService } from '../../support/service.js';
import { addTitles, changesOf } from '../../support/titles.js';

/** What a writer may change of a title, and the change. */
const COLUMNS: Readonly<Record<string, string>> = {
  media_type: "'series'",
  title: "title || ' 2'",
  has_bundles: 'not has_bundles',
  available_in_library: 'not available_in_library',
};

/** Columns that stay as they are, or that the database sets. */
const OTHERS = ['svc_id', 'created_at', 'updated_at'];

describe('an update of one column alone', () => {
  let service: TestService;
  let position: number;

  before(async () => {
    service = await startService();
    await addTitles(service.db, 3);
    position = toSeconds(BigInt(Date.now()) * 1000n - (3_600_000_000n satisfies Micros));
    position = (await following()).position;
  });

  after(() => service.stop());

  /** What a follower is given since it last asked. */
  async function following(): Promise<{ entries: readonly object[]; position: number }> {
    const { data, meta } = changesOf(await service.get(`/api/v1/changes?since=${position}`));
    return { entries: data, position: meta.next_since };
  }

  it('is tested here for every column that there is', async () => {
    const columns = await service
      .db('information_schema.columns')
      .where({ table_name: 'titles' })
      .pluck<string[]>('column_name');
    assert.deepEqual(columns.sort(), [...Object.keys(COLUMNS), ...OTHERS].sort());
  });

  for (const [column, change] of Object.entries(COLUMNS)) {
    it(`of ${column} is a change, with a stamp of its own`, async () => {
      const { rowCount } = await service.db.raw<{ rowCount: number }>(
        `update titles set ${column} = ${change} where svc_id = 'title-0001'`,
      );
      assert.equal(rowCount, 1);
      const { entries, position: next } = await following();
      const { svc_id, media_type, title, updated_at, has_bundles } = (await service
        .db('titles')
        .where({ svc_id: 'title-0001' })
        .first()) as Record<string, unknown>;
      assert.deepEqual(entries, [{ svc_id, media_type, title, updated_at, has_bundles }]);
      assert.ok(next > position);
      position = next;
      assert.deepEqual((await following()).entries, []);
    });
  }
});
