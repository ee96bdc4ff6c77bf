import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { restartFeed } from '../../../src/catalog/restart.js';
import { readBounds } from '../../../src/catalog/feed.js';
import { toSeconds, type Micros } from '../../../src/platform/time/micros.js';
import { createClient, type ChangesPage } from '../../../src/client/client.js';
import { follow } from '../../../src/client/follow.js';
import { retryPolicy } from '../../../src/client/retry.js';
import { runCommand } from '../../support/programs/command.js';
import type { TestService } from '../../support/service.js';
import { addTitles, emptyCatalogue, titleIds } from '../../support/titles.js';
import { untilWaiting } from '../../support/postgres/until-waiting.js';
import { testWorld } from '../../support/world.js';
import { exportText } from './exporting.js';

describe('the position of an export of titles', () => {
  const world = testWorld({ service: true });
  let service: TestService;
  let db: Knex;

  before(() => {
    ({ db, service } = world);
  });

  beforeEach(() => emptyCatalogue(db));

  /** @returns the titles that the feed gives after a position */
  async function followFrom(position: Micros | undefined): Promise<ChangesPage['data']> {
    const entries: ChangesPage['data'][number][] = [];
    await follow({
      fetchPage: createClient({ baseUrl: service.url, key: service.key }),
      since: toSeconds(position ?? assert.fail('no position')),
      once: true,
      intervalMs: 0,
      retryPolicy: retryPolicy(true),
      store: async ({ data }) => void entries.push(...data),
      signal: new AbortController().signal,
    });
    return entries;
  }

  function ids(entries: readonly { readonly svc_id: string }[]): string[] {
    return entries.map(({ svc_id: id }) => id);
  }

  function exported(text: string): string[] {
    return ids(
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { svc_id: string }),
    );
  }

  it('is the stamp of the last entry of the copy, after which the feed has no more', async () => {
    await addTitles(db, 3);
    const { position, text } = await exportText(db);
    assert.equal(position, (await readBounds(db)).newest);
    assert.deepEqual([exported(text), await followFrom(position)], [titleIds(3), []]);
  });

  it('is the feed start after a restart, and the feed accepts it', async () => {
    await addTitles(db, 2);
    const { feedStart } = await restartFeed(db);
    const { position } = await exportText(db);
    assert.equal(position, feedStart);
    assert.deepEqual(await followFrom(position), []);
    await addTitles(db, 1, 'later');
    assert.deepEqual(ids(await followFrom(position)), ['later-0001']);
  });

  it('lies before every change that was not yet committed when the copy was made', async () => {
    await addTitles(db, 2);
    const writer = await db.transaction();
    await writer('titles').where({ svc_id: 'title-0001' }).update({ title: 'Changed' });
    await writer('titles').insert({ svc_id: 'new', media_type: 'movie', title: 'New' });
    const { position, text } = await exportText(db);
    await writer.commit();
    assert.ok(!text.includes('Changed') && !text.includes('New'), text);
    assert.deepEqual(ids(await followFrom(position)), ['title-0001', 'new']);
  });

  it('of an empty catalogue lies before every later entry', async () => {
    const { position } = await exportText(db);
    await addTitles(db, 2);
    assert.deepEqual(ids(await followFrom(position)), titleIds(2));
  });

  it('is reported to a role that may only read titles', async () => {
    await addTitles(db, 2);
    await db.raw("create role catalog_reader login password 'reader'");
    try {
      await db.raw('grant select on titles, catalog_feed, migrations to catalog_reader');
      const url = new URL(service.databaseUrl);
      url.username = 'catalog_reader';
      url.password = 'reader';
      const { code, stdout, stderr } = await runCommand(['export', '--kind', 'titles', '--json'], {
        DATABASE_URL: url.href,
      });
      const since = toSeconds((await readBounds(db)).newest);
      assert.equal(code, 0, stderr);
      assert.deepEqual(JSON.parse(stderr), { kind: 'titles', rows: 2, follow_from: since });
      assert.deepEqual(exported(stdout), titleIds(2));
    } finally {
      await db.raw('drop owned by catalog_reader; drop role catalog_reader');
    }
  });

  it('comes from the same snapshot as the copy', async () => {
    await addTitles(db, 1);
    // Makes the export wait within the statement that reads the position. No later test can empty the catalogue.
    await db.raw(`
      alter table catalog_feed rename to feed;
      create view catalog_feed as select feed_start, identity from feed where pg_advisory_xact_lock_shared(1, 2)::text is not null`);
    const holder = await db.transaction();
    await holder.raw('select pg_advisory_xact_lock(1, 2)');
    const exporting = exportText(db);
    await untilWaiting('the export waits', db);
    await db('titles').insert({ svc_id: 'late', media_type: 'movie', title: 'Late' });
    await holder.commit();
    const { position, text } = await exporting;
    assert.deepEqual(exported(text), ['title-0001']);
    assert.deepEqual(ids(await followFrom(position)), ['late']);
  });
});
