import assert from 'node:assert/strict';
import type { Caller } from '../../src/admission/callers.js';
import { callerLoader } from '../../src/admission/caller-loader.js';
import {
  createDeveloper,
  listDevelopers,
  reinstateDeveloper,
  suspendDeveloper,
} from '../../src/developers/developers.js';
import { OperatorError } from '../../src/errors.js';
import { createKey, listKeys, setKeyPlan } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { hashOf } from '../support/keys/key-hash.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

describe('keys and developers', () => {
  let database: OpenTestDatabase;

  before(async () => {
    database = await openTestDatabase();
  });

  after(() => database.close());

  function find(key: string): Promise<Caller | undefined> {
    return callerLoader(database.db, 1)(hashOf(key));
  }

  it('are created, listed and found', async () => {
    const { db } = database;
    const developer = await createDeveloper(db, { projectName: 'Atlas', attributionRequired: true });
    assert.deepEqual(developer, {
      id: developer.id,
      projectName: 'Atlas',
      attributionRequired: true,
      planId: 'free',
      suspendedAt: null,
      createdAt: developer.createdAt,
    });
    assert.match(developer.createdAt, RFC3339);
    const { key, ...record } = await createKey(db, { developerId: developer.id, planId: 'pro', label: 'staging' });
    assert.deepEqual(record, {
      prefix: key.slice(0, 12),
      developerId: developer.id,
      planId: 'pro',
      label: 'staging',
      createdAt: record.createdAt,
      lastUsedAt: null,
      expiresAt: null,
      successor: null,
      revokedAt: null,
      isExpired: false,
    });
    const { key: secondKey, ...second } = await createKey(db, { developerId: developer.id, planId: 'free' });
    assert.equal(second.label, null);
    assert.deepEqual(await listKeys(db, developer.id), [record, second]);
    assert.deepEqual(await listKeys(db, developer.id + 1), []);
    assert.deepEqual(await listKeys(db), [record, second]);
    assert.deepEqual(await listDevelopers(db), [developer]);

    const caller = await find(key);
    assert.deepEqual(caller, {
      keyId: caller?.keyId,
      keyPrefix: record.prefix,
      developerId: developer.id,
      projectName: 'Atlas',
      attributionRequired: true,
      plan: { id: 'pro', name: 'Pro', requestsPerMinute: 600, requestsPerDay: 250_000, commercialUse: true },
      expiresAt: Infinity,
    });
    assert.equal((await find(secondKey))?.plan.id, 'free');
    const stored = await db('api_keys').where({ prefix: record.prefix }).pluck<Buffer[]>('hash');
    assert.deepEqual(stored, [Buffer.from(hashOf(key), 'base64')]);
  });

  it('keep the first time of a revocation and of a suspension', async () => {
    const { db } = database;
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    const { prefix } = await createKey(db, { developerId: id, planId: 'free' });
    const revoked = await revokeKey(db, prefix);
    assert.match(revoked.revokedAt ?? '', RFC3339);
    assert.deepEqual(await revokeKey(db, prefix), revoked);
    const suspended = await suspendDeveloper(db, id);
    assert.match(suspended.suspendedAt ?? '', RFC3339);
    assert.deepEqual(await suspendDeveloper(db, id), suspended);
    const reinstated = await reinstateDeveloper(db, id);
    assert.deepEqual(reinstated, { ...suspended, suspendedAt: null });
    assert.deepEqual(await reinstateDeveloper(db, id), reinstated);
  });

  it('move to another plan, unless they are on it or revoked', async () => {
    const { db } = database;
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    const { key, ...record } = await createKey(db, { developerId: id, planId: 'free', label: 'staging' });
    const { prefix } = record;
    const moved = { ...record, planId: 'pro' };
    assert.deepEqual(await setKeyPlan(db, prefix, 'pro'), { record: moved, previousPlanId: 'free' });
    assert.deepEqual(await listKeys(db, id), [moved]);
    assert.equal((await find(key))?.plan.id, 'pro');
    // The version of a row: what wrote it last.
    const version = (): Promise<unknown> => db('api_keys').where({ prefix }).first<unknown>(db.raw('xmin::text'));
    const before = await version();
    assert.deepEqual(await setKeyPlan(db, prefix, 'pro'), { record: moved, previousPlanId: 'pro' });
    assert.deepEqual(await version(), before);
    await assert.rejects(setKeyPlan(db, prefix, 'gone'), /There is no plan "gone"\..*plans list/);
    assert.deepEqual(await listKeys(db, id), [moved]);
    const revoked = await revokeKey(db, prefix);
    for (const plan of ['pro', 'free']) {
      await assert.rejects(setKeyPlan(db, prefix, plan), {
        name: 'OperatorError',
        message: `Key ${prefix} is revoked, and stays so. Create a new one: "catalog keys create --developer ${id} --plan ${plan}".`,
      });
    }
    assert.deepEqual(await listKeys(db, id), [revoked]);
  });

  it('say what is missing', async () => {
    const { db } = database;
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    const nobody = 2_000_000_000;
    for (const [attempt, message] of [
      [() => createKey(db, { developerId: nobody, planId: 'free' }), /There is no developer 2000000000\./],
      [() => createKey(db, { developerId: id, planId: 'gone' }), /There is no plan "gone"/],
      [() => revokeKey(db, 'svc_00000000'), /No key has the prefix "svc_00000000"/],
      [() => setKeyPlan(db, 'svc_00000000', 'free'), /No key has the prefix "svc_00000000"/],
      [() => suspendDeveloper(db, nobody), /There is no developer 2000000000/],
      [() => reinstateDeveloper(db, nobody), /There is no developer 2000000000/],
    ] as const) {
      await assert.rejects(attempt, (error) => error instanceof OperatorError && message.test(error.message));
    }
  });

  it('are held to their form by the database', async () => {
    const { db } = database;
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    const row = { prefix: 'svc_abcdefgh', hash: Buffer.alloc(32, 7), developer_id: id, plan_id: 'free' };
    for (const [change, constraint] of [
      [{ prefix: 'svc_abcdefg' }, 'api_keys_prefix_format'],
      [{ prefix: 'svc_abcdefgh\n' }, 'api_keys_prefix_format'],
      [{ hash: Buffer.alloc(31) }, 'api_keys_hash_length'],
      [{ label: '' }, 'api_keys_label_length'],
      [{ developer_id: 2_000_000_000 }, 'api_keys_developer_id_fkey'],
      [{ plan_id: 'gone' }, 'api_keys_plan_id_fkey'],
    ] as const) {
      await assert.rejects(db('api_keys').insert({ ...row, ...change }), { constraint });
    }
    await db('api_keys').insert(row);
    await assert.rejects(db('api_keys').insert({ ...row, prefix: 'svc_other000' }), {
      constraint: 'api_keys_hash_unique',
    });
    await assert.rejects(db('api_keys').insert({ ...row, hash: Buffer.alloc(32) }), {
      constraint: 'api_keys_prefix_unique',
    });
    await assert.rejects(db('developers').where({ id }).delete(), { constraint: 'api_keys_developer_id_fkey' });
    await assert.rejects(createDeveloper(db, { projectName: '', attributionRequired: false }), {
      constraint: 'developers_project_name_length',
    });
  });
});
