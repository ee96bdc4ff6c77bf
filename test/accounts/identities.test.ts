import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { beginSignUp, endSignUp, findDeveloperOf, findSignUp, linkIdentity } from '../../src/accounts/identities.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

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
      message: `This identity belongs to developer ${one} already, and to one developer only.`,
    });
    assert.equal(await findDeveloperOf(db, { issuer: ISSUER, subject: 'mine' }), one);
    await assert.rejects(linkIdentity(db, 999, { issuer: ISSUER, subject: 'new' }), { name: 'OperatorError' });
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
});
