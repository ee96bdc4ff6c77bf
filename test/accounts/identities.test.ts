import assert from 'node:assert/strict';
import type { Knex } from 'knex';
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
import { createDeveloper } from '../../src/developers/developers.js';
import { listEvents } from '../../src/events/events.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';

const ISSUER = 'https://id.example';

describe('identities at a provider', () => {
  let database: OpenTestDatabase;
  let db: Knex;
  let one: number;
  let other: number;

  before(async () => {
    database = await openTestDatabase();
    ({ db } = database);
    const make = async () => (await createDeveloper(db, { projectName: 'P', attributionRequired: false })).id;
    [one, other] = [await make(), await make()];
  });

  after(() => database.close());

  it('belong to the developer whom they were linked to, by issuer and subject together', async () => {
    await linkIdentity(db, one, { issuer: ISSUER, subject: 'ann' });
    assert.equal(await findDeveloperOf(db, { issuer: ISSUER, subject: 'ann' }), one);
    assert.equal(await findDeveloperOf(db, { issuer: 'https://evil.example', subject: 'ann' }), undefined);
    assert.equal(await findDeveloperOf(db, { issuer: ISSUER, subject: 'Ann' }), undefined);
  });

  it('can be several of one developer, and linked twice', async () => {
    await linkIdentity(db, one, { issuer: ISSUER, subject: 'two' });
    await linkIdentity(db, one, { issuer: ISSUER, subject: 'two' });
    assert.equal(await findDeveloperOf(db, { issuer: ISSUER, subject: 'two' }), one);
  });

  it('do not pass to another developer', async () => {
    await linkIdentity(db, one, { issuer: ISSUER, subject: 'mine' });
    await assert.rejects(linkIdentity(db, other, { issuer: ISSUER, subject: 'mine' }), {
      name: 'OperatorError',
      message: `This identity already belongs to developer ${one}. An identity can belong to one developer only.`,
    });
    assert.equal(await findDeveloperOf(db, { issuer: ISSUER, subject: 'mine' }), one);
    await assert.rejects(linkIdentity(db, 999, { issuer: ISSUER, subject: 'new' }), { name: 'OperatorError' });
  });

  it('the identities of a developer are listed in the order in which they were linked', async () => {
    const { id } = await createDeveloper(db, { projectName: 'L', attributionRequired: false });
    assert.deepEqual(await listIdentities(db, id), []);
    for (const subject of ['z', 'a']) await linkIdentity(db, id, { issuer: ISSUER, subject });
    assert.deepEqual(
      (await listIdentities(db, id)).map(({ issuer, subject }) => [issuer, subject]),
      [
        [ISSUER, 'z'],
        [ISSUER, 'a'],
      ],
    );
    await assert.rejects(listIdentities(db, 999), { name: 'OperatorError' });
  });

  it('unlinking an identity ends all sessions of its developer and leaves an event', async () => {
    const identity = { issuer: ISSUER, subject: 'gone' };
    await linkIdentity(db, one, identity);
    const details = { userAgent: '', replaced: undefined };
    await startSession(db, { developerId: one, ...details });
    const untouched = await startSession(db, { developerId: other, ...details });
    await assert.rejects(unlinkIdentity(db, other, identity), { name: 'OperatorError' });
    assert.equal(await unlinkIdentity(db, one, identity), 1);
    assert.equal(await findDeveloperOf(db, identity), undefined);
    assert.deepEqual(await listSessions(db, one, { limit: 10, offset: 0 }), []);
    assert.notEqual(await findSession(db, untouched), undefined);
    const events = (await listEvents(db, { developerId: one, limit: 20 })).filter(
      ({ details: it }) => it.subject === 'gone',
    );
    assert.deepEqual(
      events.map(({ kind, actor, details: it }) => [kind, actor, it.issuer]),
      [
        ['identity_unlinked', 'operator', ISSUER],
        ['identity_linked', 'operator', ISSUER],
      ],
    );
    await assert.rejects(unlinkIdentity(db, one, identity), { name: 'OperatorError' });
  });

  it('an identity that is unlinked while it signs in leaves no session behind', async () => {
    const identity = { issuer: ISSUER, subject: 'racing' };
    await linkIdentity(db, one, identity);
    const signIn = await db.transaction();
    assert.equal(await findDeveloperOf(signIn, identity), one);
    const unlinked = unlinkIdentity(db, one, identity);
    await eventually('the unlinking waits', async () => {
      const { rows } = await db.raw<{ rows: unknown[] }>('select from pg_locks where not granted');
      return rows.length > 0;
    });
    await startSession(signIn, { developerId: one, userAgent: '', replaced: undefined });
    await signIn.commit();
    assert.equal(await unlinked, 1);
    assert.deepEqual(await listSessions(db, one, { limit: 10, offset: 0 }), []);
  });

  it('that are unknown wait for the name of their project, once and for half an hour', async () => {
    const identity = { issuer: ISSUER, subject: 'new' };
    const token = await beginSignUp(db, identity);
    assert.deepEqual(await findSignUp(db, token), identity);
    assert.equal(await findSignUp(db, '0'.repeat(64)), undefined);
    const ends = await Promise.all(Array.from({ length: 8 }, () => endSignUp(db, token)));
    assert.deepEqual(
      ends.filter((end) => end !== undefined),
      [identity],
    );
    const late = await beginSignUp(db, identity);
    await db('sign_ups').update({ expires_at: db.raw("expires_at - interval '30 minutes 1 second'") });
    assert.equal(await findSignUp(db, late), undefined);
    assert.equal(await endSignUp(db, late), undefined);
  });

  it('a sign-in at the provider is spent once, and its mark is removed after ten minutes', async () => {
    const { token } = generateToken();
    const spent = await Promise.all(Array.from({ length: 8 }, () => spendProviderSignIn(db, token)));
    assert.equal(spent.filter((isFirst) => isFirst).length, 1);
    assert.equal(await spendProviderSignIn(db, 'no secret of ours'), false);
    await removeExpired(db);
    assert.equal(await spendProviderSignIn(db, token), false);
    await db('spent_sign_ins').update({ expires_at: db.raw("expires_at - interval '10 minutes 1 second'") });
    await removeExpired(db);
    assert.deepEqual(await db('spent_sign_ins'), []);
  });
});
