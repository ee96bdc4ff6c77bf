import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { createOperatorLink, createSignInLink, spendLink } from '../../src/accounts/sign-in-links.js';
import { testWorld } from '../support/world.js';

describe('sign-in links', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper()));

  /** How a link is made and spent, and what somebody gets who spends one that is valid. */
  const ofDeveloper = {
    make: () => createSignInLink(world.db, developerId),
    spend: (db: Knex, token: string | undefined) => spendLink(db, 'developer', token),
    won: () => developerId,
  };
  const ofOperator = {
    make: () => createOperatorLink(world.db),
    spend: (db: Knex, token: string | undefined) => spendLink(db, 'operator', token),
    won: () => null,
  };
  const KINDS = [ofDeveloper, ofOperator];

  it('of many who spend the same sign-in link at once, one is signed in', async () => {
    for (const { make, spend, won } of KINDS) {
      const token = await make();
      const results = await Promise.all(Array.from({ length: 12 }, () => spend(world.db, token)));
      assert.deepEqual(
        results.filter((result) => result !== undefined),
        [won()],
      );
      assert.equal(await spend(world.db, token), undefined);
    }
  });

  it('a sign-in link signs in as what it was made for, and is kept when it is tried as another', async () => {
    for (const [own, other] of [
      [ofDeveloper, ofOperator],
      [ofOperator, ofDeveloper],
    ] as const) {
      const token = await own.make();
      assert.equal(await other.spend(world.db, token), undefined);
      assert.equal(await own.spend(world.db, token), own.won());
    }
  });

  it('a sign-in link stays usable when the transaction that spends it fails', async () => {
    const token = await createSignInLink(world.db, developerId);
    await assert.rejects(
      world.db.transaction(async (transaction) => {
        assert.equal(await spendLink(transaction, 'developer', token), developerId);
        throw new Error('the session could not be started');
      }),
      /could not be started/,
    );
    assert.equal(await spendLink(world.db, 'developer', token), developerId);
  });

  it('a sign-in link expires after ten minutes by the clock of the database', async () => {
    // As if the links had been made so long ago.
    const age = (by: string) =>
      world.db('sign_in_links').update({ expires_at: world.db.raw('expires_at - ?::interval', [by]) });
    for (const { make, spend, won } of KINDS) {
      const [early, late] = [await make(), await make()];
      await age('9 minutes 50 seconds');
      assert.equal(await spend(world.db, early), won());
      await age('11 seconds');
      assert.equal(await spend(world.db, late), undefined);
    }
  });

  it('a sign-in link has 256 random bits, and the database has only their SHA-256', async () => {
    const tokens = await Promise.all(KINDS.flatMap(({ make }) => Array.from({ length: 10 }, make)));
    assert.equal(new Set(tokens).size, 20);
    for (const token of tokens) assert.match(token, /^[0-9a-f]{64}$/);
    const stored = JSON.stringify(await world.db('sign_in_links').select(world.db.raw("encode(hash, 'hex') as hash")));
    for (const token of tokens) assert.ok(!stored.includes(token));
  });

  it('no sign-in link is created for an unknown developer', async () => {
    await assert.rejects(createSignInLink(world.db, 999), {
      name: 'OperatorError',
      message: 'There is no developer 999.',
      advice: '"catalog developers list" shows them all.',
    });
  });

  it('a malformed token of a sign-in link costs no query', async () => {
    const queries: string[] = [];
    world.db.on('query', ({ sql }: { sql: string }) => queries.push(sql));
    for (const text of [undefined, '', 'abc', 'g'.repeat(64), `${'a'.repeat(64)}\n`, 'A'.repeat(64)]) {
      for (const { spend } of KINDS) assert.equal(await spend(world.db, text), undefined);
    }
    assert.deepEqual(queries, []);
  });
});
