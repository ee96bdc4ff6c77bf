import assert from 'node:assert/strict';
import { generateToken } from '../../src/accounts/tokens.js';
import { reinstateDeveloper, setDeveloperPlan, suspendDeveloper } from '../../src/developers/developers.js';
import { listEvents, removeOldEvents, type DeveloperEvent } from '../../src/events/events.js';
import type { KeyActor } from '../../src/keys/key-change.js';
import { setKeyExpiry, setKeyLabel, setKeyPlan } from '../../src/keys/edit-key.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeFoundKeys, revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { testWorld } from '../support/world.js';
import { expireIn } from '../support/keys/expiry.js';
import { hashOf } from '../support/keys/key-hash.js';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describe('the events of a developer', () => {
  const world = testWorld();
  let developerId: number;

  beforeEach(async () => (developerId = await world.newDeveloper()));

  function list(limit = 100): Promise<readonly DeveloperEvent[]> {
    return listEvents(world.db, { developerId, limit });
  }

  /** The events since the registration, oldest first, without their times. */
  async function recorded(): Promise<unknown[]> {
    return (await list())
      .slice(0, -1)
      .map(({ kind, actor, keyPrefix, details }) => [kind, actor, keyPrefix, details])
      .reverse();
  }

  it('each change by an operator is recorded once, without the key, and the use of a key is not recorded', async () => {
    const { db } = world;
    const { key, prefix } = await createKey(db, { developerId, planId: 'free' });
    for (const plan of ['pro', 'pro']) await setKeyPlan(db, prefix, plan);
    for (const label of ['staging', 'staging', 'production', null]) await setKeyLabel(db, prefix, label);
    const { after } = await setKeyExpiry(db, prefix, { kind: 'after', seconds: 60 });
    for (const expiry of [null, null]) await setKeyExpiry(db, prefix, expiry);
    for (const act of [suspendDeveloper, suspendDeveloper, reinstateDeveloper]) await act(db, developerId);
    for (const plan of ['pro', 'pro']) await setDeveloperPlan(db, developerId, plan);
    const revoked = await revokeKey(db, prefix);
    await revokeKey(db, prefix);
    const usage = new UsageCounter();
    const [keyId = 0] = await db('api_keys').where({ prefix }).pluck<number[]>('id');
    usage.count({ keyId, operation: 'getMe', outcome: 'success' }, Date.now());
    await usage.save(db, 1);
    assert.equal((await db('api_keys').where({ prefix }).whereNotNull('last_used_at')).length, 1);
    assert.deepEqual(await recorded(), [
      ['created', 'operator', prefix, { plan: 'free' }],
      ['plan_changed', 'operator', prefix, { from: 'free', to: 'pro' }],
      ['label_changed', 'operator', prefix, { to: 'staging' }],
      ['label_changed', 'operator', prefix, { from: 'staging', to: 'production' }],
      ['label_changed', 'operator', prefix, { from: 'production' }],
      ['expiry_changed', 'operator', prefix, { expires_at: after.expiresAt }],
      ['expiry_changed', 'operator', prefix, {}],
      ['suspended', 'operator', null, {}],
      ['reinstated', 'operator', null, {}],
      ['plan_changed', 'operator', null, { from: 'free', to: 'pro' }],
      ['revoked', 'operator', prefix, {}],
    ]);
    assert.equal((await list())[0]?.at, revoked.revokedAt);
    const registration = (await list()).at(-1);
    assert.match(registration?.at ?? '', RFC3339);
    assert.deepEqual([registration?.kind, registration?.details], ['registered', { plan: 'free' }]);
    const text = JSON.stringify(await db('events').where({ key_prefix: prefix }));
    assert.ok(!text.includes(key.slice(13, 21)) && !text.includes(hashOf(key).slice(0, 8)));
  });

  it('a change by the developer or a finder is recorded with its actor', async () => {
    const { db } = world;
    const own = (): KeyActor => ({ kind: 'developer', developerId, formHash: generateToken().hash });
    const { prefix } = await createKey(db, { developerId }, own());
    const { successor, predecessor } = await rollKey(db, prefix, 60, own());
    await revokeKey(db, prefix, own());
    await revokeFoundKeys(db, [hashOf(successor.key)]);
    assert.deepEqual(await recorded(), [
      ['created', 'developer', prefix, { plan: 'free' }],
      ['created', 'developer', successor.prefix, { plan: 'free' }],
      [
        'rolled',
        'developer',
        prefix,
        {
          successor: successor.prefix,
          expires_at: predecessor.expiresAt,
        },
      ],
      ['revoked', 'developer', prefix, {}],
      ['revoked', 'finder', successor.prefix, {}],
    ]);
    // Who acted holds for that transaction alone, whatever connection it was on.
    await Promise.all(Array.from({ length: 16 }, () => createKey(db, { developerId, planId: 'free' })));
    assert.deepEqual(
      (await list(16)).map(({ kind, actor }) => `${kind} by ${actor}`),
      Array<string>(16).fill('created by operator'),
    );
  });

  it('a change in plain SQL is recorded as the operator’s, whatever actor it claims', async () => {
    const { db } = world;
    const { prefix } = await createKey(db, { developerId, planId: 'free' });
    await db.transaction(async (transaction) => {
      await transaction.raw("set local catalog.actor = 'somebody'");
      await transaction('api_keys').where({ prefix }).update({ revoked_at: '2026-01-01Z' });
    });
    assert.deepEqual((await recorded())[1], ['revoked', 'operator', prefix, {}]);
  });

  it('the expiry of a key is listed as an event, unless the key was revoked before', async () => {
    const { db } = world;
    const [expired, revoked, late] = await Promise.all(
      [1, 2, 3].map(() => createKey(db, { developerId, planId: 'free' })),
    );
    await revokeKey(db, revoked?.prefix ?? '');
    for (const key of [expired, revoked, late]) await expireIn(db, key?.prefix ?? '', 0);
    await revokeKey(db, late?.prefix ?? '');
    const expiries = (await list()).filter(({ kind }) => kind === 'expired');
    assert.deepEqual(
      expiries.map(({ keyPrefix, actor }) => [keyPrefix, actor]),
      [late, expired].map((key) => [key?.prefix, 'system']),
    );
    const [row] = await db('api_keys').where({ prefix: expired?.prefix }).pluck<string[]>('expires_at');
    assert.equal(expiries[1]?.at, row);
    assert.equal((await list()).filter(({ kind }) => kind === 'expiry_changed').length, 3);
  });

  it('each event is in one part of the list, of however many at the same time', async () => {
    const { db } = world;
    const prefixes = [];
    for (let key = 0; key < 3; key += 1) prefixes.push((await world.newKey({ developerId })).prefix);
    const at = '2026-01-02T03:04:05.678901Z';
    await db('api_keys').where({ developer_id: developerId }).update({ expires_at: at });
    await db('events').where({ developer_id: developerId }).andWhere('kind', '<>', 'registered').update({ at });
    for (const owner of [developerId, undefined]) {
      const whole = await listEvents(db, { developerId: owner, limit: 100 });
      const here = whole.filter((event) => event.developerId === developerId);
      assert.deepEqual(
        here
          .map(({ kind }) => kind)
          .sort()
          .join(),
        `${'created,'.repeat(3)}${'expired,'.repeat(3)}${'expiry_changed,'.repeat(3)}registered`,
      );
      const read: DeveloperEvent[] = [];
      for (let part = [...whole].slice(0, 1); part.length > 0 && read.length < 100;) {
        read.push(...part);
        part = [...(await listEvents(db, { developerId: owner, after: read.at(-1), limit: 1 }))];
      }
      assert.deepEqual(read, whole);
    }
  });

  it('the events of one key are listed alone, its expiry among them', async () => {
    const [key, other] = [await world.newKey({ developerId }), await world.newKey({ developerId })];
    await world
      .db('api_keys')
      .whereIn('prefix', [key.prefix, other.prefix])
      .update({ expires_at: world.db.raw('now()') });
    const events = await listEvents(world.db, { developerId, keyPrefix: key.prefix, limit: 9 });
    assert.deepEqual(new Set(events.map(({ keyPrefix }) => keyPrefix)), new Set([key.prefix]));
    assert.deepEqual(events.map(({ kind }) => kind).sort(), ['created', 'expired', 'expiry_changed']);
  });

  it('events of some kinds are listed alone, with the expiries of keys if they are among them', async () => {
    const { prefix } = await world.newKey({ developerId });
    await expireIn(world.db, prefix, 0);
    for (const kinds of [['registered', 'created'], ['expired'], ['revoked']] as const) {
      const events = await listEvents(world.db, { developerId, kinds, limit: 9 });
      assert.deepEqual(
        events.map(({ kind }) => kind).reverse(),
        kinds.filter((kind) => kind !== 'revoked'),
      );
    }
  });

  it('events are kept for 400 days, including the expiry of a key', async () => {
    const { db } = world;
    await db('events').delete();
    await db.raw(
      `insert into events (at, developer_id, kind, actor)
       select now() - make_interval(days => days), ?, 'signed_in', 'developer'
         from generate_series(2900, 399, -1) as days`,
      [developerId],
    );
    const [recent, old] = [
      await createKey(db, { developerId, planId: 'free' }),
      await createKey(db, { developerId, planId: 'free' }),
    ];
    for (const [{ prefix }, days] of [
      [recent, 399],
      [old, 401],
    ] as const) {
      await db('api_keys')
        .where({ prefix })
        .update({ expires_at: db.raw('now() - make_interval(days => ?)', [days]) });
    }
    // More than one batch: the days from 2900 to 401, and a moment of the 400th.
    const count = async (): Promise<number> => (await db('events')).length;
    const before = await count();
    while (await removeOldEvents(db));
    assert.equal(before - (await count()), 2_501);
    const kept = await list();
    assert.equal(kept.filter(({ kind }) => kind === 'signed_in').length, 1);
    assert.deepEqual(
      kept.filter(({ kind }) => kind === 'expired').map(({ keyPrefix }) => keyPrefix),
      [recent.prefix],
    );
    assert.equal(kept.filter(({ kind }) => kind === 'created').length, 2);
  });
});
