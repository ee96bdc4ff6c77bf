import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { lagOf } from '../../../src/platform/postgres/replica.js';

/** A database that answers each query with the next row, and then with the last one. */
function answering(...rows: readonly object[]): Knex {
  const left = [...rows];
  return { raw: () => Promise.resolve({ rows: [left.length > 1 ? left.shift() : left[0]] }) } as unknown as Knex;
}

describe('the delay of several replicas at one address', () => {
  it('one that has everything hides none that is behind', async () => {
    const lag = lagOf(
      answering({ position: '0/1' }),
      answering(
        { server: 'a', isCaughtUp: true, age: 5 },
        { server: 'b', isCaughtUp: false, age: 3_600 },
        { server: 'a', isCaughtUp: false, age: 3_600 },
      ),
    );
    assert.deepEqual([await lag(), await lag()], [0, 3_600]);
    const behind = (await lag()) ?? assert.fail();
    assert.ok(behind < 3_600, String(behind));
  });
});
