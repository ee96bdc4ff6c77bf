import assert from 'node:assert/strict';
import { poolOf } from '../../src/platform/database.js';
import { Statement } from '../../src/platform/statement.js';
import { eventually } from '../support/eventually.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

const SUM = new Statement<{ sum: number }, [a: number, b: number]>('test-sum', (db, a, b) =>
  db.select(db.raw('?::integer - ?::integer as sum', [b, a])),
);

describe('a statement', () => {
  let database: OpenTestDatabase;
  before(async () => (database = await openTestDatabase()));
  after(() => database.close());

  it('puts values where its query has them, and is prepared once on a connection', async () => {
    const { db } = database;
    for (const [a, b, sum] of [
      [1, 2, 1],
      [5, 3, -2],
    ] as const) {
      assert.deepEqual(await SUM.rows(db, a, b), [{ sum }]);
      assert.deepEqual(await SUM.first(db, a, b), { sum });
    }
    const prepared = await poolOf(db).query<{ statement: string }>({
      text: "select statement from pg_prepared_statements where name = 'test-sum'",
    });
    assert.deepEqual(prepared.rows, [{ statement: 'select $1::integer - $2::integer as sum' }]);
  });

  it('runs in a transaction where it is given one', async () => {
    const whoAmI = new Statement<{ id: string }>('test-transaction', (db) =>
      db.select(db.raw('pg_current_xact_id()::text as id')),
    );
    await database.db.transaction(async (transaction) => {
      const [first, second] = [await whoAmI.first(transaction), await whoAmI.first(transaction)];
      assert.deepEqual(first, second);
      assert.notDeepEqual(first, await whoAmI.first(database.db));
    });
  });

  it('is told to whoever listens to queries', async () => {
    const heard: unknown[] = [];
    database.db.on('query', (query) => heard.push(query));
    await SUM.rows(database.db, 1, 2);
    assert.deepEqual(heard, [{ sql: 'select $1::integer - $2::integer as sum', bindings: [2, 1] }]);
  });

  it('refuses a constant among its values, which would be sent each time', async () => {
    const constant = new Statement('test-constant', (db) => db.select(db.raw('?::integer', [1])));
    await assert.rejects(constant.rows(database.db), /^Error: the statement test-constant binds a constant/);
  });

  it("fails with the database's error, and its connection goes on", async () => {
    const { db } = database;
    const fails = new Statement('test-fails', (builder) => builder.select(builder.raw('1 / 0')));
    const whoAmI = new Statement<{ pid: number }>('test-pid', (builder) =>
      builder.select(builder.raw('pg_backend_pid() as pid')),
    );
    const before = await whoAmI.rows(db);
    const { idle } = poolOf(db).state;
    await assert.rejects(fails.rows(db), { code: '22012', message: 'division by zero' });
    await eventually('it is given back', () => poolOf(db).state.used === 0);
    await assert.rejects(async () => db.raw('select 1 / 0'), { code: '22012' });
    await eventually('it is given back by Knex', () => poolOf(db).state.used === 0);
    assert.deepEqual(await whoAmI.rows(db), before);
    assert.equal(poolOf(db).state.idle, idle);
  });
});
