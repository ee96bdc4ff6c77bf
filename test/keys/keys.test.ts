import assert from 'node:assert/strict';
import { generateToken } from '../../src/accounts/tokens.js';
import type { Caller } from '../../src/admission/callers.js';
import {
  createDeveloper,
  listDevelopers,
  reinstateDeveloper,
  setDeveloperPlan,
  suspendDeveloper,
} from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { MAX_ACTIVE_KEYS, type KeyActor, type KeyRefused } from '../../src/keys/key-change.js';
import { stateOf, type KeyRecord, type Successor } from '../../src/keys/key-record.js';
import {
  createKey,
  findKeyOf,
  findPredecessor,
  listKeys,
  listKeysOf,
  type CreatedKey,
  type KeyDetails,
} from '../../src/keys/keys.js';
import { revokeFoundKeys, revokeKey } from '../../src/keys/revoke.js';
import { rollKey, type RolledKey } from '../../src/keys/roll-key.js';
import { expireIn } from '../support/keys/expiry.js';
import { findCaller } from '../support/keys/find-caller.js';
import { hashOf } from '../support/keys/key-hash.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { testWorld } from '../support/world.js';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const DAY_SECONDS = 86_400;

/** The error of a change that is refused. */
const refused = (reason: KeyRefused['reason'], message = /./, advice?: RegExp) => ({
  name: 'OperatorError',
  reason,
  message,
  ...(advice && { advice }),
});

