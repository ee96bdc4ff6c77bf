import assert from 'node:assert/strict';
import { createSignInLink, spendSignInLink } from '../../src/accounts/sign-in-links.js';
import { testWorld } from '../support/world.js';

describe('sign-in links', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper()));

  it('of many who spend the same sign-in link at once, one is signed in', async () => {
    const token = await createSignInLink(world.db, developerId);
    const results = await Promise.all(Array.from({ length: 12 }, () => spendSignInLink(world.db, token)));
    assert.deepEqual(
      results.filter((result) => result !== undefined),
      [developerId],
    );
    assert.equal(await spendSignInLink(world.db, token), undefined);
  });

  it('a sign-in link stays usable when the transaction that spends it fails', async () => {
    const token = await createSignInLink(world.db, developerId);
    await assert.rejects(
      world.db.transaction(async (transaction) => {
        assert.equal(await spendSignInLink(transaction, token), developerId);
        throw new Error('the session could not be started');
      }),
      /could not be started/,
    );
    assert.equal(await spendSignInLink(world.db, token), developerId);
  });

  it('a sign-in link expires after ten minutes by the clock of the database', async () => {
    const [early, late] = [
      await createSignInLink(world.db, developerId),
      await createSignInLink(world.db, developerId),
    ];
    // As if they had been made so long ago.
    const age = (by: string) =>
      world.db('sign_in_links').update({ expires_at: world.db.raw('expires_at - ?::interval', [by]) });
    await age('9 minutes 50 seconds');
    assert.equal(await spendSignInLink(world.db, early), developerId);
    await age('11 seconds');
    assert.equal(await spendSignInLink(world.db, late), undefined);
  });

  it('a sign-in link has 256 random bits, and the database has only their SHA-256', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => createSignInLink(world.db, developerId)));
    assert.equal(new Set(tokens).size, 20);
    for (const token of tokens) assert.match(token, /^[0-9a-f]{64}$/);
    const stored = JSON.stringify(await world.db('sign_in_links').select(world.db.raw("encode(hash, 'hex') as hash")));
    for (const token of tokens) assert.ok(!stored.includes(token));
  });

  it('no sign-in link is created for an unknown developer', async () => {
    await assert.rejects(createSignInLink(world.db, 999), {
      name: 'OperatorError',
      message: 'There is no developer 999. "catalog developers list" shows them all.',
    });
  });

  it('a malformed token of a sign-in link costs no query', async () => {
    const queries: string[] = [];
    world.db.on('query', ({ sql }: { sql: string }) => queries.push(sql));
    for (const text of [undefined, '', 'abc', 'g'.repeat(64), `${'a'.repeat(64)}\n`, 'A'.repeat(64)]) {
      assert.equal(await spendSignInLink(world.db, text), undefined);
    }
    assert.deepEqual(queries, []);
  });
});
