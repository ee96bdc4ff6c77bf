import assert from 'node:assert/strict';
import type { Caller } from '../../src/admission/callers.js';
import { reinstateDeveloper, suspendDeveloper } from '../../src/developers/developers.js';
import { MAX_EDITS_PER_DAY, setKeyExpiry, setKeyLabel, setKeyPlan, type EditedKey } from '../../src/keys/edit-key.js';
import type { KeyActor, KeyRefused } from '../../src/keys/key-change.js';
import { stateOf } from '../../src/keys/key-record.js';
import { createKey, findKeyOf, type CreatedKey, type KeyDetails } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { eachCase } from '../support/each-case.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { expireIn } from '../support/keys/expiry.js';
import { findCaller } from '../support/keys/find-caller.js';
import { testWorld } from '../support/world.js';

const IN_AN_HOUR = { kind: 'after', seconds: 3_600 } as const;

const refused = (reason: KeyRefused['reason'], message = /./, advice?: RegExp) => ({
  name: 'OperatorError',
  reason,
  message,
  ...(advice && { advice }),
});

describe('editing a key', () => {
  const world = testWorld();
  let developerId: number;

  beforeEach(async () => (developerId = await world.newDeveloper()));

  function newKey(details: Partial<KeyDetails> = {}): Promise<CreatedKey> {
    return createKey(world.db, { developerId, planId: 'free', label: 'staging', ...details });
  }

  function find({ key }: CreatedKey): Promise<Caller | undefined> {
    return findCaller(world.db, key);
  }

  /** Each edit, with a value that differs from that of a new key. */
  const EDITS: Readonly<Record<string, (prefix: string, by?: KeyActor) => Promise<EditedKey>>> = {
    'the label': (prefix, by) => setKeyLabel(world.db, prefix, 'production', by),
    'the expiry': (prefix, by) => setKeyExpiry(world.db, prefix, IN_AN_HOUR, by),
    'the plan': (prefix) => setKeyPlan(world.db, prefix, 'pro'),
  };

  /** The edits that developers can make themselves. */
  const OWN_EDITS = Object.entries(EDITS).filter(([what]) => what !== 'the plan');

  it('an edit changes nothing else of the key, and returns the key before and after', async () => {
    const { key: _, ...record } = await newKey();
    const { prefix } = record;
    const labelled = { ...record, label: 'production' };
    assert.deepEqual(await setKeyLabel(world.db, prefix, 'production'), { before: record, after: labelled });
    const moved = { ...labelled, planId: 'pro' };
    assert.deepEqual(await setKeyPlan(world.db, prefix, 'pro'), { before: labelled, after: moved });
    const { before, after } = await setKeyExpiry(world.db, prefix, { kind: 'at', time: '2100-01-31T18:00:00.000Z' });
    assert.deepEqual([before, after], [moved, { ...moved, expiresAt: '2100-01-31T18:00:00.000000Z' }]);
    assert.deepEqual((await setKeyExpiry(world.db, prefix, null)).after, moved);
    assert.deepEqual((await setKeyLabel(world.db, prefix, null)).after, { ...moved, label: null });
  });

  it('a key that ends while its edit waits for another change stays ended', async () => {
    const key = await newKey();
    const by: KeyActor = { kind: 'developer', developerId };
    const other = await world.db.transaction();
    await other('developers').where({ id: developerId }).forNoKeyUpdate().first('id');
    const edit = setKeyExpiry(world.db, key.prefix, IN_AN_HOUR, by);
    await untilWaiting('the edit waits', world.db);
    await rollKey(world.db, key.prefix, 0);
    await other.commit();
    await assert.rejects(edit, refused('expired'));
    assert.equal(await find(key), undefined);
  });

  it('an edit that makes no difference writes nothing', async () => {
    const { prefix } = await newKey();
    // The version of a row: what wrote it last.
    const version = (): Promise<unknown> =>
      world.db('api_keys').where({ prefix }).first<unknown>(world.db.raw('xmin::text'));
    const before = await version();
    for (const same of [
      await setKeyLabel(world.db, prefix, 'staging'),
      await setKeyExpiry(world.db, prefix, null),
      await setKeyPlan(world.db, prefix, 'free'),
    ]) {
      assert.deepEqual(same.after, same.before);
    }
    assert.deepEqual(await version(), before);
  });

  it('a key that is revoked, expired or unknown cannot be changed', () =>
    eachCase(Object.entries(EDITS), async ([, edit]) => {
      const [revoked, expired] = [await newKey(), await newKey()];
      await revokeKey(world.db, revoked.prefix);
      await expireIn(world.db, expired.prefix, 0);
      const refusal = /cannot be changed\.$/;
      const advice = /^Create a new one: "catalog keys create --developer \d+ --plan free"\.$/;
      await assert.rejects(edit(revoked.prefix), refused('revoked', refusal, advice));
      await assert.rejects(edit(expired.prefix), refused('expired', refusal, advice));
      await assert.rejects(edit('svc_00000000'), refused('unknown'));
      assert.deepEqual([await find(revoked), await find(expired)], [undefined, undefined]);
    }));

  it('a key that is revoked meanwhile is not changed', () =>
    eachCase(Object.entries(EDITS), async ([, edit]) => {
      const { prefix } = await newKey();
      const revoking = await world.db.transaction();
      await revokeKey(revoking, prefix);
      const editing = assert.rejects(edit(prefix), refused('revoked'));
      try {
        await untilWaiting('the edit waits for the revocation', world.db);
      } finally {
        await revoking.commit();
      }
      await editing;
    }));

  it('a rolled key that is still accepted can be changed', () =>
    eachCase(Object.entries(EDITS), async ([, edit]) => {
      const { prefix } = await newKey();
      const { successor } = await rollKey(world.db, prefix, 60);
      const { after } = await edit(prefix);
      assert.deepEqual(stateOf(after).kind, 'rolled');
      assert.deepEqual(await findKeyOf(world.db, developerId, prefix), after);
      assert.deepEqual(after.successor, {
        prefix: successor.prefix,
        label: 'staging',
        isActive: true,
        isRolled: false,
      });
    }));

  it('developers change their own keys only, and not while they are suspended', () =>
    eachCase(OWN_EDITS, async ([, edit]) => {
      await reinstateDeveloper(world.db, developerId);
      const { prefix } = await newKey();
      const own: KeyActor = { kind: 'developer', developerId };
      const { after } = await edit(prefix, own);
      const other: KeyActor = { kind: 'developer', developerId: await world.newDeveloper() };
      await assert.rejects(edit(prefix, other), refused('unknown'));
      await suspendDeveloper(world.db, developerId);
      await assert.rejects(edit(prefix, own), refused('suspended'));
      assert.deepEqual(await findKeyOf(world.db, developerId, prefix), { ...after, isSuspended: true });
    }));

  it('a developer makes at most 200 edits within 24 hours, and an operator any number', async () => {
    const { prefix } = await newKey();
    const own: KeyActor = { kind: 'developer', developerId };
    // The edits of operators, those of the day before and what is no edit do not count.
    const record = (details: object, count: number) =>
      world.db('events').insert(
        Array.from({ length: count }, () => ({
          developer_id: developerId,
          kind: 'label_changed',
          actor: 'developer',
          details: '{}',
          ...details,
        })),
      );
    await record({ actor: 'operator' }, MAX_EDITS_PER_DAY);
    await record({ at: new Date(Date.now() - 86_401_000) }, MAX_EDITS_PER_DAY);
    await record({ kind: 'created' }, MAX_EDITS_PER_DAY);
    await record({ kind: 'expiry_changed', at: new Date(Date.now() - 86_340_000) }, MAX_EDITS_PER_DAY - 1);
    await setKeyLabel(world.db, prefix, 'last', own);
    await assert.rejects(setKeyLabel(world.db, prefix, 'one more', own), refused('too_many_edits'));
    await assert.rejects(setKeyExpiry(world.db, prefix, IN_AN_HOUR, own), refused('too_many_edits'));
    assert.equal((await findKeyOf(world.db, developerId, prefix))?.label, 'last');
    await setKeyLabel(world.db, prefix, 'one more');
  });

  it('an expiry moves to an earlier and to a later time, from the moment of the change', async () => {
    const key = await newKey({ expires: IN_AN_HOUR });
    for (const seconds of [7_200, 600]) {
      const began = Date.now();
      const { after } = await setKeyExpiry(world.db, key.prefix, { kind: 'after', seconds });
      const changedAt = Date.parse(after.expiresAt ?? '') - seconds * 1_000;
      assert.ok(changedAt >= began - 1_000 && changedAt <= Date.now() + 1_000, after.expiresAt ?? '');
    }
    assert.ok(await find(key));
  });

  it('a key whose expiry is set to now or to the past ends at the time of the change, for good', async () => {
    const past = { kind: 'at', time: '2001-01-31T00:00:00.000Z' } as const;
    await eachCase([{ kind: 'after', seconds: 0 } as const, past], async (expiry) => {
      const key = await newKey();
      const { after } = await setKeyExpiry(world.db, key.prefix, expiry);
      assert.equal(stateOf(after).kind, 'expired');
      assert.ok(Date.parse(after.expiresAt ?? '') >= Date.parse(key.createdAt));
      assert.equal(await find(key), undefined);
      await assert.rejects(setKeyExpiry(world.db, key.prefix, null), refused('expired'));
    });
  });

  it('a key that was rolled cannot be given a life without end', async () => {
    const { prefix } = await newKey();
    const { successor } = await rollKey(world.db, prefix, 60);
    await assert.rejects(setKeyExpiry(world.db, prefix, null), {
      reason: 'rolled',
      otherPrefix: successor.prefix,
      message: `Key ${prefix} was replaced by ${successor.prefix}, so it must expire.`,
      advice: 'Set a time, or revoke it.',
    });
    assert.equal((await setKeyExpiry(world.db, successor.prefix, null)).after.expiresAt, null);
  });

  it('a key moves only to a plan that exists', async () => {
    const key = await newKey();
    await assert.rejects(setKeyPlan(world.db, key.prefix, 'gone'), {
      message: 'There is no plan "gone".',
      kind: 'not_found',
    });
    await setKeyPlan(world.db, key.prefix, 'pro');
    assert.equal((await find(key))?.plan.id, 'pro');
  });
});