describe('keys', () => {
  const world = testWorld();
  let developerId: number;

  beforeEach(async () => (developerId = await world.newDeveloper()));

  function newKey(details: Partial<KeyDetails> = {}): Promise<CreatedKey> {
    return createKey(world.db, { developerId, planId: 'pro', label: 'staging', ...details });
  }

  function find(key: string): Promise<Caller | undefined> {
    return findCaller(world.db, key);
  }

  async function areActive(...keys: readonly CreatedKey[]): Promise<boolean[]> {
    return Promise.all(keys.map(async ({ key }) => (await find(key)) !== undefined));
  }

  async function statesOfAll(): Promise<string[]> {
    return (await listKeys(world.db, developerId)).map((key) => stateOf(key).kind);
  }

  describe('changed by an operator', () => {
    it('created keys and developers are listed, and a key is found by its hash', async () => {
      const { db } = world;
      const developer = await createDeveloper(db, { projectName: 'Atlas', attributionRequired: true });
      const { id } = developer;
      assert.deepEqual((await listDevelopers(db)).at(-1), developer);
      const { key, ...record } = await createKey(db, { developerId: id, planId: 'pro', label: 'staging' });
      assert.deepEqual(record, {
        prefix: key.slice(0, 12),
        developerId: id,
        planId: 'pro',
        label: 'staging',
        createdAt: record.createdAt,
        lastUsedAt: null,
        lastRefusedAt: null,
        expiresAt: null,
        successor: null,
        revokedAt: null,
        isExpired: false,
        isSuspended: false,
      });
      assert.match(record.createdAt, RFC3339);
      const { key: other, ...second } = await createKey(db, { developerId: id, planId: 'free' });
      assert.deepEqual(await listKeys(db, id), [record, second]);
      assert.deepEqual((await listKeys(db)).slice(-2), [record, second]);

      const caller = await find(key);
      assert.deepEqual(caller, {
        keyId: caller?.keyId,
        keyPrefix: record.prefix,
        developerId: id,
        projectName: 'Atlas',
        attributionRequired: true,
        plan: { id: 'pro', name: 'Pro', requestsPerMinute: 600, requestsPerDay: 250_000, commercialUse: true },
        expiresAt: Infinity,
      });
      assert.equal((await find(other))?.plan.id, 'free');
      const stored = await db('api_keys').where({ prefix: record.prefix }).pluck<Buffer[]>('hash');
      assert.deepEqual(stored, [Buffer.from(hashOf(key), 'base64')]);
    });

    it('a repeated revocation or suspension keeps the first time', async () => {
      const { db } = world;
      const { prefix } = await newKey();
      const revoked = await revokeKey(db, prefix);
      assert.match(revoked.revokedAt ?? '', RFC3339);
      assert.equal(revoked.wasRevoked, false);
      assert.deepEqual(await revokeKey(db, prefix), { ...revoked, wasRevoked: true });
      const suspended = await suspendDeveloper(db, developerId);
      assert.match(suspended.suspendedAt ?? '', RFC3339);
      assert.deepEqual(await suspendDeveloper(db, developerId), suspended);
      const reinstated = await reinstateDeveloper(db, developerId);
      assert.deepEqual(reinstated, { ...suspended, suspendedAt: null });
      assert.deepEqual(await reinstateDeveloper(db, developerId), reinstated);
    });

    it('no UPDATE in SQL reactivates a revoked key, or gives it another hash', async () => {
      const { db } = world;
      const [{ prefix }, other] = [await newKey(), await newKey()];
      const { revokedAt } = await revokeKey(db, prefix);
      const row = () => db('api_keys').where({ prefix });
      for (const change of [
        { revoked_at: null },
        { revoked_at: '2100-01-01T00:00:00Z' },
        { hash: Buffer.alloc(32, 1) },
        { hash: Buffer.from(hashOf(other.key), 'base64') },
      ]) {
        await assert.rejects(row().update(change), /a revoked key stays revoked|api_keys_hash_unique/);
      }
      assert.equal(await row().update({ last_used_at: db.fn.now(), label: 'old' }), 1);
      assert.equal((await findKeyOf(db, developerId, prefix))?.revokedAt, revokedAt);
    });

    it('the database refuses keys and developers that are malformed', async () => {
      const { db } = world;
      const row = { prefix: 'svc_abcdefgh', hash: Buffer.alloc(32, 7), developer_id: developerId, plan_id: 'free' };
      await db('api_keys').insert(row);
      const other = { ...row, prefix: 'svc_other000', hash: Buffer.alloc(32) };
      for (const [change, constraint] of [
        [{ prefix: 'svc_abcdefg' }, 'api_keys_prefix_format'],
        [{ prefix: 'svc_abcdefgh\n' }, 'api_keys_prefix_format'],
        [{ hash: Buffer.alloc(31) }, 'api_keys_hash_length'],
        [{ label: '' }, 'api_keys_label_length'],
        [{ developer_id: 2_000_000_000 }, 'api_keys_developer_id_fkey'],
        [{ plan_id: 'gone' }, 'api_keys_plan_id_fkey'],
        [{ expires_at: 'infinity' }, 'api_keys_expires_at_finite'],
        [{ expires_at: '-infinity' }, 'api_keys_expires_at_finite'],
        [{ hash: row.hash }, 'api_keys_hash_unique'],
        [{ prefix: row.prefix }, 'api_keys_prefix_unique'],
      ] as const) {
        await assert.rejects(db('api_keys').insert({ ...other, ...change }), { constraint });
      }
      await assert.rejects(db('developers').where({ id: developerId }).delete(), {
        constraint: 'api_keys_developer_id_fkey',
      });
      await assert.rejects(world.newDeveloper(''), { constraint: 'developers_project_name_length' });
    });
  });

  describe('rolled', () => {
    function lifeOf({ createdAt, expiresAt }: KeyRecord): number {
      return (Date.parse(expiresAt ?? '') - Date.parse(createdAt)) / 1_000;
    }

    it('a rolled key has a successor with the same label, plan and developer, and is accepted for the overlap', async () => {
      const old = await newKey();
      const { successor, predecessor } = await rollKey(world.db, old.prefix, 3_600);
      const { label, planId, developerId: owner, expiresAt } = successor;
      assert.deepEqual([label, planId, owner, expiresAt], ['staging', 'pro', developerId, null]);
      // Both have the time of the one transaction.
      assert.equal(Date.parse(predecessor.expiresAt ?? '') - Date.parse(successor.createdAt), 3_600_000);
      assert.deepEqual(stateOf(predecessor), {
        kind: 'rolled',
        until: predecessor.expiresAt,
        successor: { prefix: successor.prefix, label: successor.label, isActive: true, isRolled: false },
      });
      assert.deepEqual(await areActive(old, successor), [true, true]);
      assert.deepEqual(await findKeyOf(world.db, developerId, old.prefix), predecessor);
      assert.equal(stateOf(await revokeKey(world.db, old.prefix)).kind, 'revoked');
      assert.deepEqual(await areActive(old, successor), [false, true]);
    });

    it('a record has its key and the successor by one clock, also in a transaction that began before they expired', async () => {
      const old = await newKey();
      const { successor } = await rollKey(world.db, old.prefix, 60);
      await world.db.transaction(async (waiting) => {
        await waiting.raw('select');
        for (const { prefix } of [old, successor]) {
          await world
            .db('api_keys')
            .where({ prefix })
            .update({ expires_at: world.db.raw('clock_timestamp()') });
        }
        const record = await findKeyOf(waiting, developerId, old.prefix);
        assert.deepEqual([record?.isExpired, record?.successor?.isActive], [true, false]);
      });
    });

    it('an overlap never prolongs a key, and its successor lives as long as the key was made to live', async () => {
      const old = await newKey({ expires: { kind: 'after', seconds: 90 * DAY_SECONDS } });
      const long = await rollKey(world.db, old.prefix, 100 * DAY_SECONDS);
      assert.equal(long.predecessor.expiresAt, old.expiresAt);
      assert.equal(lifeOf(long.successor), 90 * DAY_SECONDS);
      const short = await rollKey(world.db, long.successor.prefix, 60);
      assert.ok(lifeOf(short.predecessor) < lifeOf(long.successor));
      assert.equal(lifeOf(short.successor), 90 * DAY_SECONDS);
    });

    it('a key is not rolled twice, even by two who roll it at the same time', async () => {
      const { db } = world;
      const old = await newKey();
      const first = await db.transaction();
      const { successor } = await rollKey(first, old.prefix, 60);
      const second = assert.rejects(rollKey(db, old.prefix, 60), {
        reason: 'rolled',
        message: `Key ${old.prefix} has already been replaced by ${successor.prefix}.`,
        advice: 'Roll that key instead.',
      });
      try {
        await untilWaiting('the second waits for the first', db);
      } finally {
        await first.commit();
      }
      await second;
    });

    it('a rolled key names its own successor, and whether that is active', async () => {
      const { db } = world;
      const first = await newKey();
      const successor = async (): Promise<Successor | null | undefined> =>
        (await findKeyOf(db, developerId, first.prefix))?.successor;
      assert.equal(await successor(), null);
      const { successor: second } = await rollKey(db, first.prefix, 3_600);
      assert.deepEqual(await successor(), {
        prefix: second.prefix,
        label: second.label,
        isActive: true,
        isRolled: false,
      });
      await assert.rejects(rollKey(db, first.prefix, 60), { reason: 'rolled', otherPrefix: second.prefix });
      const { successor: third } = await rollKey(db, second.prefix, 0);
      assert.deepEqual(await successor(), {
        prefix: second.prefix,
        label: second.label,
        isActive: false,
        isRolled: true,
      });
      await assert.rejects(
        rollKey(db, first.prefix, 60),
        refused('not_replaced', /was replaced by svc_\w{8}, which is no longer active\.$/, /^Create a new one/),
      );
      assert.equal((await findPredecessor(db, second.prefix))?.prefix, first.prefix);
      assert.equal((await findPredecessor(db, third.prefix))?.prefix, second.prefix);
      assert.equal(await findPredecessor(db, first.prefix), undefined);
    });

    it('a key that is revoked, expired or unknown cannot be rolled', async () => {
      const [revoked, expired] = [await newKey(), await newKey()];
      await revokeKey(world.db, revoked.prefix);
      await expireIn(world.db, expired.prefix, 0);
      const refusal = /cannot be rolled\.$/;
      const advice = /^Create a new one: "catalog keys create --developer \d+ --plan pro"\.$/;
      await assert.rejects(rollKey(world.db, revoked.prefix, 60), refused('revoked', refusal, advice));
      await assert.rejects(rollKey(world.db, expired.prefix, 60), refused('expired', refusal, advice));
      await assert.rejects(rollKey(world.db, 'svc_00000000', 60), refused('unknown'));
    });

    it('a key that is rolled without an overlap ends at once, and is refused later as a rolled key', async () => {
      const old = await newKey();
      const { successor, predecessor } = await rollKey(world.db, old.prefix, 0);
      assert.deepEqual(await areActive(old, successor), [false, true]);
      assert.deepEqual(stateOf(predecessor), { kind: 'expired', at: predecessor.expiresAt });
      const replaced = new RegExp(`replaced by ${successor.prefix}`);
      await assert.rejects(rollKey(world.db, old.prefix, 60), refused('rolled', replaced));
      await revokeKey(world.db, successor.prefix);
      await assert.rejects(rollKey(world.db, old.prefix, 60), refused('not_replaced', replaced));
    });
  });

  describe('changed by their developer', () => {
    /** The developer, by a form that has not been sent before unless one is given. */
    function own(formHash = generateToken().hash): KeyActor {
      return { kind: 'developer', developerId, formHash };
    }

    function create(by = own()): Promise<CreatedKey> {
      return createKey(world.db, { developerId }, by);
    }

    function roll(prefix = '', overlapSeconds = 60, by = own()): Promise<RolledKey> {
      return rollKey(world.db, prefix, overlapSeconds, by);
    }

    function fill(): Promise<CreatedKey[]> {
      return Promise.all(Array.from({ length: MAX_ACTIVE_KEYS }, () => create()));
    }

    /** Why the rejected attempts were refused. */
    async function refusalsOf(attempts: readonly Promise<unknown>[]): Promise<KeyRefused[]> {
      const outcomes = await Promise.allSettled(attempts);
      return outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as KeyRefused] : []));
    }

    it('a key that a developer creates is on the plan of the developer', async () => {
      assert.equal((await create()).planId, 'free');
      await setDeveloperPlan(world.db, developerId, 'pro');
      assert.equal((await create()).planId, 'pro');
    });

    it('a developer has at most 20 active keys, even when they are created at the same time', async () => {
      const refusals = await refusalsOf(Array.from({ length: MAX_ACTIVE_KEYS + 12 }, () => create()));
      assert.deepEqual(
        refusals.map(({ reason }) => reason),
        Array<string>(12).fill('too_many'),
      );
      assert.equal((await listKeys(world.db, developerId)).length, 20);
    });

    it('a developer creates at most 100 keys in 24 hours, and those of an operator do not count', async () => {
      const { db } = world;
      await newKey();
      await db.raw(
        `insert into api_keys (prefix, hash, developer_id, plan_id, created_at, revoked_at, form_hash)
         select 'svc_' || substr(md5(:id || '-' || n), 1, 8), sha256((:id || '-' || n)::bytea), :id, 'free',
                now() - case when n <= 90 then interval '23 hours 59 minutes' else interval '24 hours' end, now(), sha256(n::text::bytea)
           from generate_series(1, 200) n`,
        { id: developerId },
      );
      const refusals = await refusalsOf(Array.from({ length: 15 }, () => create()));
      assert.deepEqual(
        refusals.map(({ reason }) => reason),
        Array<string>(5).fill('too_many_today'),
      );
      const [newest] = await listKeysOf(db, developerId, { limit: 1 });
      await assert.rejects(roll(newest?.prefix), refused('too_many_today'));
      await newKey();
    });

    it('a revoked or expired key makes room for another one, and a rolled key does not', async () => {
      const [first, second, third] = await fill();
      await assert.rejects(create(), refused('too_many'));
      await roll(first?.prefix);
      await assert.rejects(create(), refused('too_many'));
      await revokeKey(world.db, second?.prefix ?? '', own());
      await create();
      await assert.rejects(create(), refused('too_many'));
      await expireIn(world.db, third?.prefix ?? '', 0);
      await create();
    });

    it('a developer has at most 20 rolled keys that are still active, and rolls more only without an overlap', async () => {
      const successors: CreatedKey[] = [];
      for (const { prefix } of await fill()) successors.push((await roll(prefix)).successor);
      const next = successors[0]?.prefix;
      await assert.rejects(roll(next), refused('too_many_rolled'));
      await roll(next, 0);
    });

    it('a form creates one key, even when it is sent several times at once, and is stored as a hash', async () => {
      const { token, hash } = generateToken();
      const refusals = await refusalsOf([1, 2, 3].map(() => create(own(hash))));
      const [made, ...others] = await world
        .db('api_keys')
        .where({ developer_id: developerId })
        .select<{ prefix: string; form_hash: Buffer }[]>('prefix', 'form_hash');
      assert.deepEqual(others, []);
      assert.deepEqual(
        refusals.map(({ reason, otherPrefix }) => [reason, otherPrefix]),
        Array(2).fill(['repeated', made?.prefix]),
      );
      assert.ok(made?.form_hash.length === 32 && !made.form_hash.includes(token));
      const { hash: rolling } = generateToken();
      const { successor } = await roll(made.prefix, 60, own(rolling));
      await assert.rejects(roll(successor.prefix, 60, own(rolling)), {
        reason: 'repeated',
        otherPrefix: successor.prefix,
      });
      assert.equal((await listKeys(world.db, developerId)).length, 2);
    });

    it('a developer changes no key of another developer, and none while suspended', async () => {
      const { prefix } = await create();
      const other: KeyActor = { kind: 'developer', developerId: await world.newDeveloper() };
      await assert.rejects(roll(prefix, 0, other), refused('unknown'));
      await assert.rejects(revokeKey(world.db, prefix, other), refused('unknown'));
      await suspendDeveloper(world.db, developerId);
      for (const attempt of [() => create(), () => roll(prefix, 0), () => revokeKey(world.db, prefix, own())]) {
        await assert.rejects(attempt, refused('suspended'));
      }
      assert.deepEqual(await statesOfAll(), ['active']);
    });
  });

  it('the finder of a whole key can revoke it, and no other key', async () => {
    const [found, other] = [await newKey(), await newKey()];
    const hashes = [hashOf(found.key), hashOf(generateApiKey().key)];
    const { developerId } = found;
    for (const wasRevoked of [false, true]) {
      const known = new Map([[hashes[0], { developerId, wasRevoked }]]);
      assert.deepEqual(await revokeFoundKeys(world.db, hashes), known);
    }
    assert.deepEqual(await areActive(found, other), [false, true]);
  });

  it('of two who find a key at once, one changes it', async () => {
    const hashes = [hashOf((await newKey()).key)];
    const holder = await world.db.transaction();
    await holder('api_keys').forNoKeyUpdate().select('id');
    const finding = [1, 2].map(() => revokeFoundKeys(world.db, hashes));
    await untilWaiting('both finders wait', world.db, 2);
    await holder.commit();
    const results = (await Promise.all(finding)).flatMap((found) => Array.from(found.values(), (it) => it.wasRevoked));
    assert.deepEqual(results.sort(), [false, true]);
  });
});
