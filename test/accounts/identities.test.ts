import assert from 'node:assert/strict';
import {
  beginSignUp,
  endSignUp,
  findDeveloperOf,
  findSignUp,
  linkIdentity,
  listIdentities,
  spendProviderSignIn,
  unlinkIdentity,
} from '../../src/accounts/identities.js';
import { removeExpired } from '../../src/accounts/expired.js';
import { findSession, listSessions, startSession } from '../../src/accounts/sessions.js';
import { generateToken } from '../../src/accounts/tokens.js';
import { listEvents } from '../../src/events/events.js';
import { testWorld } from '../support/world.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';

const ISSUER = 'https://id.example';

describe('identities at a provider', () => {
  const world = testWorld();
  let one: number;
  let other: number;

  before(async () => ([one, other] = [await world.newDeveloper(), await world.newDeveloper()]));

  it('an identity belongs to the developer whom it was linked to, by issuer and subject together', async () => {
    // Linking one again changes nothing.
    for (const subject of ['bob', 'ann', 'ann']) await linkIdentity(world.db, one, { issuer: ISSUER, subject });
    for (const subject of ['bob', 'ann']) {
      assert.equal(await findDeveloperOf(world.db, { issuer: ISSUER, subject }), one);
    }
    assert.equal(await findDeveloperOf(world.db, { issuer: 'https://evil.example', subject: 'ann' }), undefined);
    assert.equal(await findDeveloperOf(world.db, { issuer: ISSUER, subject: 'Ann' }), undefined);
  });

  it('an identity that belongs to a developer cannot be linked to another one', async () => {
    await linkIdentity(world.db, one, { issuer: ISSUER, subject: 'mine' });
    await assert.rejects(linkIdentity(world.db, other, { issuer: ISSUER, subject: 'mine' }), {
      name: 'OperatorError',
      message: `This identity already belongs to developer ${one}. An identity can belong to one developer only.`,
    });
    assert.equal(await findDeveloperOf(world.db, { issuer: ISSUER, subject: 'mine' }), one);
    await assert.rejects(linkIdentity(world.db, 999, { issuer: ISSUER, subject: 'new' }), { name: 'OperatorError' });
  });

  it('unlinking an identity ends all sessions of its developer and leaves an event', async () => {
    const identity = { issuer: ISSUER, subject: 'gone' };
    const alike = [
      { issuer: ISSUER, subject: 'gone too' },
      { issuer: 'https://other.example', subject: 'gone' },
    ];
    for (const each of [identity, ...alike]) await linkIdentity(world.db, one, each);
    const details = { way: 'link' as const, userAgent: '', replaced: undefined };
    await startSession(world.db, { developerId: one, ...details });
    const untouched = await startSession(world.db, { developerId: other, ...details });
    await assert.rejects(unlinkIdentity(world.db, other, identity), { name: 'OperatorError' });
    assert.equal(await unlinkIdentity(world.db, one, identity), 1);
    assert.equal(await findDeveloperOf(world.db, identity), undefined);
    for (const each of alike) assert.equal(await findDeveloperOf(world.db, each), one);
    const foreign = { issuer: ISSUER, subject: 'foreign' };
    await linkIdentity(world.db, other, foreign);
    const listed = (await listIdentities(world.db, other)).map(({ issuer, subject }) => ({ issuer, subject }));
    assert.deepEqual(listed, [foreign]);
    assert.deepEqual(await listSessions(world.db, one, { limit: 10 }), []);
    assert.notEqual(await findSession(world.db, untouched), undefined);
    const events = (await listEvents(world.db, { developerId: one, limit: 20 })).filter(
      ({ details: it }) => it.subject === 'gone' && it.issuer === ISSUER,
    );
    assert.deepEqual(
      events.map(({ kind, actor, details: it }) => [kind, actor, it.issuer]),
      [
        ['identity_unlinked', 'operator', ISSUER],
        ['identity_linked', 'operator', ISSUER],
      ],
    );
    await assert.rejects(unlinkIdentity(world.db, one, identity), { name: 'OperatorError' });
  });

  it('an identity that is unlinked while it signs in leaves no session behind', async () => {
    const identity = { issuer: ISSUER, subject: 'racing' };
    await linkIdentity(world.db, one, identity);
    const signIn = await world.db.transaction();
    assert.equal(await findDeveloperOf(signIn, identity), one);
    const unlinked = unlinkIdentity(world.db, one, identity);
    await untilWaiting('the unlinking waits', world.db);
    await startSession(signIn, { developerId: one, way: 'link', userAgent: '', replaced: undefined });
    await signIn.commit();
    assert.equal(await unlinked, 1);
    assert.deepEqual(await listSessions(world.db, one, { limit: 10 }), []);
  });

  it('an unknown identity can name its project once, within half an hour', async () => {
    const identity = { issuer: ISSUER, subject: 'new' };
    const token = await beginSignUp(world.db, identity);
    assert.deepEqual(await findSignUp(world.db, token), identity);
    assert.equal(await findSignUp(world.db, '0'.repeat(64)), undefined);
    const ends = await Promise.all(Array.from({ length: 8 }, () => endSignUp(world.db, token)));
    assert.deepEqual(
      ends.filter((end) => end !== undefined),
      [identity],
    );
    const late = await beginSignUp(world.db, identity);
    await world.db('sign_ups').update({ expires_at: world.db.raw("expires_at - interval '30 minutes 1 second'") });
    assert.equal(await findSignUp(world.db, late), undefined);
    assert.equal(await endSignUp(world.db, late), undefined);
  });

  it('a sign-in at the provider is spent once, and its mark is removed after ten minutes', async () => {
    const { token } = generateToken();
    const spent = await Promise.all(Array.from({ length: 8 }, () => spendProviderSignIn(world.db, token)));
    assert.equal(spent.filter((isFirst) => isFirst).length, 1);
    assert.equal(await spendProviderSignIn(world.db, 'no secret of ours'), false);
    await removeExpired(world.db, 10);
    assert.equal(await spendProviderSignIn(world.db, token), false);
    await world
      .db('spent_sign_ins')
      .update({ expires_at: world.db.raw("expires_at - interval '10 minutes 1 second'") });
    await removeExpired(world.db, 10);
    assert.deepEqual(await world.db('spent_sign_ins'), []);
  });
});
