import assert from 'node:assert/strict';
import { createClient } from '../../src/follower/client.js';
import { follow } from '../../src/follower/follow.js';
import { startService, type TestService } from '../support/service.js';
import { Mirror, toMicros } from './model/mirror.js';

/** What the documentation says: how long before a full copy a mirror begins to follow, in seconds. */
const MARGIN = 3_600;

describe('a mirror that begins with a full copy', () => {
  let service: TestService;

  beforeEach(async () => {
    service = await startService();
  });

  afterEach(() => service.stop());

  /** Follows from so long before the copy, which is made while a writer has written and not yet committed. */
  async function mirrorFrom(margin: number): Promise<Mirror> {
    await service.db('titles').insert({ svc_id: 'a', media_type: 'movie', title: 'At first' });
    const writer = await service.db.transaction();
    await writer('titles').where({ svc_id: 'a' }).update({ title: 'Changed' });
    const { rows } = await service.db.raw<{ rows: [{ at: number }] }>(
      'select extract(epoch from clock_timestamp())::float8 as at',
    );
    const since = rows[0].at - margin;
    const copy = await service.db('titles').select('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles');
    const mirror = new Mirror('mirror', toMicros(since), copy as ConstructorParameters<typeof Mirror>[2]);
    await writer.commit();
    await follow({
      readPage: createClient({ baseUrl: service.url, key: service.key }),
      since,
      once: true,
      intervalMs: 0,
      deliver: async (page, from) => mirror.page(page, from),
      save: async () => undefined,
      signal: new AbortController().signal,
    });
    await mirror.compare(service.db);
    return mirror;
  }

  it('and follows from an hour before it, has what was being written then', async () => {
    assert.deepEqual((await mirrorFrom(MARGIN)).violations, []);
  });

  it('must not follow from the very moment: what was being written bears an earlier stamp', async () => {
    assert.deepEqual(
      (await mirrorFrom(0)).violations.map(({ what }) => what),
      ['lost'],
    );
  });
});
