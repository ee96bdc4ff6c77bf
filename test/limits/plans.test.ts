import assert from 'node:assert/strict';
import { OperatorError } from '../../src/errors.js';
import { listPlans, setPlan } from '../../src/limits/plans.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { testWorld } from '../support/world.js';

const FREE = { id: 'free', name: 'Free', requestsPerMinute: 60, requestsPerDay: 10_000, commercialUse: false };
const PRO = { id: 'pro', name: 'Pro', requestsPerMinute: 600, requestsPerDay: 250_000, commercialUse: true };
const SCALE = { id: 'scale', name: 'Scale', requestsPerMinute: 6_000, requestsPerDay: 5_000_000, commercialUse: true };

describe('plans', () => {
  const world = testWorld({ each: true });

  it('a new database has three plans', async () => {
    assert.deepEqual(await listPlans(world.db), [FREE, PRO, SCALE]);
  });

  it('a new plan needs every value', async () => {
    const gold = { name: 'Gold', requestsPerMinute: 700, requestsPerDay: 1_000, commercialUse: true };
    assert.deepEqual(await setPlan(world.db, 'gold', gold), { plan: { id: 'gold', ...gold }, created: true });
    assert.deepEqual(await listPlans(world.db), [FREE, PRO, { id: 'gold', ...gold }, SCALE]);
    for (const name of ['name', 'requestsPerMinute', 'requestsPerDay', 'commercialUse'] as const) {
      const { [name]: _left, ...rest } = gold;
      await assert.rejects(
        setPlan(world.db, 'new', rest),
        (error) => error instanceof OperatorError && error.message.startsWith('There is no plan "new" yet'),
      );
    }
    assert.equal((await listPlans(world.db)).length, 4);
  });

  it('a change of a plan leaves its other values', async () => {
    const change = { requestsPerMinute: 61, commercialUse: true };
    assert.deepEqual(await setPlan(world.db, 'free', change), { plan: { ...FREE, ...change }, created: false });
    assert.deepEqual(await setPlan(world.db, 'free', {}), { plan: { ...FREE, ...change }, created: false });
    assert.deepEqual(await listPlans(world.db), [{ ...FREE, ...change }, PRO, SCALE]);
  });

  it('two operators who change different values of a plan at once both succeed', async () => {
    const other = await world.db.transaction();
    await other('plans').where({ id: 'free' }).update({ requests_per_minute: 61 });
    const renaming = setPlan(world.db, 'free', { name: 'Starter' });
    await untilWaiting('the second waits', world.db);
    await other.commit();
    await renaming;
    const [changed] = await listPlans(world.db);
    assert.deepEqual(changed, { ...FREE, name: 'Starter', requestsPerMinute: 61 });
  });

  it('the database refuses malformed plans', async () => {
    for (const [id, change, constraint] of [
      ['Gold', {}, 'plans_id_format'],
      ['x'.repeat(33), {}, 'plans_id_format'],
      ['gold', { name: '' }, 'plans_name_length'],
      ['gold', { requestsPerMinute: 0 }, 'plans_requests_per_minute_positive'],
      ['gold', { requestsPerDay: -1 }, 'plans_requests_per_day_positive'],
    ] as const) {
      await assert.rejects(setPlan(world.db, id, { ...FREE, ...change }), { constraint });
    }
    assert.deepEqual(await listPlans(world.db), [FREE, PRO, SCALE]);
  });
});
