import assert from 'node:assert/strict';
import { removeExpired } from '../../src/accounts/expired.js';
import { testWorld } from '../support/world.js';

const WITH_EXPIRY = [
  ['expires_at', '-1 minute', false],
  ['expires_at', '1 second', true],
  ['expires_at', '1 day', true],
] as const;

/** Rows by table: how old they are, by which column, and whether they have expired. */
const ROWS: Readonly<Record<string, readonly (readonly [column: string, ago: string, hasExpired: boolean])[]>> = {
  sign_in_links: WITH_EXPIRY,
  sign_ups: WITH_EXPIRY,
  spent_sign_ins: WITH_EXPIRY,
  passkey_challenges: WITH_EXPIRY,
  sessions: [
    ['last_seen_at', '7 hours 59 minutes', false],
    ['last_seen_at', '8 hours 1 second', true],
    ['signed_in_at', '29 days 23 hours', false],
    ['signed_in_at', '30 days 1 second', true],
  ],
};

/** The other columns of a row. */
const OTHERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sign_ups: { issuer: 'https://issuer', subject: 's' },
  sessions: { user_agent: '' },
};

describe('the accounts that have expired', () => {
  const world = testWorld();

  for (const [table, rows] of Object.entries(ROWS)) {
    it(`are removed from ${table} in small steps, by several servers at once, and no others`, async () => {
      const { db } = world;
      const owner = ['sign_in_links', 'sessions'].includes(table) && { developer_id: await world.newDeveloper() };
      const hashOf = (column: string, ago: string) => db.raw('sha256(?::bytea)', [column + ago]);
      for (const [column, ago] of rows) {
        await db(table).insert({
          hash: hashOf(column, ago),
          [column]: db.raw('now() - ?::interval', [ago]),
          ...OTHERS[table],
          ...owner,
        });
      }
      // Another server has not committed its step.
      const step = db.transaction(async (other) => [await removeExpired(other, 1), await removeExpired(db, 1)]);
      assert.deepEqual(await step, [true, true]);
      while (await removeExpired(db, 1));
      const kept = rows.filter(([, , hasExpired]) => !hasExpired);
      const hashes = kept.map(([column, ago]) => hashOf(column, ago));
      assert.equal((await db(table).whereIn('hash', hashes)).length, kept.length);
      assert.equal((await db(table)).length, kept.length);
      await db(table).delete();
    });
  }
});
