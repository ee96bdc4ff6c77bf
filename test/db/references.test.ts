import assert from 'node:assert/strict';
import { endSessionOf, startSession, findSession } from '../../src/accounts/sessions.js';
import { createChallenge } from '../../src/accounts/passkeys.js';
import { testWorld } from '../support/world.js';

/** What nobody can remove while something refers to it. Everything else goes with what it belongs to. */
const KEPT = ['api_keys to api_keys', 'api_keys to developers', 'api_keys to plans', 'developers to plans'];

describe('what belongs to a developer, a key or a session', () => {
  const world = testWorld();

  it('is removed with it, unless it must be kept', async () => {
    const { rows } = await world.db.raw<{ rows: { reference: string; is_cascade: boolean }[] }>(`
      select format('%s to %s', conrelid::regclass, confrelid::regclass) as reference, confdeltype = 'c' as is_cascade
        from pg_constraint where contype = 'f' and connamespace = 'public'::regnamespace order by 1`);
    assert.ok(rows.length > KEPT.length + 3);
    assert.deepEqual(
      rows.flatMap(({ reference, is_cascade: isCascade }) => (isCascade ? [] : reference)),
      KEPT,
    );
  });

  it('a session that is adding a passkey can be ended, and its challenge with it', async () => {
    const developerId = await world.newDeveloper();
    const session = { developerId, way: 'link', userAgent: 'Browser/1', replaced: undefined } as const;
    const token = await startSession(world.db, session);
    const { id } = (await findSession(world.db, token)) ?? assert.fail();
    await createChallenge(world.db, id);
    assert.equal(await endSessionOf(world.db, developerId, id), true);
    assert.deepEqual(await world.db('passkey_challenges'), []);
  });
});
