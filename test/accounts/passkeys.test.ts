import assert from 'node:assert/strict';
import {
  addPasskey,
  createChallenge,
  findDeveloperByPasskey,
  listCredentials,
  listPasskeys,
  MAX_PASSKEYS,
  revokePasskey,
  spendChallenge,
} from '../../src/accounts/passkeys.js';
import { creationOptions, relyingPartyOf, requestOptions, verifyCreation } from '../../src/accounts/relying-party.js';
import { endAllSessions, findSession, listSessions, startSession } from '../../src/accounts/sessions.js';
import { Authenticator, somePublicKey } from '../support/http/authenticator.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { testWorld } from '../support/world.js';

const ORIGIN = 'https://catalog.example';

describe('passkeys of a developer', () => {
  const world = testWorld();
  const party = relyingPartyOf(ORIGIN) ?? assert.fail();
  let developerId: number;

  beforeEach(async () => (developerId = await world.newDeveloper()));

  async function startNewSession(): Promise<number> {
    const details = { developerId, way: 'link' as const, userAgent: '', replaced: undefined };
    return (await findSession(world.db, await startSession(world.db, details)))?.id ?? assert.fail();
  }

  it('passkeys belong to a host name, and to no IP address', () => {
    for (const [url, id] of [
      ['https://catalog.example:8443', 'catalog.example'],
      ['http://localhost:8080', 'localhost'],
      ['https://intranet', 'intranet'],
      ['http://127.0.0.1:8080', undefined],
      ['https://10.0.0.7', undefined],
      ['http://[::1]:8080', undefined],
    ] as const) {
      assert.equal(relyingPartyOf(url)?.id, id, url);
    }
  });

  /** Adds the passkey of an authenticator. @returns its id */
  async function add(authenticator: Authenticator): Promise<number> {
    const options = creationOptions(party, 'a', { id: developerId, projectName: 'Film club' }, []);
    const publicKey = await verifyCreation(party, 'a', authenticator.create(options));
    return addPasskey(world.db, { developerId }, { ...publicKey, name: 'Laptop' });
  }

  it(`of many passkeys that are added at once, a developer keeps ${MAX_PASSKEYS}`, async () => {
    const additions = Array.from({ length: MAX_PASSKEYS + 3 }, () =>
      addPasskey(world.db, { developerId }, { ...somePublicKey(), name: 'Laptop' }),
    );
    const results = await Promise.allSettled(additions);
    assert.equal(results.filter(({ status }) => status === 'rejected').length, 3);
    assert.equal((await listPasskeys(world.db, developerId)).length, MAX_PASSKEYS);
  });

  it('a passkey is not added by a session that has ended, or for a developer who is suspended', async () => {
    const passkey = { ...somePublicKey(), name: 'Laptop' };
    const noSession = { name: 'PasskeyRefused', reason: 'no_session' };
    await assert.rejects(addPasskey(world.db, { developerId, sessionId: 2_147_483_647 }, passkey), noSession);
    await world.db('developers').where({ id: developerId }).update({ suspended_at: world.db.fn.now() });
    await assert.rejects(addPasskey(world.db, { developerId }, passkey), noSession);
    assert.deepEqual(await listPasskeys(world.db, developerId), []);
  });

  it('of two sign-ins at once with the same count of an authenticator, one is refused', async () => {
    const authenticator = new Authenticator(ORIGIN);
    await add(new Authenticator(ORIGIN));
    await add(authenticator);
    const signed = authenticator.get(requestOptions(party, 'b'), { count: 1 });
    const first = await world.db.transaction();
    assert.equal(await findDeveloperByPasskey(first, party, 'b', signed), developerId);
    const second = world.db.transaction((transaction) => findDeveloperByPasskey(transaction, party, 'b', signed));
    await untilWaiting('the second sign-in waits', world.db);
    await first.commit();
    await assert.rejects(second, { name: 'PasskeyRefused', reason: 'invalid' });
    const used = (await listPasskeys(world.db, developerId)).map(({ lastUsedAt }) => lastUsedAt !== null);
    assert.deepEqual(used, [false, true]);
  });

  it('a passkey that an operator removes while it signs in leaves no session behind', async () => {
    const authenticator = new Authenticator(ORIGIN);
    const passkey = await add(authenticator);
    const signIn = await world.db.transaction();
    const signed = authenticator.get(requestOptions(party, 'b'));
    assert.equal(await findDeveloperByPasskey(signIn, party, 'b', signed), developerId);
    const revoked = revokePasskey(world.db, developerId, passkey);
    await untilWaiting('the removal waits', world.db);
    await startSession(signIn, { developerId, way: 'passkey', userAgent: '', replaced: undefined });
    await signIn.commit();
    assert.equal(await revoked, 1);
    assert.deepEqual(await listSessions(world.db, developerId, { limit: 10 }), []);
    assert.deepEqual(await listPasskeys(world.db, developerId), []);
    await assert.rejects(revokePasskey(world.db, developerId, passkey), { name: 'OperatorError' });
  });

  it('a challenge has 256 random bits, is spent once and only for what it was made, and the database has only its SHA-256', async () => {
    const session = await startNewSession();
    const [ofSession, ofSignIn] = [await createChallenge(world.db, session), await createChallenge(world.db, null)];
    const stored = JSON.stringify(
      await world.db('passkey_challenges').select(world.db.raw("encode(hash, 'hex') as hash")),
    );
    for (const token of [ofSession, ofSignIn]) assert.ok(/^[0-9a-f]{64}$/.test(token) && !stored.includes(token));
    assert.equal(await spendChallenge(world.db, ofSession, null), false);
    assert.equal(await spendChallenge(world.db, ofSession, await startNewSession()), false);
    assert.equal(await spendChallenge(world.db, ofSignIn, session), false);
    for (const [token, of] of [[ofSession, session] as const, [ofSignIn, null] as const]) {
      const spent = await Promise.all(Array.from({ length: 8 }, () => spendChallenge(world.db, token, of)));
      assert.equal(spent.filter((isFirst) => isFirst).length, 1);
    }
    assert.equal(await spendChallenge(world.db, undefined, null), false);
  });

  it('a challenge ends with its session, and after ten minutes by the clock of the database', async () => {
    const token = await createChallenge(world.db, await startNewSession());
    await endAllSessions(world.db, developerId, 'developer');
    assert.equal(await spendChallenge(world.db, token, null), false);
    assert.deepEqual(await world.db('passkey_challenges'), []);
    const [early, late] = [await createChallenge(world.db, null), await createChallenge(world.db, null)];
    const age = (by: string) =>
      world.db('passkey_challenges').update({ expires_at: world.db.raw('expires_at - ?::interval', [by]) });
    await age('9 minutes 50 seconds');
    assert.equal(await spendChallenge(world.db, early, null), true);
    await age('11 seconds');
    assert.equal(await spendChallenge(world.db, late, null), false);
  });

  it('passkeys and their credentials are those of their developer', async () => {
    const other = await world.newDeveloper();
    for (const id of [developerId, other]) {
      const passkey = { ...somePublicKey(), credentialId: Buffer.from(`of ${id}`), name: 'A' };
      await addPasskey(world.db, { developerId: id }, passkey);
    }
    const [credential, ...others] = await listCredentials(world.db, developerId);
    assert.deepEqual([String(credential?.credentialId), others], [`of ${developerId}`, []]);
    assert.equal((await listPasskeys(world.db, developerId)).length, 1);
  });
});
