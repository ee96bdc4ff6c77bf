import assert from 'node:assert/strict';
import { OperatorError } from '../../src/errors.js';
import { listPlans, setPlan } from '../../src/limits/plans.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

const FREE = { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 10_000, commercialUse: false };
const PRO = { id: 'pro', name: 'Pro', requestsPerMinute: 600, requestsPerDay: 250_000, commercialUse: true };
const SCALE = { id: 'scale', name: 'Scale', requestsPerMinute: 6_000, requestsPerDay: 5_000_000, commercialUse: true };

describe('plans', () => {
  let database: OpenTestDatabase;

  beforeEach(async () => {
    database = await openTestDatabase();
  });

  afterEach(() => database.close());

  it('are three to begin with', async () => {
    assert.deepEqual(await listPlans(database.db), [FREE, PRO, SCALE]);
  });

  it('are added whole', async () => {
    const gold = { name: 'Gold', requestsPerMinute: 700, requestsPerDay: 1_000, commercialUse: true };
    assert.deepEqual(await setPlan(database.db, 'gold', gold), { plan: { id: 'gold', ...gold }, created: true });
    assert.deepEqual(await listPlans(database.db), [FREE, PRO, { id: 'gold', ...gold }, SCALE]);
    for (const name of ['name', 'requestsPerMinute', 'requestsPerDay', 'commercialUse'] as const) {
      const { [name]: _left, ...rest } = gold;
      await assert.rejects(
        setPlan(database.db, 'new', rest),
        (error) => error instanceof OperatorError && error.message.startsWith('There is no plan "new" yet'),
      );
    }
    assert.equal((await listPlans(database.db)).length, 4);
  });

  it('are changed in part', async () => {
    const change = { requestsPerMinute: 61, commercialUse: true };
    assert.deepEqual(await setPlan(database.db, 'free', change), { plan: { ...FREE, ...change }, created: false });
    assert.deepEqual(await setPlan(database.db, 'free', {}), { plan: { ...FREE, ...change }, created: false });
    assert.deepEqual(await listPlans(database.db), [{ ...FREE, ...change }, PRO, SCALE]);
  });

  it('are held to their form by the database', async () => {
    for (const [id, change, constraint] of [
      ['Gold', {}, 'plans_id_format'],
      ['x'.repeat(33), {}, 'plans_id_format'],
      ['gold', { name: '' }, 'plans_name_length'],
      ['gold', { requestsPerMinute: 0 }, 'plans_requests_per_minute_positive'],
      ['gold', { requestsPerDay: -1 }, 'plans_requests_per_day_positive'],
    ] as const) {
      await assert.rejects(setPlan(database.db, id, { ...FREE, ...change }), { constraint });
    }
    assert.deepEqual(await listPlans(database.db), [FREE, PRO, SCALE]);
  });
});
