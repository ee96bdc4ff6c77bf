import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { createSignInLink, spendSignInLink } from '../../src/accounts/sign-in-links.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

describe('sign-in links', () => {
  let database: OpenTestDatabase;
  let db: Knex;
  let developerId: number;

  before(async () => {
    database = await openTestDatabase();
    ({ db } = database);
    ({ id: developerId } = await createDeveloper(db, { projectName: 'P', attributionRequired: false }));
  });

  after(() => database.close());

  it('sign their developer in once', async () => {
    const token = await createSignInLink(db, developerId);
    assert.equal(await spendSignInLink(db, token), developerId);
    assert.equal(await spendSignInLink(db, token), undefined);
  });

  it('have one winner among many who spend the same one at the same time', async () => {
    const token = await createSignInLink(db, developerId);
    const results = await Promise.all(Array.from({ length: 12 }, () => spendSignInLink(db, token)));
    assert.deepEqual(
      results.filter((result) => result !== undefined),
      [developerId],
    );
  });

  it('stay usable when the transaction that spends them fails', async () => {
    const token = await createSignInLink(db, developerId);
    await assert.rejects(
      db.transaction(async (transaction) => {
        assert.equal(await spendSignInLink(transaction, token), developerId);
        throw new Error('the session could not be started');
      }),
      /could not be started/,
    );
    assert.equal(await spendSignInLink(db, token), developerId);
  });

  it('work for ten minutes by the clock of the database', async () => {
    const [early, late] = [await createSignInLink(db, developerId), await createSignInLink(db, developerId)];
    // As if they had been made so long ago.
    const age = (by: string) => db('sign_in_links').update({ expires_at: db.raw('expires_at - ?::interval', [by]) });
    await age('9 minutes 50 seconds');
    assert.equal(await spendSignInLink(db, early), developerId);
    await age('11 seconds');
    assert.equal(await spendSignInLink(db, late), undefined);
  });

  it('are 256 random bits of which the database has the SHA-256 alone', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => createSignInLink(db, developerId)));
    assert.equal(new Set(tokens).size, 20);
    for (const token of tokens) assert.match(token, /^[0-9a-f]{64}$/);
    const stored = JSON.stringify(await db('sign_in_links').select(db.raw("encode(hash, 'hex') as hash")));
    for (const token of tokens) assert.ok(!stored.includes(token));
  });

  it('are not made for a developer who is not there', async () => {
    await assert.rejects(createSignInLink(db, 999), {
      name: 'OperatorError',
      message: 'There is no developer 999. "catalog developers list" shows them all.',
    });
  });

  it('cost no query where the text has not their form', async () => {
    const queries: string[] = [];
    db.on('query', ({ sql }: { sql: string }) => queries.push(sql));
    for (const text of [undefined, '', 'abc', 'g'.repeat(64), `${'a'.repeat(64)}\n`, 'A'.repeat(64)]) {
      assert.equal(await spendSignInLink(db, text), undefined);
    }
    assert.deepEqual(queries, []);
  });
});
