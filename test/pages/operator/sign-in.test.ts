import assert from 'node:assert/strict';
import { createOperatorLink, createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { ABSOLUTE_HOURS, IDLE_MINUTES, OperatorSessions } from '../../../src/pages/operator/sessions.js';
import { signInOperator } from '../../support/http/operator.js';
import { Visitor } from '../../support/http/visitor.js';
import { runWithoutRedis } from '../../support/programs/command.js';
import { assertHeaders } from '../../support/problem.js';
import { send } from '../../support/request.js';
import { testWorld } from '../../support/world.js';
import { needsOperator, OPERATOR_FORMS, operatorPages, UNKNOWN } from '../pages.js';

const PAGES = { settings: { METRICS_ADDRESS: '127.0.0.1:0' } };

describe('sign-in to the operator pages', () => {
  const world = testWorld({ service: PAGES });

  function origin(): string {
    return world.service.operatorUrl ?? assert.fail();
  }

  function visitor(): Visitor {
    return new Visitor(origin());
  }

  it('the command prints a link whose page only shows a button, and the button signs in once', async () => {
    const { code, stdout } = await runWithoutRedis(['operator', 'sign-in-link'], world.url);
    assert.equal(code, 0);
    const [, path = assert.fail(stdout)] =
      /^ {2}http:\/\/127\.0\.0\.1:9464(\/sign-in\/[0-9a-f]{64})$/m.exec(stdout) ?? [];
    assert.match(stdout, /If your server has\nanother METRICS_ADDRESS, change/);
    const browser = visitor();
    for (let opened = 0; opened < 2; opened += 1) {
      const page = await browser.get(path);
      assert.equal(page.status, 200);
      assertHeaders(page, { 'cache-control': 'no-store', 'referrer-policy': 'strict-origin' });
    }
    assert.equal((await browser.get('/')).status, 303);
    assert.ok((await browser.get('/sign-in')).text.includes('node .build/cli.js operator sign-in-link'));
    const token = path.slice('/sign-in/'.length);
    const signedIn = await browser.post('/sign-in', { token });
    assert.deepEqual([signedIn.status, signedIn.headers.location], [303, '/']);
    assert.match(
      String(signedIn.headers['set-cookie']),
      /^catalog-operator-session-[0-9a-f]{8}=[0-9a-f]{64}; path=\/; .*samesite=strict; httponly$/i,
    );
    assert.equal((await browser.get('/')).status, 200);
    const again = await visitor().post('/sign-in', { token });
    assert.equal(again.status, 403);
    assert.ok(again.text.includes('works only once'), again.text);
    assert.equal((await send(world.service.url, path)).status, 404, 'the public address has no such page');
  });

  it('a link that has expired, was made for a developer or was never made, signs nobody in', async () => {
    const token = await createOperatorLink(world.db);
    await world.db('sign_in_links').update({ expires_at: world.db.raw('now()') });
    const ofDeveloper = await createSignInLink(world.db, await world.newDeveloper());
    for (const invalid of [token, ofDeveloper, UNKNOWN.token, 'x', '']) {
      assert.equal((await visitor().post('/sign-in', { token: invalid })).status, 403, invalid);
      if (invalid !== '') assert.equal((await visitor().get(`/sign-in/${invalid}`)).status, 403, invalid);
    }
  });

  it('failed sign-ins of one operator do not keep the others behind the same tunnel out', async () => {
    for (let failed = 0; failed < 11; failed += 1) await visitor().post('/sign-in', { token: UNKNOWN.token });
    const { status } = await visitor().post('/sign-in', { token: await createOperatorLink(world.db) });
    assert.equal(status, 303);
  });

  it('two servers whose ports are forwarded to one machine keep a session each', async () => {
    const one = await signInOperator(world.service);
    const other = await signInOperator(await world.startService(PAGES));
    for (const [name, token] of other.cookies) one.cookies.set(name, token);
    assert.equal((await one.get('/')).status, 200, 'the session of the first server');
  });

  it('every page and form sends somebody without a session to the sign-in page, and changes nothing', async () => {
    const id = await world.newDeveloper();
    const { prefix } = await world.newKey({ developerId: id });
    for (const path of operatorPages({ id: String(id), prefix }).filter(needsOperator)) {
      const { status, headers } = await visitor().get(path);
      assert.deepEqual([status, headers.location, headers['cache-control']], [303, '/sign-in', 'no-store'], path);
    }
    for (const path of OPERATOR_FORMS.filter(needsOperator)) {
      const { status, headers } = await visitor().post(path.replace(UNKNOWN.id, String(id)), {});
      assert.deepEqual([status, headers.location], [303, '/sign-in?interrupted'], path);
    }
    const { text } = await visitor().get('/sign-in?interrupted');
    assert.ok(text.includes('Nothing was changed.'), text);
  });

  it('a sign-in leads to the page of these pages that was requested, and from any other address to the first one', async () => {
    const id = await world.newDeveloper();
    const { prefix } = await world.newKey({ developerId: id });
    const signInFrom = async (browser: Visitor): Promise<string | undefined> => {
      const reply = await browser.post('/sign-in', { token: await createOperatorLink(world.db) });
      return reply.headers.location;
    };
    for (const [path, leadsTo = path] of [
      [`/developers/${id}/events?after=1`],
      ['/developers?q=film%20club'],
      [`/keys/${prefix}/revoke`],
      ['/developers/%0d%0aX', '/'],
      ['/', '/'],
    ] as const) {
      const browser = visitor();
      await browser.get(path);
      assert.equal(await signInFrom(browser), leadsTo, path);
      assert.equal(await signInFrom(browser), '/', 'only once');
    }
    const interrupted = visitor();
    await interrupted.post('/developers/new', { project_name: 'Film club', form: UNKNOWN.token });
    assert.equal(await signInFrom(interrupted), '/developers/new?project_name=Film%20club');
    const browser = visitor();
    await browser.get('/developers');
    const [[name] = assert.fail()] = browser.cookies;
    for (const forged of ['https://evil.example/', '//evil.example', '/sign-out', '/nope', '%ff']) {
      browser.cookies.set(name, forged);
      assert.equal(await signInFrom(browser), '/', forged);
    }
  });

  it('signing out ends the session, and a session of the public pages opens no page', async () => {
    const browser = await signInOperator(world.service);
    const [[name, token] = assert.fail()] = browser.cookies;
    const signedOut = await browser.post('/sign-out');
    assert.deepEqual([signedOut.status, signedOut.headers['clear-site-data']], [303, '"cache"']);
    assert.equal(browser.cookies.size, 0);
    const stolen = visitor();
    for (const cookie of [name, 'catalog-session', '__Host-session']) stolen.cookies.set(cookie, token);
    assert.equal((await stolen.get('/')).status, 303);
  });

  it('a form that another site has made a browser send is refused, and one of the address in use is not', async () => {
    const browser = await signInOperator(world.service);
    const host = 'catalog.internal:9464';
    for (const path of OPERATOR_FORMS) {
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { origin: world.service.url },
        ...[
          'null',
          'http://',
          'https://evil.example',
          'http://evil.internal:9464',
          'http://evil.catalog.internal:9464',
        ],
        ...[
          'http://evil-catalog.internal:9464',
          'http://catalog.internal:9464.evil.example',
          'http://catalog.internal',
        ],
        ...[
          'http://catalog.internal:94640',
          'http://catalog.internal:9464@evil.example',
          'https://catalog.internal:9464',
        ],
        {},
      ].map((each) => (typeof each === 'string' ? { origin: each, host } : each))) {
        const { status } = await browser.post(path, {}, headers);
        assert.equal(status, 403, path + JSON.stringify(headers));
      }
      // A name that the attacker's site has given this address.
      const rebound = { origin: 'http://evil.example', host: 'evil.example' };
      assert.equal((await browser.post(path, {}, rebound)).status, 421, path);
    }
    assert.equal((await browser.get('/')).status, 200, 'the operator is still signed in');
    for (const own of [new URL(origin()).host, host, 'localhost:1234', '[::1]:9464', 'catalog']) {
      const { status } = await browser.post('/developers/new', {}, { origin: `http://${own}`, host: own });
      assert.equal(status, 422, own);
    }
  });

  it('the header fields of every page keep other origins out, and the public address has none of the pages', async () => {
    const browser = await signInOperator(world.service);
    const { prefix, developerId } = await world.newKey();
    for (const path of operatorPages({ id: String(developerId), prefix })) {
      const reply = await browser.get(path);
      assert.equal(reply.status, path.includes(UNKNOWN.token) ? 403 : 200, path);
      assertHeaders(reply, {
        'cache-control': path.startsWith('/guides') ? 'no-cache' : 'no-store',
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; font-src 'self'; " +
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'cross-origin-opener-policy': 'same-origin',
      });
      assert.ok(!(await send(world.service.url, path)).text.includes('Catalog operator'), path);
    }
    for (const [path, method, status] of [
      ['/nope', 'GET', 404],
      ['/', 'PUT', 405],
      ['/metrics', 'GET', 200],
    ] as const) {
      assert.equal((await send(origin(), path, { method })).status, status, path);
    }
  });

  it('a link is not made where no server could accept it', async () => {
    for (const [settings, reason] of [
      [{ OPERATOR_PAGES: 'off' }, /OPERATOR_PAGES is off/],
      [{ METRICS_ADDRESS: 'off' }, /METRICS_ADDRESS is off/],
      [{ METRICS_ADDRESS: ':0' }, /port 0/],
    ] as const) {
      const { code, stderr } = await runWithoutRedis(['operator', 'sign-in-link'], world.url, '', settings);
      assert.equal(code, 1);
      assert.match(stderr, reason);
    }
  });
});

describe('the session of an operator', () => {
  let now = 1;
  const sessions = new OperatorSessions(() => now);
  const MINUTE_MS = 60_000;

  it('a session ends after an hour without use, and eight hours after the sign-in', () => {
    const idle = sessions.start();
    now += IDLE_MINUTES * MINUTE_MS + 1;
    assert.equal(sessions.has(idle), false);
    const used = sessions.start();
    for (let minutes = 0; minutes < ABSOLUTE_HOURS * 60; minutes += 30) {
      assert.ok(sessions.has(used), `after ${minutes} minutes`);
      now += 30 * MINUTE_MS;
    }
    assert.equal(sessions.has(used), false);
  });

  it('a hundredth and first session ends the one that was unused for the longest time', () => {
    const tokens = Array.from({ length: 101 }, () => sessions.start());
    assert.deepEqual(
      tokens.map((token) => sessions.has(token)),
      tokens.map((_, index) => index > 0),
    );
  });
});
