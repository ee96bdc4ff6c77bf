import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { removeExpired } from '../../src/accounts/expired.js';
import {
  endAllSessions,
  endSession,
  endSessionOf,
  findSession,
  listSessions,
  startSession,
} from '../../src/accounts/sessions.js';
import { createSignInLink, spendSignInLink } from '../../src/accounts/sign-in-links.js';
import { createDeveloper, suspendDeveloper } from '../../src/developers/developers.js';
import { listEvents } from '../../src/events/events.js';
import { eventually } from '../support/eventually.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';

/** More than any developer here has. */
const ALL = { limit: 100, offset: 0 };

describe('sessions', () => {
  let database: OpenTestDatabase;
  let db: Knex;

  before(async () => {
    database = await openTestDatabase();
    ({ db } = database);
  });

  after(() => database.close());

  async function newDeveloper(): Promise<number> {
    return (await createDeveloper(db, { projectName: 'Film club', attributionRequired: false })).id;
  }

  function start(developerId: number, userAgent = 'Browser/1', replaced?: string): Promise<string> {
    return startSession(db, { developerId, userAgent, replaced });
  }

  /** Makes all sessions of a developer older, as if that much time had passed. */
  async function age(developerId: number, times: { requireSession?: string; lastSeen?: string }): Promise<void> {
    await db('sessions')
      .where({ developer_id: developerId })
      .update({
        signed_in_at: db.raw('signed_in_at - ?::interval', [times.requireSession ?? '0']),
        last_seen_at: db.raw('last_seen_at - ?::interval', [times.lastSeen ?? '0']),
      });
  }

  it('are found by their token, with the developer as the database has it', async () => {
    const developerId = await newDeveloper();
    const token = await start(developerId);
    const { id, signedInAt, ...session } = (await findSession(db, token)) ?? assert.fail();
    assert.ok(id > 0 && Math.abs(Date.now() - Date.parse(signedInAt)) < 60_000);
    assert.deepEqual(session, { developerId, projectName: 'Film club', suspendedAt: null, isRecent: true });
    await suspendDeveloper(db, developerId);
    assert.notEqual((await findSession(db, token))?.suspendedAt, null);
  });

  it('are found by no other text', async () => {
    const token = await start(await newDeveloper());
    for (const text of [undefined, '', token.slice(1), `${token}0`, token.toUpperCase(), '0'.repeat(64)]) {
      assert.equal(await findSession(db, text), undefined);
    }
  });

  it('have 256 random bits of which the database has the SHA-256 alone', async () => {
    const token = await start(await newDeveloper());
    assert.match(token, /^[0-9a-f]{64}$/);
    const stored = JSON.stringify(await db('sessions').select(db.raw("encode(hash, 'hex') as hash"), 'user_agent'));
    assert.ok(!stored.includes(token));
  });

  it('get a token of their own at each sign-in, and the one that the browser had works no more', async () => {
    const developerId = await newDeveloper();
    const first = await start(developerId);
    const second = await start(developerId, 'Browser/1', first);
    assert.notEqual(first, second);
    assert.equal(await findSession(db, first), undefined);
    assert.equal((await findSession(db, second))?.developerId, developerId);
  });

  it('end after eight hours without use, by the clock of the database', async () => {
    const developerId = await newDeveloper();
    const token = await start(developerId);
    await age(developerId, { lastSeen: '7 hours 59 minutes' });
    assert.notEqual(await findSession(db, token), undefined);
    // Its use was written down, so the eight hours begin anew.
    await age(developerId, { lastSeen: '7 hours 59 minutes' });
    assert.notEqual(await findSession(db, token), undefined);
    await age(developerId, { lastSeen: '8 hours 1 second' });
    assert.equal(await findSession(db, token), undefined);
    assert.deepEqual(await listSessions(db, developerId, ALL), []);
  });

  it('end after thirty days however much they are used', async () => {
    const developerId = await newDeveloper();
    const token = await start(developerId);
    await age(developerId, { requireSession: '29 days 23 hours' });
    assert.notEqual(await findSession(db, token), undefined);
    await age(developerId, { requireSession: '1 hour 1 second' });
    assert.equal(await findSession(db, token), undefined);
    assert.deepEqual(await listSessions(db, developerId, ALL), []);
  });

  it('are recent for fifteen minutes after their sign-in, however much they are used', async () => {
    const developerId = await newDeveloper();
    const token = await start(developerId);
    await age(developerId, { requireSession: '14 minutes 50 seconds' });
    assert.equal((await findSession(db, token))?.isRecent, true);
    await age(developerId, { requireSession: '11 seconds' });
    assert.equal((await findSession(db, token))?.isRecent, false);
  });

  it('write their use down once a minute at most', async () => {
    const developerId = await newDeveloper();
    const token = await start(developerId);
    const seen = async () => (await listSessions(db, developerId, ALL))[0]?.lastSeenAt;
    const before = await seen();
    await findSession(db, token);
    assert.equal(await seen(), before);
    await age(developerId, { lastSeen: '61 seconds' });
    await findSession(db, token);
    assert.ok(String(await seen()) > String(before));
  });

  it('are listed with their browser, the latest sign-in first, for their own developer alone', async () => {
    const [one, other] = [await newDeveloper(), await newDeveloper()];
    await start(one, 'Old browser');
    await start(other, 'Other');
    await start(one, 'New browser');
    assert.deepEqual(
      (await listSessions(db, one, ALL)).map(({ userAgent }) => userAgent),
      ['New browser', 'Old browser'],
    );
  });

  it('keep of a browser’s name what can be stored and shown', async () => {
    const developerId = await newDeveloper();
    for (const userAgent of ['', 'a\0b\u001b[31m', '😀'.repeat(400), '<script>alert(1)</script>']) {
      await start(developerId, userAgent);
    }
    assert.deepEqual(
      (await listSessions(db, developerId, ALL)).map(({ userAgent }) => userAgent),
      ['<script>alert(1)</script>', `${'😀'.repeat(299)}…`, 'a\uFFFDb\uFFFD[31m', ''],
    );
  });

  it('can be ended one by one, each by its own developer alone', async () => {
    const [one, other] = [await newDeveloper(), await newDeveloper()];
    const [first, second] = [await start(one), await start(one)];
    const { id = 0 } = (await findSession(db, first)) ?? {};
    assert.equal(await endSessionOf(db, other, id), false);
    assert.notEqual(await findSession(db, first), undefined);
    assert.equal(await endSessionOf(db, one, id), true);
    assert.equal(await findSession(db, first), undefined);
    await endSession(db, second);
    assert.equal(await findSession(db, second), undefined);
  });

  it('can be ended all at once, together with the links that are not spent', async () => {
    const [one, other] = [await newDeveloper(), await newDeveloper()];
    const tokens = [await start(one), await start(one)];
    const kept = await start(other);
    const link = await createSignInLink(db, one);
    assert.equal(await endAllSessions(db, one, 'operator'), 2);
    for (const token of tokens) assert.equal(await findSession(db, token), undefined);
    assert.equal(await spendSignInLink(db, link), undefined);
    assert.notEqual(await findSession(db, kept), undefined);
    await assert.rejects(endAllSessions(db, 9_999, 'operator'), { name: 'OperatorError' });
  });

  it('end together, also one that is just being started by a link, and neither waits for the other', async () => {
    const developerId = await newDeveloper();
    const link = await createSignInLink(db, developerId);
    let ending: Promise<number> | undefined;
    const token = await db.transaction(async (transaction) => {
      assert.equal(await spendSignInLink(transaction, link), developerId);
      ending = endAllSessions(db, developerId, 'operator');
      await eventually('the end waits for the link', async () => {
        const { rows } = await db.raw<{ rows: unknown[] }>('select from pg_locks where not granted');
        return rows.length > 0;
      });
      return startSession(transaction, { developerId, userAgent: 'Browser/1', replaced: undefined });
    });
    assert.equal(await ending, 1);
    assert.equal(await findSession(db, token), undefined);
  });

  it('leave events: who signed in and out, and by whom', async () => {
    const developerId = await newDeveloper();
    const token = await start(developerId);
    await start(developerId, 'Browser/1', token);
    await endSession(db, token);
    const last = await start(developerId);
    await endSession(db, last);
    await endSession(db, last);
    await endAllSessions(db, developerId, 'operator');
    const { id = 0 } = (await findSession(db, await start(developerId))) ?? {};
    await endSessionOf(db, developerId, id);
    await endSessionOf(db, developerId, id);
    assert.deepEqual(
      (await listEvents(db, { developerId, limit: 20 })).map(({ kind, actor }) => `${kind} ${actor}`).reverse(),
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

  it('are removed once they have ended, as are links, in batches', async () => {
    const developerId = await newDeveloper();
    const kept = await start(developerId);
    const link = await createSignInLink(db, developerId);
    await db.raw(
      `insert into sessions (hash, developer_id, user_agent, signed_in_at, last_seen_at)
       select sha256(n::text::bytea), ?, '', now() - interval '9 hours', now() - interval '8 hours 1 second'
         from generate_series(1, 2500) as n`,
      [developerId],
    );
    await db.raw(
      `insert into sign_in_links (hash, developer_id, expires_at) values (sha256('a'), ?, now() - interval '1 second')`,
      [developerId],
    );
    const queries: string[] = [];
    const note = ({ sql }: { sql: string }): void => void queries.push(sql);
    db.on('query', note);
    // Two at the same time hinder each other as little as two servers do.
    const removed = await Promise.all([removeExpired(db), removeExpired(db)]);
    db.off('query', note);
    assert.ok(queries.every((sql) => sql.includes('limit 1000')));
    assert.ok(removed[0] + removed[1] >= 2_501, String(removed));
    assert.equal((await listSessions(db, developerId, ALL)).length, 1);
    assert.deepEqual(await db('sessions').where({ developer_id: developerId }).pluck('user_agent'), ['Browser/1']);
    assert.notEqual(await findSession(db, kept), undefined);
    assert.equal(await spendSignInLink(db, link), developerId);
  });
});
