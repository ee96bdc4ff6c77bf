import assert from 'node:assert/strict';
import { linkIdentity } from '../../src/accounts/identities.js';
import {
  endAllSessions,
  endSession,
  endSessionOf,
  findSession,
  listSessions,
  startSession,
} from '../../src/accounts/sessions.js';
import { createSignInLink, spendLink } from '../../src/accounts/sign-in-links.js';
import { suspendDeveloper } from '../../src/developers/developers.js';
import { listEvents } from '../../src/events/events.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { testWorld } from '../support/world.js';

/** More than any developer here has. */
const ALL = { limit: 100 };

describe('sessions', () => {
  const world = testWorld();

  function start(developerId: number, userAgent = 'Browser/1', replaced?: string): Promise<string> {
    return startSession(world.db, { developerId, way: 'link', userAgent, replaced });
  }

  /** Makes all sessions of a developer older, as if that much time had passed. */
  async function age(developerId: number, times: { signedIn?: string; lastSeen?: string }): Promise<void> {
    await world
      .db('sessions')
      .where({ developer_id: developerId })
      .update({
        signed_in_at: world.db.raw('signed_in_at - ?::interval', [times.signedIn ?? '0']),
        last_seen_at: world.db.raw('last_seen_at - ?::interval', [times.lastSeen ?? '0']),
      });
  }

  it('a session is found by its token and no other text, with the current state of its developer', async () => {
    const developerId = await world.newDeveloper();
    const token = await start(developerId);
    const { id, signedInAt, ...session } = (await findSession(world.db, token)) ?? assert.fail();
    assert.ok(id > 0 && Math.abs(Date.now() - Date.parse(signedInAt)) < 3_600_000);
    assert.deepEqual(session, { developerId, projectName: 'Test project', suspendedAt: null, isRecent: true });
    for (const text of [undefined, '', token.slice(1), `${token}0`, token.toUpperCase(), '0'.repeat(64)]) {
      assert.equal(await findSession(world.db, text), undefined);
    }
    await suspendDeveloper(world.db, developerId);
    assert.notEqual((await findSession(world.db, token))?.suspendedAt, null);
  });

  it('a session ends after eight hours without use and thirty days in any case, and is recent for fifteen minutes, by the clock of the database', async () => {
    for (const [steps, end] of [
      // A use is written down, so the eight hours begin anew.
      [[{ lastSeen: '7 hours 59 minutes' }, { lastSeen: '7 hours 59 minutes' }], { lastSeen: '8 hours 1 second' }],
      [[{ signedIn: '29 days 23 hours' }], { signedIn: '1 hour 1 second' }],
    ] as const) {
      const developerId = await world.newDeveloper();
      const token = await start(developerId);
      for (const step of steps) {
        await age(developerId, step);
        assert.notEqual(await findSession(world.db, token), undefined);
      }
      await age(developerId, end);
      assert.equal(await findSession(world.db, token), undefined);
      assert.deepEqual(await listSessions(world.db, developerId, ALL), []);
    }
    const developerId = await world.newDeveloper();
    const token = await start(developerId);
    await age(developerId, { signedIn: '14 minutes 50 seconds' });
    assert.equal((await findSession(world.db, token))?.isRecent, true);
    await age(developerId, { signedIn: '11 seconds' });
    assert.equal((await findSession(world.db, token))?.isRecent, false);
  });

  it('the last use of a session is written at most once a minute', async () => {
    const developerId = await world.newDeveloper();
    const token = await start(developerId);
    const seen = async () => (await listSessions(world.db, developerId, ALL))[0]?.lastSeenAt;
    const before = await seen();
    await findSession(world.db, token);
    assert.equal(await seen(), before);
    await age(developerId, { lastSeen: '61 seconds' });
    await findSession(world.db, token);
    assert.ok(String(await seen()) > String(before));
  });

  it('of the name of a browser, a session keeps what can be stored and shown', async () => {
    const developerId = await world.newDeveloper();
    for (const userAgent of ['', 'a\0b\u001b[31m', '😀'.repeat(400), '<script>alert(1)</script>']) {
      await start(developerId, userAgent);
    }
    assert.deepEqual(
      (await listSessions(world.db, developerId, ALL)).map(({ userAgent }) => userAgent),
      ['<script>alert(1)</script>', `${'😀'.repeat(299)}…`, 'a\uFFFDb\uFFFD[31m', ''],
    );
  });

  it('all sessions of a developer can be ended at once, with the unused sign-in links', async () => {
    const [one, other] = [await world.newDeveloper(), await world.newDeveloper()];
    const tokens = [await start(one), await start(one)];
    const kept = await start(other);
    const [link, others] = [await createSignInLink(world.db, one), await createSignInLink(world.db, other)];
    assert.equal(await endAllSessions(world.db, one, 'operator'), 2);
    for (const token of tokens) assert.equal(await findSession(world.db, token), undefined);
    assert.equal(await spendLink(world.db, 'developer', link), undefined);
    assert.equal(await spendLink(world.db, 'developer', others), other);
    assert.notEqual(await findSession(world.db, kept), undefined);
    await assert.rejects(endAllSessions(world.db, 9_999, 'operator'), { name: 'OperatorError' });
  });

  it('ending all sessions also ends one that a sign-in link is starting, without a deadlock', async () => {
    const developerId = await world.newDeveloper();
    const link = await createSignInLink(world.db, developerId);
    let ending: Promise<number> | undefined;
    const token = await world.db.transaction(async (transaction) => {
      assert.equal(await spendLink(transaction, 'developer', link), developerId);
      ending = endAllSessions(world.db, developerId, 'operator');
      await untilWaiting('the end waits for the link', world.db);
      return startSession(transaction, { developerId, way: 'link', userAgent: 'Browser/1', replaced: undefined });
    });
    assert.equal(await ending, 1);
    assert.equal(await findSession(world.db, token), undefined);
  });

  it('signing in and out leaves events that name who did it', async () => {
    const developerId = await world.newDeveloper();
    const token = await start(developerId);
    await start(developerId, 'Browser/1', token);
    await endSession(world.db, token);
    const last = await start(developerId);
    await endSession(world.db, last);
    await endSession(world.db, last);
    await endAllSessions(world.db, developerId, 'operator');
    const { id = 0 } = (await findSession(world.db, await start(developerId))) ?? {};
    await endSessionOf(world.db, developerId, id);
    await endSessionOf(world.db, developerId, id);
    assert.deepEqual(
      (await listEvents(world.db, { developerId, limit: 20 })).map(({ kind, actor }) => `${kind} ${actor}`).reverse(),
      [
        'registered operator',
        'signed_in developer',
        'signed_in developer',
        'signed_in developer',
        'signed_out developer',
        'signed_out operator',
        'signed_in developer',
        'signed_out developer',
      ],
    );
  });

  it('a session is listed once, with the way and the address of its sign-in, beside other events of the same moment', async () => {
    const developerId = await world.newDeveloper();
    await world.db.transaction(async (transaction) => {
      await linkIdentity(transaction, developerId, { issuer: 'https://i', subject: 'listed' });
      const from = { browser: 'Firefox', address: '192.0.2.1' };
      await startSession(transaction, { developerId, way: 'provider', userAgent: '', from, replaced: undefined });
    });
    const listed = await listSessions(world.db, developerId, ALL);
    assert.deepEqual(
      listed.map(({ way, address }) => [way, address]),
      [['provider', '192.0.2.1']],
    );
  });
});
