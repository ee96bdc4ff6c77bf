import assert from 'node:assert/strict';
import { setDeveloperPlan } from '../../src/developers/developers.js';
import { setPlanOfKeys } from '../../src/keys/edit-key.js';
import { listKeysWithHints, listPlansOf, readKeySummary } from '../../src/keys/key-summary.js';
import type { KeyRecord } from '../../src/keys/key-record.js';
import { listKeysOf } from '../../src/keys/keys.js';
import { developersOnPlan } from '../../src/limits/plans.js';
import { testWorld } from '../support/world.js';

/** The keys of a developer by their labels: each that a query leaves out is left out by one of its conditions alone. */
const KEYS: Readonly<Record<string, object>> = {
  current: {},
  unused: { plan_id: 'pro', created_at: "now() - interval '91 days'" },
  used: { created_at: "now() - interval '91 days'", last_used_at: 'now()' },
  expiring: { expires_at: "now() + interval '13 days'" },
  'Rolled to Current': { expires_at: "now() + interval '2 days'", successor: 'current' },
  ended: { revoked_at: 'now()' },
  'rolled to ended': { expires_at: "now() + interval '1 day'", successor: 'ended' },
  'ended, rolled on': { expires_at: "now() - interval '1 day'", successor: 'unused' },
  'rolled to ended, rolled on': { expires_at: "now() + interval '1 day'", successor: 'ended, rolled on' },
  newest: {},
  'rolled last': { expires_at: "now() + interval '3 days'", successor: 'newest' },
  revoked: { plan_id: 'gone', expires_at: "now() + interval '1 day'", revoked_at: 'now()' },
  expired: { plan_id: 'gone', expires_at: "now() - interval '1 second'" },
};

const ACTIVE = [
  'current',
  'unused',
  'used',
  'expiring',
  'Rolled to Current',
  'rolled to ended',
  'rolled to ended, rolled on',
  'newest',
  'rolled last',
];

describe('the keys that a query leaves out', () => {
  const world = testWorld({ each: true });
  let own: number;
  let other: number;

  beforeEach(async () => {
    const { db } = world;
    await db.raw(`insert into plans (id, name, requests_per_minute, requests_per_day, commercial_use)
      select id, id, 1, 1, false from unnest('{gone,others}'::text[]) id`);
    // The same keys twice: those of the other developer are never meant.
    [other, own] = [await world.newDeveloper(), await world.newDeveloper()];
    await setDeveloperPlan(db, own, 'scale');
    await setDeveloperPlan(db, other, 'others');
    for (const developerId of [other, own]) {
      const prefixes = new Map<string, string>();
      for (const [label, { successor, ...columns }] of Object.entries(KEYS) as [string, Record<string, string>][]) {
        const { prefix } = await world.newKey({ developerId, label, planId: developerId === own ? 'free' : 'others' });
        prefixes.set(label, prefix);
        for (const [column, value] of Object.entries(columns)) {
          const set = column === 'plan_id' ? `'${developerId === own ? value : 'others'}'` : value;
          await db.raw(`update api_keys set ${column} = ${set} where prefix = ?`, [prefix]);
        }
        if (successor === undefined) continue;
        await db.raw('update api_keys set successor_id = (select id from api_keys where prefix = ?) where prefix = ?', [
          prefixes.get(successor) ?? assert.fail(successor),
          prefix,
        ]);
      }
    }
  });

  async function labels(condition: object): Promise<string[]> {
    return world.db('api_keys').where(condition).orderBy('id').pluck<string[]>('label');
  }

  it('the summary of a developer counts each key where it belongs', async () => {
    const summary = await readKeySummary(world.db, own);
    const [newest] = await world.db('api_keys').where({ developer_id: own, label: 'newest' }).pluck<string[]>('prefix');
    assert.deepEqual(summary, { total: 13, active: 5, rolled: 4, newest, isUsed: true });
    await world.db('api_keys').where({ developer_id: own }).update({ last_used_at: null });
    assert.equal((await readKeySummary(world.db, own)).isUsed, false);
  });

  it('keys have hints while they are active, and rolled ones if what replaced them has ended unrolled', async () => {
    const listed = (await listKeysWithHints(world.db, own, 20)).map(({ label }) => label);
    assert.deepEqual(listed, ['rolled to ended', 'expiring', 'unused']);
  });

  it('the plans of a developer are those of active keys, and that of new ones', async () => {
    assert.deepEqual(
      (await listPlansOf(world.db, own)).map(({ id }) => id),
      ['free', 'pro', 'scale'],
    );
  });

  it('all active keys of a developer move to another plan, and no others', async () => {
    assert.equal(await setPlanOfKeys(world.db, own, 'pro'), ACTIVE.length - 1);
    assert.deepEqual(await labels({ developer_id: own, plan_id: 'pro' }), ACTIVE);
    assert.equal((await labels({ developer_id: other, plan_id: 'others' })).length, Object.keys(KEYS).length);
  });

  it('the developers on a plan are those with keys that are not revoked', async () => {
    await world.db('api_keys').where({ developer_id: other, label: 'revoked' }).update({ plan_id: 'gone' });
    assert.deepEqual(await developersOnPlan(world.db, 'gone'), [own]);
  });

  it('active keys come first in a list, each newest first, and its parts follow one another', async () => {
    const listed: KeyRecord[] = [];
    for (let part = 1; part <= 3; part += 1)
      listed.push(...(await listKeysOf(world.db, own, { limit: 5, after: listed.at(-1) })));
    const newestFirst = (await labels({ developer_id: own })).reverse();
    assert.deepEqual(
      listed.map(({ label }) => label),
      [true, false].flatMap((isActive) => newestFirst.filter((label) => ACTIVE.includes(label) === isActive)),
    );
  });

  it('a search finds parts of labels and prefixes in upper and lower case', async () => {
    const search = async (text: string): Promise<(string | null)[]> =>
      (await listKeysOf(world.db, own, { search: text, limit: 20 })).map(({ label }) => label);
    for (const text of ['Rolled to Current', 'rolled TO current', 'ROLLED TO CUR'])
      assert.deepEqual(await search(text), ['Rolled to Current'], text);
    const [prefix = assert.fail()] = await world
      .db('api_keys')
      .where({ developer_id: own, label: 'newest' })
      .pluck<string[]>('prefix');
    for (const text of [prefix, prefix.toLowerCase(), prefix.toUpperCase()])
      assert.deepEqual(await search(text), ['newest'], text);
    assert.equal((await search('%')).length, 0);
  });
});
