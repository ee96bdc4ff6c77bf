import assert from 'node:assert/strict';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { suspendDeveloper } from '../../../src/developers/developers.js';
import { newDeveloper, signIn, Visitor } from '../../support/http/visitor.js';
import { send } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const SESSION = 'catalog-session';

describe('signing in by a link', () => {
  let service: TestService;
  let developerId: number;

  before(async () => {
    service = await startService({ trustedProxies: 1 });
    developerId = await newDeveloper(service);
  });

  after(() => service.stop());

  const visit = (): Visitor => new Visitor(service.url);

  it('opens the settings, and opens nothing a second time', async () => {
    const visitor = visit();
    const token = await createSignInLink(service.db, developerId);
    const page = await visitor.get(`/sign-in/link/${token}`);
    assert.equal(page.status, 200);
    assert.ok(page.text.includes(`value="${token}"`));
    const reply = await visitor.post('/sign-in/link', { token });
    assert.deepEqual([reply.status, reply.headers.location], [303, '/settings']);
    const settings = await visitor.get('/settings');
    assert.equal(settings.status, 200);
    assert.ok(settings.text.includes('Film club'));
    const again = await visit().post('/sign-in/link', { token });
    assert.equal(again.status, 403);
    assert.ok(again.text.includes('This link does not work'));
    assert.equal(again.headers['set-cookie'], undefined);
  });

  it('opens nothing when the link is only looked at, however often', async () => {
    const token = await createSignInLink(service.db, developerId);
    const queries = service.queries.length;
    for (let i = 0; i < 5; i += 1) {
      const reply = await visit().get(`/sign-in/link/${token}`);
      assert.equal(reply.headers['set-cookie'], undefined);
      await send(service.url, `/sign-in/link/${token}`, { method: 'HEAD' });
    }
    assert.equal(service.queries.length, queries, 'looking at a link costs no query');
    assert.equal((await visit().post('/sign-in/link', { token })).status, 303);
  });

  it('shows the same page for a link that works and for one that never was', async () => {
    const token = await createSignInLink(service.db, developerId);
    const never = 'f'.repeat(64);
    const [real, made] = [await visit().get(`/sign-in/link/${token}`), await visit().get(`/sign-in/link/${never}`)];
    assert.equal(real.text.replaceAll(token, 'X'), made.text.replaceAll(never, 'X'));
    assert.equal(real.status, made.status);
  });

  it('gives the same answer for a link that is spent, has expired or never was, by the same queries', async () => {
    const spent = await createSignInLink(service.db, developerId);
    await visit().post('/sign-in/link', { token: spent });
    const expired = await createSignInLink(service.db, developerId);
    await service.db('sign_in_links').update({ expires_at: new Date(0) });
    const answers = [];
    for (const token of [spent, expired, 'f'.repeat(64)]) {
      const queries = service.queries.length;
      const { status, text } = await visit().post('/sign-in/link', { token });
      const page = text.replace(/Request ID: <code>[^<]+/, '');
      answers.push({ status, page, queries: service.queries.slice(queries) });
    }
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
    assert.equal(answers[0]?.queries.length, 3, 'one statement in a transaction');
  });

  it('refuses an address after ten failed attempts a minute, and still lets a link in that works', async () => {
    const visitor = new Visitor(service.url, { 'x-forwarded-for': '192.0.2.7' });
    for (let i = 0; i < 10; i += 1) {
      assert.equal((await visitor.post('/sign-in/link', { token: 'f'.repeat(64) })).status, 403);
    }
    const reply = await visitor.post('/sign-in/link', { token: '0'.repeat(64) });
    assert.equal(reply.status, 429);
    assert.match(String(reply.headers['retry-after']), /^(?:60|5\d)$/);
    const elsewhere = new Visitor(service.url, { 'x-forwarded-for': '192.0.2.8' });
    assert.equal((await elsewhere.post('/sign-in/link', { token: '0'.repeat(64) })).status, 403);
    const token = await createSignInLink(service.db, developerId);
    assert.equal((await visitor.post('/sign-in/link', { token })).status, 303);
  });

  it('writes no token of a link or a session into the log', async () => {
    const visitor = visit();
    const token = await createSignInLink(service.db, developerId);
    await visitor.get(`/sign-in/link/${token}`);
    await visitor.get(`/sign-in/link/${token}/`, { referer: `${service.url}/sign-in/link/${token}` });
    await visitor.get(`/sign-in?token=${token}`);
    await visitor.post('/sign-in/link', { token });
    await visitor.get('/settings');
    const session = visitor.cookies.get(SESSION) ?? assert.fail('no session');
    const log = service.logged.join('\n');
    assert.ok(log.includes('/sign-in/link/[redacted]'), log);
    for (const secret of [token, session]) {
      for (let at = 0; at + 12 <= secret.length; at += 1) {
        assert.ok(!log.includes(secret.slice(at, at + 12)), 'a part of a token is in the log');
      }
    }
  });

  it('does not hand the link on in the Referer of what the page loads', async () => {
    const { headers } = await visit().get(`/sign-in/link/${'f'.repeat(64)}`);
    assert.equal(headers['referrer-policy'], 'strict-origin');
    assert.equal(headers['cache-control'], 'no-store');
  });

  it('gives the browser a new session, whatever session somebody has put there before', async () => {
    const attacker = await signIn(service, await newDeveloper(service, 'Attacker'));
    const planted = attacker.cookies.get(SESSION) ?? assert.fail();
    const victim = visit();
    victim.cookies.set(SESSION, planted);
    await signIn(service, developerId, victim);
    assert.notEqual(victim.cookies.get(SESSION), planted);
    assert.ok((await victim.get('/settings')).text.includes('Film club'));
    // The planted one is nobody's, also where the attacker kept it.
    assert.equal((await attacker.get('/settings')).status, 303);
    // Nor does a value that never was a session become one.
    const made = visit();
    made.cookies.set(SESSION, 'a'.repeat(64));
    await signIn(service, developerId, made);
    assert.notEqual(made.cookies.get(SESSION), 'a'.repeat(64));
  });

  it('keeps the session in a cookie that no script and no other site gets at', async () => {
    const token = await createSignInLink(service.db, developerId);
    const { headers } = await visit().post('/sign-in/link', { token });
    const [line = ''] = (headers['set-cookie'] ?? []).filter((cookie) => cookie.startsWith(SESSION));
    assert.match(line, /^catalog-session=[0-9a-f]{64}; path=\/; expires=[^;]+; samesite=lax; httponly$/);
    const days = (Date.parse(/expires=([^;]+)/.exec(line)?.[1] ?? '') - Date.now()) / 86_400_000;
    assert.ok(Math.abs(days - 30) < 0.1, String(days));
  });

  it('asks to sign in where there is no session, and comes back to the page that was wanted', async () => {
    const visitor = visit();
    const asked = await visitor.get('/settings/sessions');
    assert.deepEqual([asked.status, asked.headers.location], [303, '/sign-in']);
    assert.equal(asked.headers['cache-control'], 'no-store');
    const token = await createSignInLink(service.db, developerId);
    const reply = await visitor.post('/sign-in/link', { token });
    assert.equal(reply.headers.location, '/settings/sessions');
  });

  it('comes back to a page of the settings alone, whatever the browser holds', async () => {
    for (const path of [
      'https://evil.example/',
      '//evil.example/settings',
      '/\\evil.example',
      '/settings//evil.example',
      '/settings/../sign-out',
      '/settings?next=https://evil.example',
      'javascript:alert(1)',
    ]) {
      const visitor = visit();
      visitor.cookies.set('catalog-return-to', path);
      const token = await createSignInLink(service.db, developerId);
      const { headers } = await visitor.post('/sign-in/link', { token });
      assert.equal(headers.location, '/settings', path);
    }
  });

  it('ends with the session: signing out ends it here, and on every copy of its cookie', async () => {
    const visitor = await signIn(service, developerId);
    const copy = visit();
    for (const [name, value] of visitor.cookies) copy.cookies.set(name, value);
    const { status, headers } = await visitor.post('/sign-out');
    assert.deepEqual([status, headers.location], [303, '/sign-in']);
    assert.equal(headers['clear-site-data'], '"cache"');
    assert.equal(visitor.cookies.has(SESSION), false);
    assert.equal((await copy.get('/settings')).status, 303);
  });

  it('lets a suspended developer in, to read that the account is suspended', async () => {
    const id = await newDeveloper(service, 'Suspended project');
    await suspendDeveloper(service.db, id);
    const visitor = await signIn(service, id);
    const { status, text } = await visitor.get('/settings');
    assert.equal(status, 200);
    assert.ok(text.includes('Your account is suspended.'));
  });

  it('opens no operation of the API, and a key opens no page', async () => {
    const visitor = await signIn(service, developerId);
    assert.equal((await visitor.get('/api/v1/me')).status, 401);
    const { status } = await visit().get('/settings', { authorization: `Bearer ${service.key}` });
    assert.equal(status, 303);
  });
});

describe('the cookies of a service with a public URL', () => {
  it('are bound to its host by name, and to https', async () => {
    const service = await startService({ settings: { PUBLIC_URL: 'https://catalog.example' } });
    try {
      const token = await createSignInLink(service.db, await newDeveloper(service));
      const { headers, status } = await new Visitor(service.url).post(
        '/sign-in/link',
        { token },
        { origin: 'https://catalog.example', host: 'catalog.example' },
      );
      assert.equal(status, 303);
      assert.match(
        String(headers['set-cookie']?.[0]),
        /^__Host-session=[0-9a-f]{64}; path=\/; expires=[^;]+; samesite=lax; secure; httponly$/,
      );
    } finally {
      await service.stop();
    }
  });
});
