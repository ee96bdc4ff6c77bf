import assert from 'node:assert/strict';
import { restartFeed } from '../../src/catalog/restart.js';
import { migrate } from '../../src/platform/postgres/migrations.js';
import { readGuide } from '../support/guides.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

/** Leaves the sequences as logical replication does. */
const FORGET = `do $$ declare name text; begin
  for name in select format('%I.%I', schemaname, sequencename) from pg_sequences where schemaname = 'public' loop
    execute format('alter sequence %s restart', name); end loop; end $$`;

describe('the sequences of a database that logical replication has copied', () => {
  const world = testWorld({ each: true });
  let original: Readonly<Record<string, number | null>>;

  async function lastValues(): Promise<Record<string, number | null>> {
    const sequences = await world.db('pg_sequences').where({ schemaname: 'public' }).orderBy('sequencename');
    return Object.fromEntries(
      (sequences as { sequencename: string; last_value: number | null }[]).map((it) => [
        it.sequencename,
        it.last_value,
      ]),
    );
  }

  async function assertWritable(): Promise<void> {
    await world.newKey();
    await addTitles(world.db, 1);
    const [first, second] = await world.db('titles').orderBy('updated_at', 'desc').pluck<string[]>('svc_id');
    assert.ok(first === 'title-0001' && second !== undefined, 'the newest title is the last of the feed');
  }

  beforeEach(async () => {
    await world.newKey();
    await world.db.raw("insert into titles (svc_id, media_type, title) values ('old', 'movie', 'Old')");
    // It lies ahead of the clock.
    await restartFeed(world.db);
    original = await lastValues();
    assert.ok(Object.values(original).filter((last) => last !== null).length >= 4);
  });

  it('are moved past the rows by "migrate", and never back', async () => {
    await world.db.raw(FORGET);
    await assert.rejects(world.newKey(), { code: '23505' });
    await migrate(world.db);
    assert.deepEqual(await lastValues(), original);
    await world.db.raw("select nextval(pg_get_serial_sequence('events', 'id'))");
    await migrate(world.db);
    const events = (original.events_id_seq ?? assert.fail()) + 1;
    assert.deepEqual(await lastValues(), { ...original, events_id_seq: events });
    await assertWritable();
  });

  it('are those of the original after the statement of the guide', async () => {
    const [list = assert.fail()] =
      /select format\('select setval.+?not null;/s.exec(await readGuide('writing-in-sql')) ?? [];
    const { rows } = await world.db.raw<{ rows: { format: string }[] }>(list);
    await world.db.raw(FORGET);
    for (const { format } of rows) await world.db.raw(format);
    assert.deepEqual(await lastValues(), original);
    await assertWritable();
  });
});
