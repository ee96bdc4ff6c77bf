import assert from 'node:assert/strict';
import { generateApiKey } from '../../src/keys/api-key.js';
import { DatabaseLookups } from '../../src/keys/lookups.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';

describe('lookups of keys', () => {
  let database: OpenTestDatabase;

  before(async () => {
    database = await openTestDatabase();
  });

  after(() => database.close());

  /** How many look a key up at this moment, held up by a lock on the keys. */
  async function waitingForLock(): Promise<number> {
    const { rows } = await database.db.raw<{ rows: { count: number }[] }>(
      `select count(*) from pg_locks where relation = 'api_keys'::regclass and not granted`,
    );
    return rows[0]?.count ?? 0;
  }

  it('leave connections to everybody else, however many suspect ones there are', async () => {
    const lookups = new DatabaseLookups(database.db, 3);
    const lock = await database.db.transaction();
    await lock.raw('lock table api_keys in access exclusive mode');
    const suspects = Array.from({ length: 50 }, () => lookups.find(generateApiKey().key, true));
    await eventually('three suspects are under way', async () => (await waitingForLock()) === 3);
    const others = Array.from({ length: 4 }, () => lookups.find(generateApiKey().key, false));
    await eventually('the others are too', async () => (await waitingForLock()) === 3 + 4);
    await lock.commit();
    assert.deepEqual(new Set(await Promise.all([...suspects, ...others])), new Set([undefined]));
    // All places are free again.
    const again = await Promise.all(Array.from({ length: 10 }, () => lookups.find(generateApiKey().key, true)));
    assert.equal(again.length, 10);
  });

  it('give a place back after a failure', async () => {
    const lookups = new DatabaseLookups(database.db, 1);
    await database.db.schema.renameTable('plans', 'plans_lost');
    for (let i = 0; i < 3; i += 1) await assert.rejects(lookups.find(generateApiKey().key, true));
    await database.db.schema.renameTable('plans_lost', 'plans');
    assert.equal(await lookups.find(generateApiKey().key, true), undefined);
  });
});
