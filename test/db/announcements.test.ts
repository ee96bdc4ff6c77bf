import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { ANNOUNCEMENTS } from '../../src/admission/change-callers.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { AnnouncementReader } from '../../src/platform/postgres/announcements.js';
import { openConnection } from '../../src/platform/postgres/connection.js';
import { STEADY_CLOCK } from '../../src/platform/time/steady-clock.js';
import { eventually, GIVE_UP_MS } from '../support/eventually.js';
import { testWorld } from '../support/world.js';

/** A value for each column of a developer, and whether a change to it concerns servers. */
const COLUMNS: Readonly<Record<string, readonly [value: string, isAnnounced: boolean]>> = {
  project_name: ["'Renamed'", true],
  attribution_required: ['not attribution_required', true],
  suspended_at: ['now()', true],
  created_at: ["created_at - interval '1 day'", false],
  plan_id: ["'pro'", false],
};

describe('announcements', () => {
  const world = testWorld();

  beforeEach(() => world.db.raw('delete from caller_changes; delete from caller_changes_horizon'));

  function announced(db: Knex = world.db): Promise<number[]> {
    return db('caller_changes').orderBy(['txid', 'developer_id']).pluck<number[]>('developer_id');
  }

  async function removeOld(): Promise<number> {
    const { rows } = await world.db.raw<{ rows: [{ removed: number }] }>(
      'select caller_changes_remove_old() as removed',
    );
    return rows[0].removed;
  }

  /** Lets time pass since the horizon was set. */
  function age(seconds: number): Promise<unknown> {
    return world.db.raw("update caller_changes_horizon set set_at = set_at - ? * interval '1 second'", [seconds]);
  }

  it('an announcement stays for five minutes after its commit, however long its transaction was open', async () => {
    const [late, early] = [await world.newKey(), await world.newKey()];
    await world.db.transaction(async (transaction) => {
      await revokeKey(transaction, late.prefix);
      await revokeKey(world.db, early.prefix);
      for (let i = 0; i < 3; i += 1) {
        assert.equal(await removeOld(), 0);
        await age(301);
      }
    });
    const all = [late.developerId, early.developerId];
    assert.deepEqual(await announced(), all);
    assert.equal(await removeOld(), 0, 'the first look after the commit');
    await age(298);
    assert.equal(await removeOld(), 0);
    assert.deepEqual(await announced(), all);
    await age(3);
    assert.equal(await removeOld(), 2);
  });

  it('an announcement survives a horizon that a dump has brought from another cluster', async () => {
    await world.db('caller_changes_horizon').insert({ txid: '1000000000000', set_at: '2020-01-01Z' });
    const { prefix, developerId } = await world.newKey();
    await revokeKey(world.db, prefix);
    assert.equal(await removeOld(), 0);
    assert.deepEqual(await announced(), [developerId]);
    await age(301);
    assert.equal(await removeOld(), 1);
  });

  it('announcements are removed a thousand at a time, and a change leaves those of others alone', async () => {
    await world.db.raw('insert into caller_changes (developer_id) select -i from generate_series(1, 2500) i');
    await removeOld();
    await age(301);
    const { prefix } = await world.newKey();
    await revokeKey(world.db, prefix);
    assert.equal((await announced()).length, 2_501);
    const removed = [await removeOld(), await removeOld(), await removeOld(), await removeOld()];
    assert.deepEqual(removed, [1_000, 1_000, 500, 0]);
  });

  it('a transaction that changes more than a thousand developers announces a change of everything', async () => {
    const insert = "insert into developers (project_name) select 'P' from generate_series(1, 1001)";
    await world.db.raw(insert);
    await world.db.raw('update developers set suspended_at = now() where id in (select id from developers limit 1000)');
    const some = await announced();
    assert.deepEqual([some.length, some.includes(0)], [1_000, false]);
    await world.db('caller_changes').delete();
    await world.db.raw('update developers set suspended_at = null');
    await world.db.raw('update developers set suspended_at = now()');
    const all = await announced();
    assert.deepEqual([all.length > 1_000, all.length < 3_000, all.includes(0)], [true, true, true]);
    assert.equal(all.filter((id) => id === 0).length, 1);
  });

  it('a change of a developer is announced if servers cache what has changed', async () => {
    const columns = await world
      .db('information_schema.columns')
      .where({ table_name: 'developers' })
      .pluck('column_name');
    assert.deepEqual(columns.filter((column) => column !== 'id').sort(), Object.keys(COLUMNS).sort());
    for (const [column, [value, isAnnounced]] of Object.entries(COLUMNS)) {
      const id = await world.newDeveloper();
      await world.db.raw(`update developers set ${column} = ${value} where id = ?`, [id]);
      assert.deepEqual((await announced()).includes(id), isAnnounced, column);
    }
  });

  it('a server reports each announcement once, and none of a transaction that is yet to come in a restored dump', async () => {
    const connect = () =>
      openConnection({
        address: world.url,
        applicationName: 'test',
        acquireTimeoutMs: GIVE_UP_MS,
        statementTimeoutMs: 0,
      });
    const looks: (readonly number[])[] = [];
    const reader = new AnnouncementReader(connect, ANNOUNCEMENTS, STEADY_CLOCK, {
      onLook: (changed) => looks.push(changed),
      onFailure: (error) => assert.fail(String(error)),
    });
    const { prefix, developerId } = await world.newKey();
    // It is older than the announcement, and open during all looks.
    const open = await world.db.transaction();
    await open.raw('select pg_current_xact_id()');
    await reader.start();
    try {
      const first = looks.length;
      await world.db.raw(
        'insert into caller_changes (txid, developer_id) select (pg_current_xact_id()::text::bigint + 1000000)::text::xid8, 4711',
      );
      await revokeKey(world.db, prefix);
      await eventually('three more looks', () => looks.length >= first + 3);
      assert.deepEqual(looks.slice(first).flat(), [developerId]);
    } finally {
      await Promise.all([reader.stop(), open.rollback()]);
    }
  });

  it('no setting of a session keeps a change from being announced', async () => {
    for (const value of ['', 'x', '-1', '1e9', '99999999999999999999', '999999', '7']) {
      const { prefix, developerId } = await world.newKey();
      await world.db.transaction(async (transaction) => {
        await transaction.raw("select set_config('catalog.announced', ?, true)", [value]);
        await revokeKey(transaction, prefix);
      });
      const [newest = assert.fail()] = (await announced()).slice(-1);
      assert.ok([developerId, 0].includes(newest), `${value}: ${newest}`);
    }
  });
});
