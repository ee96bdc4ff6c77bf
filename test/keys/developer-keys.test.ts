import assert from 'node:assert/strict';
import { generateToken } from '../../src/accounts/tokens.js';
import { createDeveloper, setDeveloperPlan, suspendDeveloper } from '../../src/developers/developers.js';
import { revokeFoundKeys } from '../../src/keys/revoke.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { stateOf } from '../../src/keys/key-record.js';
import type { KeyRefused } from '../../src/keys/key-refused.js';
import { createKey, listKeys, listKeysOf } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import type { CreatedKey } from '../../src/keys/new-key.js';
import {
  createOwnKey,
  MOST_WORKING_KEYS,
  revokeOwnKey,
  rollOwnKey,
  type OwnKeyDetails,
} from '../../src/keys/developer-keys.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { expireIn } from '../support/keys/expiry.js';
import { hashOf } from '../support/keys/key-hash.js';

describe('keys that developers make themselves', () => {
  let database: OpenTestDatabase;
  let developerId: number;

  before(async () => (database = await openTestDatabase()));
  after(() => database.close());

  beforeEach(async () => {
    developerId = (await createDeveloper(database.db, { projectName: 'P', attributionRequired: false })).id;
  });

  function create(details: Partial<OwnKeyDetails> = {}): Promise<CreatedKey> {
    return createOwnKey(database.db, developerId, {
      label: null,
      expires: undefined,
      formHash: generateToken().hash,
      ...details,
    });
  }

  function roll(
    prefix: string,
    overlapSeconds: number,
    formHash = generateToken().hash,
  ): ReturnType<typeof rollOwnKey> {
    return rollOwnKey(database.db, developerId, { prefix, overlapSeconds, formHash });
  }

  async function fill(): Promise<CreatedKey[]> {
    return Promise.all(Array.from({ length: MOST_WORKING_KEYS }, () => create()));
  }

  it('take the plan of the developer', async () => {
    assert.equal((await create()).planId, 'free');
    await setDeveloperPlan(database.db, developerId, 'pro');
    const { planId, label, expiresAt, createdAt } = await create({
      label: 'ci',
      expires: { kind: 'after', seconds: 60 },
    });
    assert.deepEqual({ planId, label }, { planId: 'pro', label: 'ci' });
    assert.equal(Date.parse(expiresAt ?? '') - Date.parse(createdAt), 60_000);
  });

  it('are at most 20 that work, also where they are made at the same time', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: MOST_WORKING_KEYS + 12 }, () => create()));
    const made = outcomes.filter(({ status }) => status === 'fulfilled');
    assert.equal(made.length, 20);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.equal((outcome.reason as { reason: string }).reason, 'too_many');
    }
    assert.equal((await listKeys(database.db, developerId)).length, 20);
  });

  it('are at most 100 in 24 hours, also where they are made at the same time; those of an operator do not count', async () => {
    await createKey(database.db, { developerId, planId: 'free' });
    await database.db.raw(
      `insert into api_keys (prefix, hash, developer_id, plan_id, created_at, revoked_at, form_hash)
       select 'svc_' || substr(md5(:id || '-' || n), 1, 8), sha256((:id || '-' || n)::bytea), :id, 'free',
              now() - case when n <= 90 then interval '23 hours 59 minutes' else interval '24 hours' end, now(), sha256(n::text::bytea)
         from generate_series(1, 200) n`,
      { id: developerId },
    );
    const outcomes = await Promise.allSettled(Array.from({ length: 15 }, () => create()));
    const refused = outcomes.flatMap((it) => (it.status === 'rejected' ? [(it.reason as KeyRefused).reason] : []));
    assert.deepEqual(
      refused,
      Array.from({ length: 5 }, () => 'too_many_today'),
    );
    const [newest] = await listKeysOf(database.db, developerId, { limit: 1, offset: 0 });
    await assert.rejects(roll(newest?.prefix ?? '', 60), { reason: 'too_many_today' });
    await createKey(database.db, { developerId, planId: 'free' });
  });

  it('make room when one is revoked or expires, and not when one is rolled', async () => {
    const [first, second, third] = await fill();
    await assert.rejects(create(), { reason: 'too_many' });
    await roll(first?.prefix ?? '', 3_600);
    await assert.rejects(create(), { reason: 'too_many' });
    await revokeOwnKey(database.db, developerId, second?.prefix ?? '');
    await create();
    await assert.rejects(create(), { reason: 'too_many' });
    await expireIn(database.db, third?.prefix ?? '', 0);
    await create();
  });

  it('may go on after they were rolled, at most 20 of them; more are rolled without an overlap', async () => {
    const keys = await fill();
    const successors = [];
    for (const { prefix } of keys) successors.push((await roll(prefix, 3_600)).successor);
    const next = successors[0]?.prefix ?? '';
    await assert.rejects(roll(next, 60), { reason: 'too_many' });
    await roll(next, 0);
  });

  it('are made once by a form, also where it is sent twice at the same time', async () => {
    const { hash: formHash } = generateToken();
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => create({ formHash })));
    const keys = await listKeys(database.db, developerId);
    assert.equal(keys.length, 1);
    const refusals = outcomes.flatMap((it) => (it.status === 'rejected' ? [it.reason as Record<string, unknown>] : []));
    assert.deepEqual(
      refusals.map(({ reason, otherPrefix }) => ({ reason, otherPrefix })),
      [1, 2].map(() => ({ reason: 'repeated', otherPrefix: keys[0]?.prefix })),
    );
    const { hash: rolling } = generateToken();
    const { successor } = await roll(keys[0]?.prefix ?? '', 60, rolling);
    await assert.rejects(roll(successor.prefix, 60, rolling), { reason: 'repeated', otherPrefix: successor.prefix });
    assert.equal((await listKeys(database.db, developerId)).length, 2);
  });

  it('are revoked once, and stay so', async () => {
    const { prefix } = await create();
    assert.equal(await revokeOwnKey(database.db, developerId, prefix), true);
    assert.equal(await revokeOwnKey(database.db, developerId, prefix), false);
    assert.deepEqual(
      (await listKeys(database.db, developerId)).map((key) => stateOf(key).kind),
      ['revoked'],
    );
  });

  it('keep nothing of a form that could be read', async () => {
    const { token, hash: formHash } = generateToken();
    await create({ formHash });
    const [row] = await database.db('api_keys').where({ developer_id: developerId }).select<{ form_hash: Buffer }[]>();
    assert.equal(row?.form_hash.length, 32);
    assert.ok(!row.form_hash.includes(token));
  });

  it('are refused to a suspended developer, who cannot roll or revoke either', async () => {
    const { prefix } = await create();
    await suspendDeveloper(database.db, developerId);
    await assert.rejects(create(), { reason: 'suspended' });
    await assert.rejects(roll(prefix, 0), { reason: 'suspended' });
    await assert.rejects(revokeOwnKey(database.db, developerId, prefix), { reason: 'suspended' });
    assert.deepEqual(
      (await listKeys(database.db, developerId)).map((key) => stateOf(key).kind),
      ['working'],
    );
  });

  it('are out of reach of another developer', async () => {
    const { id } = await createDeveloper(database.db, { projectName: 'Q', attributionRequired: false });
    const { prefix } = await createKey(database.db, { developerId: id, planId: 'free' });
    await assert.rejects(roll(prefix, 0), { reason: 'unknown' });
    await assert.rejects(revokeOwnKey(database.db, developerId, prefix), { reason: 'unknown' });
    assert.deepEqual(
      (await listKeys(database.db, id)).map((key) => stateOf(key).kind),
      ['working'],
    );
  });

  it('are revoked by a finder who has the whole key, and no other key is', async () => {
    const [found, other] = [await create(), await create()];
    const hashes = [hashOf(found.key), hashOf(generateApiKey().key)];
    const known = new Set(hashes.slice(0, 1));
    assert.deepEqual(await revokeFoundKeys(database.db, hashes), { known, isChanged: true });
    assert.deepEqual(await revokeFoundKeys(database.db, hashes), { known, isChanged: false });
    const states = new Map(
      (await listKeys(database.db, developerId)).map((key) => [key.prefix, stateOf(key).kind] as const),
    );
    assert.deepEqual([states.get(found.prefix), states.get(other.prefix)], ['revoked', 'working']);
    await assert.rejects(revokeKey(database.db, { hash: hashOf(generateApiKey().key) }), { reason: 'unknown' });
  });
});
