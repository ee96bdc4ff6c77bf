import assert from 'node:assert/strict';
import { openDatabase } from '../../../src/platform/postgres/database.js';
import { readInParts } from '../../../src/platform/postgres/rows.js';
import { testWorld } from '../../support/world.js';

const ROWS = 2_500;

describe('rows that are read in parts', () => {
  const world = testWorld();

  it('all arrive in order, and the connection is free again, also after an error and for a reader that stops early', async () => {
    // One connection: the next query waits for it.
    const bounds = { acquireTimeoutMs: 60_000, statementTimeoutMs: 60_000 };
    const db = openDatabase({ address: world.url, applicationName: 'test', poolSize: 1, ...bounds });
    world.defer(() => db.destroy());
    const query = { sql: 'select n from generate_series(1, :last) as n', bindings: { last: ROWS } };
    const readAll = async (): Promise<number[]> => {
      const read: number[] = [];
      for await (const rows of readInParts<{ n: number }>(db, query)) read.push(...rows.map(({ n }) => n));
      return read;
    };
    const stopEarly = async (): Promise<void> => {
      for await (const rows of readInParts(db, query)) {
        assert.ok(rows.length > 0 && rows.length < ROWS);
        break;
      }
    };
    const fail = (sql: string) => async (): Promise<void> => {
      await assert.rejects(readInParts(db, { sql, bindings: {} }).next(), { name: 'error' });
    };
    for (const first of [readAll, stopEarly, fail('select from nowhere'), fail('select 1 / 0')]) {
      await first();
      assert.deepEqual(
        await readAll(),
        Array.from({ length: ROWS }, (_, index) => index + 1),
      );
    }
  });
});
