import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { callerLoader } from '../../src/admission/caller-loader.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { hintsOf, stateOf, type KeyRecord, type Successor } from '../../src/keys/key-record.js';
import { createKey, findKeyOf, findPredecessor, listKeys, setKeyPlan } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import type { Expiry } from '../../src/keys/expiry.js';
import type { CreatedKey } from '../../src/keys/new-key.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { expireIn } from '../support/keys/expiry.js';
import { hashOf } from '../support/keys/key-hash.js';

const DAY_MS = 86_400_000;

describe('a rolled key', () => {
  let database: OpenTestDatabase;
  let developerId: number;

  before(async () => {
    database = await openTestDatabase();
    developerId = (await createDeveloper(database.db, { projectName: 'P', attributionRequired: false })).id;
  });

  after(() => database.close());

  function newKey(expires?: Expiry): Promise<CreatedKey> {
    return createKey(database.db, { developerId, planId: 'pro', label: 'staging', expires });
  }

  async function works({ key }: { key: string }): Promise<boolean> {
    return (await callerLoader(database.db, 1)(hashOf(key))) !== undefined;
  }

  function lifeOf({ createdAt, expiresAt }: KeyRecord): number {
    return Date.parse(expiresAt ?? '') - Date.parse(createdAt);
  }

  it('has a successor with the same label, plan and developer, and goes on for the overlap', async () => {
    const old = await newKey();
    const { successor, predecessor } = await rollKey(database.db, old.prefix, 3_600);
    const { label, planId, developerId: owner, expiresAt } = successor;
    assert.deepEqual(
      { label, planId, owner, expiresAt },
      { label: 'staging', planId: 'pro', owner: developerId, expiresAt: null },
    );
    // Both are stamped with the time of the one transaction.
    assert.equal(Date.parse(predecessor.expiresAt ?? '') - Date.parse(successor.createdAt), 3_600_000);
    assert.deepEqual(stateOf(predecessor), {
      kind: 'rolled',
      until: predecessor.expiresAt,
      successor: { prefix: successor.prefix, isActive: true },
    });
    assert.deepEqual([await works(old), await works(successor)], [true, true]);
    const listed = await listKeys(database.db, developerId);
    assert.deepEqual(
      listed.find(({ prefix }) => prefix === old.prefix),
      predecessor,
    );
  });

  it('ends at once without an overlap', async () => {
    const old = await newKey();
    const { successor, predecessor } = await rollKey(database.db, old.prefix, 0);
    assert.deepEqual([await works(old), await works(successor)], [false, true]);
    assert.deepEqual(stateOf(predecessor), { kind: 'expired', at: predecessor.expiresAt });
  });

  it('never goes on for longer than it would have, and its successor gets as long a life anew', async () => {
    const old = await newKey({ kind: 'after', seconds: 90 * 86_400 });
    const long = await rollKey(database.db, old.prefix, 100 * 86_400);
    assert.equal(long.predecessor.expiresAt, old.expiresAt);
    assert.equal(lifeOf(long.successor), 90 * DAY_MS);
    const short = await rollKey(database.db, long.successor.prefix, 60);
    assert.ok(Date.parse(short.predecessor.expiresAt ?? '') < Date.parse(long.successor.expiresAt ?? ''));
    assert.equal(lifeOf(short.successor), 90 * DAY_MS);
  });

  it('can be ended early, and its successor goes on', async () => {
    const old = await newKey();
    const { successor } = await rollKey(database.db, old.prefix, 3_600);
    assert.equal(stateOf(await revokeKey(database.db, old.prefix)).kind, 'revoked');
    assert.deepEqual([await works(old), await works(successor)], [false, true]);
  });

  /** Commits a transaction as soon as another one waits for it. */
  async function commitWhenAwaited(transaction: Knex.Transaction, db: Knex): Promise<void> {
    try {
      await eventually('another transaction waits', async () => {
        const waiting = await db('pg_locks').where({ locktype: 'transactionid', granted: false });
        return waiting.length > 0;
      });
    } finally {
      await transaction.commit();
    }
  }

  it('is not rolled twice, also by two who do it at the same time', async () => {
    const { db } = database;
    const old = await newKey();
    const first = await db.transaction();
    const { successor } = await rollKey(first, old.prefix, 60);
    const second = rollKey(db, old.prefix, 60);
    await Promise.all([
      assert.rejects(second, {
        reason: 'rolled',
        message: `Key ${old.prefix} was replaced by ${successor.prefix} before. Roll that key instead.`,
      }),
      commitWhenAwaited(first, db),
    ]);
  });

  it('names its own successor, and whether that is active', async () => {
    const { db } = database;
    const first = await newKey();
    const successor = async (): Promise<Successor | null | undefined> =>
      (await findKeyOf(db, developerId, first.prefix))?.successor;
    assert.equal(await successor(), null);
    const { successor: second } = await rollKey(db, first.prefix, 3_600);
    assert.deepEqual(await successor(), { prefix: second.prefix, isActive: true });
    await assert.rejects(rollKey(db, first.prefix, 60), { reason: 'rolled', otherPrefix: second.prefix });
    const { successor: third } = await rollKey(db, second.prefix, 0);
    assert.deepEqual(await successor(), { prefix: second.prefix, isActive: false });
    await assert.rejects(rollKey(db, first.prefix, 60), {
      reason: 'not_replaced',
      message: new RegExp(
        `^Key ${first.prefix} was replaced by ${second.prefix}, which is no longer active\\. Create a new one`,
      ),
    });
    await revokeKey(db, second.prefix);
    assert.deepEqual(await successor(), { prefix: second.prefix, isActive: false });
    assert.equal((await findPredecessor(db, second.prefix))?.prefix, first.prefix);
    assert.equal((await findPredecessor(db, third.prefix))?.prefix, second.prefix);
    assert.equal(await findPredecessor(db, first.prefix), undefined);
  });

  it('must be one that works', async () => {
    const [revoked, expired] = [await newKey(), await newKey()];
    await revokeKey(database.db, revoked.prefix);
    await expireIn(database.db, expired.prefix, 0);
    for (const [prefix, reason, message] of [
      [revoked.prefix, 'revoked', /is revoked, and cannot be rolled\. Create a new one: "catalog keys create/],
      [expired.prefix, 'expired', /has expired, and cannot be rolled\. Create a new one/],
      ['svc_00000000', 'unknown', /No key has the prefix "svc_00000000"/],
    ] as const) {
      await assert.rejects(rollKey(database.db, prefix, 60), { name: 'OperatorError', reason, message });
    }
  });

  it('may still be put on another plan', async () => {
    const old = await newKey();
    await rollKey(database.db, old.prefix, 60);
    assert.equal((await setKeyPlan(database.db, old.prefix, 'free')).record.planId, 'free');
  });
});

describe('what is said of a key', () => {
  const NOW = Date.parse('2026-06-01T00:00:00Z');
  const WORKING: KeyRecord = {
    prefix: 'svc_00000000',
    developerId: 1,
    planId: 'free',
    label: null,
    createdAt: '2026-01-01T00:00:00.000000Z',
    lastUsedAt: '2026-05-31T00:00:00.000000Z',
    expiresAt: null,
    successor: null,
    revokedAt: null,
    isExpired: false,
  };
  const SUCCESSOR: Successor = { prefix: 'svc_11111111', isActive: true };
  const at = (days: number): string => new Date(NOW + days * DAY_MS).toISOString();

  it('is one state: a revoked key is no longer an expired or rolled one', () => {
    const expired = { ...WORKING, expiresAt: at(-1), isExpired: true, successor: SUCCESSOR };
    assert.deepEqual(stateOf(WORKING), { kind: 'working' });
    assert.deepEqual(stateOf({ ...expired, isExpired: false }), {
      kind: 'rolled',
      until: at(-1),
      successor: SUCCESSOR,
    });
    assert.deepEqual(stateOf(expired), { kind: 'expired', at: at(-1) });
    assert.deepEqual(stateOf({ ...expired, revokedAt: at(0) }), { kind: 'revoked', at: at(0) });
  });

  it('hints at a key that was not used for 90 days, or never since it was made', () => {
    assert.deepEqual(hintsOf({ ...WORKING, lastUsedAt: at(-89.9) }, NOW), []);
    assert.deepEqual(hintsOf({ ...WORKING, lastUsedAt: at(-90) }, NOW), [{ kind: 'unused', days: 90 }]);
    assert.deepEqual(hintsOf({ ...WORKING, lastUsedAt: null }, NOW), [{ kind: 'unused', days: 151 }]);
  });

  it('hints at a key that expires within two weeks', () => {
    assert.deepEqual(hintsOf({ ...WORKING, expiresAt: at(14) }, NOW), []);
    assert.deepEqual(hintsOf({ ...WORKING, expiresAt: at(13.9) }, NOW), [{ kind: 'expires_soon', days: 13 }]);
    assert.deepEqual(hintsOf({ ...WORKING, expiresAt: at(5.5) }, NOW), [{ kind: 'expires_soon', days: 5 }]);
    assert.deepEqual(hintsOf({ ...WORKING, expiresAt: at(0.5) }, NOW), [{ kind: 'expires_soon', days: 0 }]);
  });

  it('hints at nothing where the key does not work or was rolled', () => {
    const forgotten = { ...WORKING, lastUsedAt: null, expiresAt: at(1) };
    assert.deepEqual(hintsOf({ ...forgotten, successor: SUCCESSOR }, NOW), []);
    assert.deepEqual(hintsOf({ ...forgotten, revokedAt: at(-1) }, NOW), []);
    assert.deepEqual(hintsOf({ ...forgotten, isExpired: true }, NOW), []);
  });
});
