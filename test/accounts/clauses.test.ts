import assert from 'node:assert/strict';
import { removeExpired } from '../../src/accounts/expired.js';
import { linkIdentity, listIdentities, unlinkIdentity, type Identity } from '../../src/accounts/identities.js';
import { addPasskey, listCredentials, listPasskeys } from '../../src/accounts/passkeys.js';
import { endAllSessions, listSessions, startSession } from '../../src/accounts/sessions.js';
import { createSignInLink, spendLink } from '../../src/accounts/sign-in-links.js';
import { testWorld } from '../support/world.js';

const WITH_EXPIRY = [
  ['expires_at', '-1 minute', false],
  ['expires_at', '1 second', true],
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

describe('the accounts that a statement leaves out', () => {
  const world = testWorld();
  let own: number;
  let other: number;

  beforeEach(async () => {
    [own, other] = [await world.newDeveloper(), await world.newDeveloper()];
  });

  for (const [table, rows] of Object.entries(ROWS)) {
    it(`of ${table}, those that have expired are removed, and no others`, async () => {
      const { db } = world;
      const takesDeveloper = ['sign_in_links', 'sessions'].includes(table);
      for (const [column, ago, hasExpired] of rows) {
        await db(table).insert({
          hash: db.raw('sha256(?::bytea)', [`${hasExpired}${column}`]),
          [column]: db.raw('now() - ?::interval', [ago]),
          ...OTHERS[table],
          ...(takesDeveloper && { developer_id: own }),
        });
      }
      await removeExpired(db, 100);
      const kept = rows.filter(([, , hasExpired]) => !hasExpired);
      const hashes = kept.map(([column]) => db.raw('sha256(?::bytea)', [`false${column}`]));
      assert.equal((await db(table).whereIn('hash', hashes)).length, kept.length);
      assert.equal((await db(table)).length, kept.length);
      await db(table).delete();
    });
  }

  it('ending all sessions of a developer leaves the sign-in links of others', async () => {
    const link = await createSignInLink(world.db, other);
    await endAllSessions(world.db, own, 'operator');
    assert.equal(await spendLink(world.db, 'developer', link), other);
  });

  it('a session is listed once, with the way and the address of its sign-in, beside other events of the same moment', async () => {
    await world.db.transaction(async (transaction) => {
      await linkIdentity(transaction, own, { issuer: 'https://i', subject: 'listed' });
      const from = { browser: 'Firefox', address: '192.0.2.1' };
      await startSession(transaction, { developerId: own, way: 'provider', userAgent: '', from, replaced: undefined });
    });
    const listed = await listSessions(world.db, own, { limit: 10 });
    assert.deepEqual(
      listed.map(({ way, address }) => [way, address]),
      [['provider', '192.0.2.1']],
    );
  });

  it('an identity is unlinked by issuer and subject together, and listed for its developer alone', async () => {
    const [one, sameIssuer, sameSubject, foreign] = [
      ['https://a', '1'],
      ['https://a', '2'],
      ['https://b', '1'],
      ['https://c', '1'],
    ].map(([issuer = '', subject = '']): Identity => ({ issuer, subject })) as [Identity, Identity, Identity, Identity];
    for (const identity of [one, sameIssuer, sameSubject]) await linkIdentity(world.db, own, identity);
    await linkIdentity(world.db, other, foreign);
    await unlinkIdentity(world.db, own, one);
    const left = (await listIdentities(world.db, own)).map(({ issuer, subject }) => ({ issuer, subject }));
    assert.deepEqual(left, [sameIssuer, sameSubject]);
  });

  it('passkeys and their credentials are those of their developer', async () => {
    for (const developerId of [own, other]) {
      const publicKey = { publicKey: Buffer.from('p'), signCount: 0, transports: [], isSynced: false };
      await addPasskey(
        world.db,
        { developerId },
        { ...publicKey, credentialId: Buffer.from(`of ${developerId}`), name: 'A' },
      );
    }
    const [credential, ...others] = await listCredentials(world.db, own);
    assert.deepEqual([String(credential?.credentialId), others], [`of ${own}`, []]);
    assert.equal((await listPasskeys(world.db, own)).length, 1);
  });
});
