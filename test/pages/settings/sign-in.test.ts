import assert from 'node:assert/strict';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { suspendDeveloper } from '../../../src/developers/developers.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { signIn, Visitor } from '../../support/http/visitor.js';
import { send } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const SESSION = 'catalog-session';

/** A token that nobody was given. */
const UNKNOWN = 'f'.repeat(64);

const ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

describe('sign-in links and sessions', () => {
  let service: TestService;
  let developerId: number;

  before(async () => {
    service = await startService({ trustedProxies: 1 });
    developerId = await newDeveloper(service.db);
  });

  after(() => service.stop());

  const visit = (headers?: Record<string, string>): Visitor => new Visitor(service.url, headers);
  const newLink = (id = developerId): Promise<string> => createSignInLink(service.db, id);

  it('the page of a link signs nobody in, spends nothing and keeps the token out of caches', async () => {
    const token = await newLink();
    for (let opened = 0; opened < 2; opened += 1) {
      await send(service.url, `/sign-in/link/${token}`, { method: 'HEAD' });
      const { status, headers, text } = await visit().get(`/sign-in/link/${token}`);
      const { 'referrer-policy': referrer, 'cache-control': cache, 'set-cookie': cookie } = headers;
      assert.deepEqual([status, referrer, cache, cookie], [200, 'strict-origin', 'no-store', undefined]);
      assert.ok(text.includes(`value="${token}"`));
    }
    assert.equal((await visit().post('/sign-in/link', { token })).status, 303);
  });

  it('a spent link leads somebody who is signed in to the settings', async () => {
    const token = await newLink();
    const visitor = visit();
    await visitor.post('/sign-in/link', { token });
    for (const again of [await visitor.get(`/sign-in/link/${token}`), await visitor.post('/sign-in/link', { token })]) {
      assert.deepEqual([again.status, again.headers.location], [303, '/settings']);
    }
    assert.ok((await visitor.get('/settings')).text.includes('but you are already signed in.'));
  });

  it('a spent, an expired and an unknown link get the same answer by the same queries', async () => {
    const [spent, expired] = [await newLink(), await newLink()];
    await visit().post('/sign-in/link', { token: spent });
    await service.db('sign_in_links').update({ expires_at: new Date(0) });
    const answers = [];
    for (const token of [spent, expired, UNKNOWN]) {
      const queries = service.queries.length;
      const opened = await visit().get(`/sign-in/link/${token}`);
      const posted = await visit().post('/sign-in/link', { token });
      const pages = [opened, posted].map(({ text }) => text.replace(/Request ID: <code>[^<]+/, ''));
      answers.push({ statuses: [opened.status, posted.status], pages, queries: service.queries.slice(queries) });
    }
    assert.deepEqual(answers, [answers[0], answers[0], answers[0]]);
    assert.deepEqual(answers[0]?.statuses, [403, 403]);
  });

  it('an address is refused after ten failed sign-ins in a minute, except with a valid link', async () => {
    const visitor = visit({ 'x-forwarded-for': '192.0.2.7' });
    for (let i = 0; i < 10; i += 1) {
      assert.equal((await visitor.post('/sign-in/link', { token: UNKNOWN })).status, 403);
    }
    const { status, headers } = await visitor.post('/sign-in/link', { token: UNKNOWN });
    assert.equal(status, 429);
    assert.match(String(headers['retry-after']), /^(?:60|5\d)$/);
    const elsewhere = visit({ 'x-forwarded-for': '192.0.2.8' });
    assert.equal((await elsewhere.post('/sign-in/link', { token: UNKNOWN })).status, 403);
    assert.equal((await visitor.post('/sign-in/link', { token: await newLink() })).status, 303);
  });

  it('no token of a link or a session is in the log', async () => {
    const visitor = visit();
    const token = await newLink();
    await visitor.get(`/sign-in/link/${token}`);
    await visitor.get(`/sign-in/link/${token}/`, { referer: `${service.url}/sign-in/link/${token}` });
    await visitor.get(`/sign-in?token=${token}`);
    await visitor.post('/sign-in/link', { token });
    await visitor.get('/settings');
    const session = visitor.cookies.get(SESSION) ?? assert.fail('no session');
    const log = service.logged.join('\n');
    assert.ok(log.includes('/sign-in/link/[redacted]'), log);
    for (const secret of [token, session]) {
      for (let at = 0; at + 12 <= secret.length; at += 1) assert.ok(!log.includes(secret.slice(at, at + 12)));
    }
  });

  it('a sign-in starts a new session, and ends the one that the browser had before', async () => {
    const attacker = await signIn(service, await newDeveloper(service.db, 'Attacker'));
    for (const planted of [attacker.cookies.get(SESSION) ?? assert.fail(), 'a'.repeat(64)]) {
      const victim = visit();
      victim.cookies.set(SESSION, planted);
      await signIn(service, developerId, victim);
      assert.notEqual(victim.cookies.get(SESSION), planted);
      assert.ok((await victim.get('/settings')).text.includes('Test project'));
    }
    assert.equal((await attacker.get('/settings')).status, 303);
  });

  it('the cookie of a session lasts 30 days, is kept from scripts and other sites, and on https is bound to its host', async () => {
    const { headers } = await visit().post('/sign-in/link', { token: await newLink() });
    const [line = ''] = (headers['set-cookie'] ?? []).filter((cookie) => cookie.startsWith(SESSION));
    assert.match(line, /^catalog-session=[0-9a-f]{64}; path=\/; expires=[^;]+; samesite=lax; httponly$/);
    const days = (Date.parse(/expires=([^;]+)/.exec(line)?.[1] ?? '') - Date.now()) / 86_400_000;
    assert.ok(Math.abs(days - 30) < 0.1, String(days));
    const PUBLIC_URL = 'https://catalog.example';
    const named = await startService({ databaseUrl: service.databaseUrl, settings: { PUBLIC_URL } });
    try {
      const origin = { origin: PUBLIC_URL, host: 'catalog.example' };
      const secure = await new Visitor(named.url).post('/sign-in/link', { token: await newLink() }, origin);
      assert.match(
        String(secure.headers['set-cookie']?.[0]),
        /^__Host-session=[0-9a-f]{64}; path=\/; expires=[^;]+; samesite=lax; secure; httponly$/,
      );
    } finally {
      await named.stop();
    }
  });

  it('a sign-in leads back to the page of the settings that was requested, once', async () => {
    const visitor = visit();
    const { status, headers } = await visitor.get('/settings/sessions');
    assert.deepEqual([status, headers.location, headers['cache-control']], [303, '/sign-in', 'no-store']);
    const back = await visitor.post('/sign-in/link', { token: await newLink() });
    assert.equal(back.headers.location, '/settings/sessions');
    const later = await visitor.post('/sign-in/link', { token: await newLink() });
    assert.equal(later.headers.location, '/settings', 'once');
  });

  it('a sign-in leads to no address but a page of the settings, with a query that breaks no header field', async () => {
    const secret = service.key.slice(13);
    for (const [target, location] of [
      ['/settings/usage?key=svc_ZZZZZZZZ&range=7d', '/settings/usage?key=svc_ZZZZZZZZ&range=7d'],
      ['/settings?next=https://evil.example', '/settings?next=https%3A%2F%2Fevil.example'],
      [
        '/settings/keys/new?label=two words&a=%0d%0aLocation:x',
        '/settings/keys/new?label=two%20words&a=%0D%0ALocation%3Ax',
      ],
      // A key that somebody has pasted, and more than an address holds.
      [`/settings/keys/new?label=${service.key}&lifetime=30`, '/settings/keys/new?lifetime=30'],
      [`/settings/keys/new?label=${'x'.repeat(401)}&lifetime=30`, '/settings/keys/new?lifetime=30'],
      [`/settings/keys?${'a=b&'.repeat(1_000)}`, '/settings/keys'],
      ...[`q=${service.key}`, `q=${secret}`, `${secret}=1`, `${service.key}=1`].map(
        (query) => [`/settings/keys?${query}&after=2`, '/settings/keys?after=2'] as const,
      ),
      ...[
        'https://evil.example/',
        '//evil.example/settings',
        '/\\evil.example',
        '/settings//evil.example',
        '/settings/../sign-out',
        '/settings\\@evil.example?label=x',
        '/settings.evil.example?label=x',
        '?label=x',
        '//evil.example?/settings',
        'javascript:alert(1)',
      ].map((address) => [address, '/settings'] as const),
    ] as const) {
      const visitor = visit();
      visitor.cookies.set('catalog-return-to', target);
      const reply = await visitor.post('/sign-in/link', { token: await newLink() });
      assert.equal(reply.headers.location, location, target);
    }
    const visitor = visit();
    await visitor.get(`/settings/keys?q=two+words&after=2&key=${service.key}`);
    assert.ok(!String(visitor.cookies.get('catalog-return-to')).includes(secret));
    const { headers } = await visitor.post('/sign-in/link', { token: await newLink() });
    assert.equal(headers.location, '/settings/keys?q=two%20words&after=2');
  });

  it('signing out ends the session for every copy of its cookie, and removes every cookie of the site', async () => {
    const visitor = await signIn(service, developerId);
    const copy = visit();
    for (const [name, value] of visitor.cookies) copy.cookies.set(name, value);
    // Nobody else gets a form that was filled in.
    for (const name of ['return-to', 'passkey', 'notice', 'oidc', 'sign-up'])
      visitor.cookies.set(`catalog-${name}`, 'x');
    const { status, headers } = await visitor.post('/sign-out');
    assert.deepEqual([status, headers.location, headers['clear-site-data']], [303, '/signed-out', '"cache"']);
    assert.deepEqual([...visitor.cookies.keys()], []);
    assert.match((await visitor.get('/signed-out')).text, /<h1>You are signed out<\/h1>.*href="\/sign-in"/s);
    assert.equal((await copy.get('/settings')).status, 303);
  });

  it('a session opens no operation of the API, and a key opens no page', async () => {
    const visitor = await signIn(service, developerId);
    assert.equal((await visitor.get('/api/v1/me')).status, 401);
    const { status } = await visit().get('/settings', { authorization: `Bearer ${service.key}` });
    assert.equal(status, 303);
  });

  it('a suspended developer signs in, reads the settings and ends sessions', async () => {
    const id = await newDeveloper(service.db);
    await suspendDeveloper(service.db, id);
    const [here, there] = [await signIn(service, id), await signIn(service, id)];
    assert.ok((await here.get('/settings')).text.includes('Your account is suspended.'));
    assert.equal((await here.post('/settings/sessions/end-others')).headers.location, '/settings/sessions');
    assert.equal((await there.get('/settings')).status, 303);
  });

  it('ending all other sessions leaves this one, voids unused links, and is offered only where there are others', async () => {
    const id = await newDeveloper(service.db);
    const here = await signIn(service, id);
    const sessions = async (): Promise<string> => (await here.get('/settings/sessions')).text;
    assert.ok(!(await sessions()).includes('Sign out everywhere else'));
    const [there, stranger] = [await signIn(service, id), await signIn(service, await newDeveloper(service.db))];
    const unused = await createSignInLink(service.db, id);
    assert.ok((await sessions()).includes('Sign out everywhere else'));
    const { headers } = await here.post('/settings/sessions/end-others');
    assert.equal(headers.location, '/settings/sessions');
    assert.ok((await sessions()).includes('All your other browsers are signed out.'));
    assert.equal((await there.get('/settings')).status, 303);
    assert.equal((await visit().post('/sign-in/link', { token: unused })).status, 403);
    for (const visitor of [here, stranger]) assert.equal((await visitor.get('/settings')).status, 200);
  });

  it('sessions and their events are those of the developer alone, with browsers as text and where each came from', async () => {
    const id = await newDeveloper(service.db, `Club ${ATTACK}`);
    await signIn(service, id, visit({ 'user-agent': ATTACK }));
    const here = await signIn(service, id, visit({ 'user-agent': 'Laptop/3', 'x-forwarded-for': '2001:db8:0:7:1::9' }));
    await signIn(service, await newDeveloper(service.db), visit({ 'user-agent': 'Stranger/4' }));
    const { text } = await here.get('/settings/sessions');
    assert.equal((await listed(here)).length, 2);
    assert.match(text, /Laptop\/3[^/]*This browser/);
    assert.match(text, /just now<span[^>]*>[^<]*<\/span><\/time>, with a link from 2001:db8:0:7::\/64</);
    const events = (await here.get('/settings/events?kind=sign-in')).text;
    assert.ok(events.includes('Signed in with a link: Laptop/3 (2001:db8:0:7::/64)'), events);
    assert.ok(
      events.includes('&lt;script') && !events.includes('<script>alert') && !events.includes('Project created'),
    );
    assert.ok(text.includes('&lt;script') && !text.includes('<script>alert') && !text.includes('Stranger/4'));
  });

  it('ending one session ends it from its next request on, and no session of another developer', async () => {
    const [there, here] = [await signIn(service, developerId), await signIn(service, developerId)];
    const other = await signIn(service, await newDeveloper(service.db));
    const [theirs = ''] = await listed(other);
    const [, previous = ''] = await listed(here);
    for (const [session, status] of [
      [previous, 303],
      [theirs, 303],
      ...['', '-1', '99999999999', '1 or 1=1', `${theirs}.0`].map((text) => [text, 400] as const),
    ] as const) {
      assert.equal((await here.post('/settings/sessions/end', { session })).status, status, session);
    }
    assert.equal((await there.get('/settings')).headers.location, '/sign-in');
    for (const visitor of [here, other]) assert.equal((await visitor.get('/settings')).status, 200);
  });

  /** The ids of the sessions that a page lists, newest first. */
  async function listed(visitor: Visitor): Promise<string[]> {
    const { text } = await visitor.get('/settings/sessions');
    return [...text.matchAll(/name="session" value="(\d+)"/g)].map(([, id = '']) => id);
  }
});
