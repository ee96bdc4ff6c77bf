import assert from 'node:assert/strict';
import { linkIdentity } from '../../../src/accounts/identities.js';
import { listDevelopers } from '../../../src/developers/developers.js';
import { listEvents } from '../../../src/events/events.js';
import { setPlan } from '../../../src/limits/plans.js';
import { eventually } from '../../support/eventually.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { Visitor } from '../../support/http/visitor.js';
import { NO_SUBJECT, type IdentityProvider } from '../../support/pages/identity-provider.js';
import type { TestService } from '../../support/service.js';
import { CALLBACK, from, Person, startWithProvider } from './oidc-service.js';

describe('signing in by OpenID Connect', () => {
  let service: TestService;
  let provider: IdentityProvider;
  let developerId: number;

  before(async () => {
    ({ service, provider } = await startWithProvider('off'));
    developerId = await newDeveloper(service.db);
    await linkIdentity(service.db, developerId, { issuer: provider.issuer, subject: 'ann' });
  });

  beforeEach(() => {
    Object.assign(provider, { state: 'up', signedInAgo: 0, tokenError: undefined });
  });

  after(async () => {
    await service.stop();
    await provider.stop();
  });

  const person = (subject = 'ann'): Person => new Person(service, provider, subject);

  it('the way to a key begins with a sign-in at the provider, and with the operator for somebody who is not known', async () => {
    const { text } = await person().here.get('/', { accept: 'text/html' });
    assert.match(text, /href="\/settings\/keys\/new">Sign in with 127\.0\.0\.1:\d+ to get a key<\/a>/);
    assert.match(text, /The first time, .*your administrator/s);
  });

  it('a linked identity opens the settings of its developer, at the page that was requested', async () => {
    const ann = person();
    await ann.here.get('/settings/sessions');
    const reply = await ann.signIn();
    assert.deepEqual([reply.status, reply.headers.location], [303, '/settings/sessions']);
    assert.ok((await ann.here.get('/settings')).text.includes('Test project'));
    assert.equal(ann.here.cookies.has('catalog-oidc'), false);
  });

  it('a sign-in uses PKCE, state and nonce, and none of them reveals another or the cookie', async () => {
    const ann = person();
    const { searchParams } = await ann.begin();
    assert.equal(searchParams.get('response_type'), 'code');
    assert.equal(searchParams.get('code_challenge_method'), 'S256');
    assert.equal(searchParams.get('redirect_uri'), service.url + CALLBACK);
    assert.equal(searchParams.get('max_age'), '900');
    const secret = ann.here.cookies.get('catalog-oidc') ?? assert.fail();
    const values = ['state', 'nonce', 'code_challenge'].map((name) => searchParams.get(name) ?? '');
    for (const value of values) assert.match(value, /^[\w-]{43}$/);
    const again = await person().begin();
    const others = ['state', 'nonce', 'code_challenge'].map((name) => again.searchParams.get(name));
    assert.equal(new Set([...values, ...others, secret]).size, 7);
  });

  it('an identity without a developer gets no session, but the command that links it, quoted for a shell', async () => {
    const { status, text, headers } = await person('eve').signIn();
    assert.equal(status, 403);
    assert.ok(text.includes(`Issuer:  ${provider.issuer}`) && text.includes('Subject: eve'));
    assert.ok(text.includes(`node .build/cli.js developers link ID --issuer ${provider.issuer} --subject eve`));
    assert.ok(!(headers['set-cookie'] ?? []).some((line) => line.startsWith('catalog-session=')));
    assert.equal((await person('eve').here.get('/sign-up')).status, 404);
    const attack = await person(`'; rm -rf / <script>alert(1)</script>`).signIn();
    assert.ok(!attack.text.includes('<script>alert'));
    assert.ok(attack.text.includes(`--subject ''\\''; rm -rf / &lt;script`), attack.text);
  });

  it('an answer to the sign-in of another browser, or one that arrives again, is refused without a request to the provider', async () => {
    const attacker = person('mallory');
    const answer = await attacker.answer(await attacker.begin());
    const victim = person();
    const requests = provider.tokenRequests;
    assert.equal((await victim.here.get(answer)).status, 403);
    await victim.begin();
    assert.equal((await victim.here.get(answer)).status, 403, 'also while the victim is signing in');
    assert.equal(victim.here.cookies.has('catalog-session'), false);
    assert.equal(provider.tokenRequests, requests);
    const ann = person();
    const own = await ann.answer(await ann.begin());
    const secret = ann.here.cookies.get('catalog-oidc') ?? '';
    assert.equal((await ann.here.get(own)).status, 303);
    const spent = provider.requests;
    ann.here.cookies.set('catalog-oidc', secret);
    assert.equal((await ann.here.get(own)).status, 403);
    assert.equal(provider.requests, spent);
  });

  it('an answer that the provider cannot have given is refused without a request to the provider or a warning', async () => {
    const requests = provider.tokenRequests;
    const lines = service.logged.length;
    for (const change of [
      (query: URLSearchParams) => query.append('state', query.get('state') ?? ''),
      (query: URLSearchParams) => query.set('state', 'é'.repeat(43)),
      (query: URLSearchParams) => query.delete('state'),
      (query: URLSearchParams) => query.append('code', 'another'),
      (query: URLSearchParams) => query.set('code', ''),
      (query: URLSearchParams) => query.delete('code'),
      (query: URLSearchParams) => query.set('iss', 'https://evil.example'),
      (query: URLSearchParams) => query.delete('iss'),
      (query: URLSearchParams) => query.set('response', 'a.b.c'),
      (query: URLSearchParams) => query.set('id_token', 'a.b.c'),
    ]) {
      const ann = person();
      const answer = new URL(await ann.answer(await ann.begin()), service.url);
      change(answer.searchParams);
      assert.equal((await ann.here.get(answer.pathname + answer.search)).status, 403, answer.search);
    }
    assert.equal(provider.tokenRequests, requests);
    assert.deepEqual(
      service.logged.slice(lines).filter((line) => !line.includes('"level":30')),
      [],
    );
  });

  it('an identity that was confirmed for another request is refused', async () => {
    for (const [what, change, status, text] of [
      ['with another nonce', { nonce: 'another' }, 503, 'Your provider is not responding'],
      [
        'for another verifier',
        { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' },
        403,
        'Your provider refused the sign-in',
      ],
      ['without auth_time, which the provider supports', { max_age: undefined }, 403, 'within the last 15 minutes'],
    ] as const) {
      const ann = person();
      const url = await ann.begin();
      for (const [name, value] of Object.entries(change)) {
        if (value === undefined) url.searchParams.delete(name);
        else url.searchParams.set(name, value);
      }
      const reply = await ann.here.get(await ann.answer(url));
      assert.deepEqual([reply.status, reply.text.includes(text)], [status, true], what);
      assert.equal(ann.here.cookies.has('catalog-session'), false);
    }
  });

  it('a subject that is empty, too long for OpenID Connect or not plain text is refused and not shown', async () => {
    for (const subject of [
      NO_SUBJECT,
      'x'.repeat(256),
      'a\u0000b',
      'a\nb',
      'a\u001b[2Jb',
      'a\u202Eb',
      ' ann',
      'ann\u00a0',
    ]) {
      const { status, text } = await person(subject).signIn();
      assert.equal(status, 403);
      assert.ok(text.includes('This identity is not supported') && !text.includes(subject), text);
    }
  });

  it('a person who signed in at the provider more than 15 minutes ago, or who declines there, is refused', async () => {
    provider.signedInAgo = 950;
    assert.equal((await person().signIn()).status, 303, 'clocks may differ by a minute');
    provider.signedInAgo = 970;
    const { status, text } = await person().signIn();
    assert.equal(status, 403);
    assert.ok(text.includes('Sign out at your provider, then try again.'));
    const ann = person();
    const state = (await ann.begin()).searchParams.get('state') ?? '';
    const declined = await ann.here.get(`${CALLBACK}?error=access_denied&state=${state}`);
    assert.equal(declined.status, 403);
    assert.ok(declined.text.includes('Your provider refused the sign-in'));
  });

  /** @returns the path of a callback with a code that the provider does not know, for a browser that began a sign-in */
  async function wrongAnswer(visitor: Visitor): Promise<string> {
    const { headers } = await visitor.get('/sign-in/oidc');
    const state = new URL(headers.location ?? '').searchParams.get('state') ?? '';
    return `${CALLBACK}?${new URLSearchParams({ code: 'wrong', state, iss: provider.issuer })}`;
  }

  it('at most ten sign-ins of one address wait for the provider, and others sign in meanwhile', async () => {
    const visitors = Array.from({ length: 30 }, () => new Visitor(service.url, { 'x-forwarded-for': '192.0.2.3' }));
    const paths = await Promise.all(visitors.map(wrongAnswer));
    const requests = provider.tokenRequests;
    provider.state = 'silent';
    const statuses: number[] = [];
    const sent = visitors.map(async (visitor, i) => {
      statuses.push((await visitor.get(paths[i] ?? '')).status);
    });
    await eventually('the sign-ins above the bound are refused', () => statuses.length === 20);
    await eventually('the others wait', () => provider.tokenRequests === requests + 10);
    provider.state = 'up';
    assert.equal((await person().signIn()).status, 303);
    provider.cutConnections();
    await Promise.all(sent);
    assert.deepEqual(statuses, [...Array<number>(20).fill(429), ...Array<number>(10).fill(503)]);
  });

  it('the log has the error code of a provider, and no code, state, secret or other text of a sign-in', async () => {
    const ann = person();
    const answer = await ann.answer(await ann.begin());
    const secret = ann.here.cookies.get('catalog-oidc') ?? assert.fail();
    await ann.here.get(answer);
    for (const tokenError of [
      { error: 'server_error', error_description: 'a private text', error_uri: 'https://private.example' },
      { error: 'a private text' },
    ]) {
      provider.tokenError = tokenError;
      assert.equal((await person().signIn()).status, 503);
    }
    const log = service.logged.join('\n');
    assert.ok(log.includes('(server_error)'));
    const { searchParams } = new URL(answer, service.url);
    for (const text of [
      searchParams.get('code'),
      searchParams.get('state'),
      secret,
      provider.clientSecret,
      'private',
    ]) {
      assert.ok(text !== null && text !== '' && !log.includes(text));
    }
  });
});

describe('an identity provider that fails', () => {
  let service: TestService;
  let provider: IdentityProvider;

  // A service keeps the metadata of the provider once it has found it.
  beforeEach(async () => {
    ({ service, provider } = await startWithProvider('off'));
  });

  afterEach(async () => {
    await service.stop();
    await provider.stop();
  });

  it('a provider that fails in any way fails sign-ins only, and is used again once it responds', async () => {
    const visitor = new Visitor(service.url);
    for (const state of ['failing', 'nonsense', 'silent'] as const) {
      provider.state = state;
      const sent = Promise.all(
        Array.from({ length: 30 }, (_, i) => new Visitor(service.url, from(i)).get('/sign-in/oidc')),
      );
      // More wait for the provider than pages are served at a time, but neither pages nor the API wait with them.
      for (const path of ['/', '/sign-in', '/settings']) assert.ok((await visitor.get(path)).status < 400, path);
      for (const path of ['/api/v1/me', '/readyz']) assert.equal((await service.get(path)).status, 200, path);
      for (const { status, text } of await sent) {
        assert.equal(status, 503, state);
        assert.ok(/Your provider is not responding|Service unavailable/.test(text), text);
      }
    }
    provider.state = 'up';
    assert.equal((await visitor.get('/sign-in/oidc')).status, 303);
    await provider.stop();
    assert.equal((await new Person(service, provider, 'ann').begin()).origin, provider.issuer, 'its metadata are kept');
  });

  it('a secret that the provider does not accept is no outage, for the person and in the log', async () => {
    provider.knowsOtherSecret = true;
    const { status, text, headers } = await new Person(service, provider, 'ann').signIn();
    assert.deepEqual([status, headers['retry-after']], [500, undefined]);
    assert.ok(text.includes('Sign-in is not set up correctly') && !text.includes('not responding'), text);
    const lines = service.logged.filter((line) => line.includes('OIDC_CLIENT_SECRET'));
    assert.match(lines.join(), /^.*the provider does not accept OIDC_CLIENT_ID and OIDC_CLIENT_SECRET.*$/);
  });

  it('nothing is requested from the provider before a sign-in, and its metadata outlives its failure', async () => {
    const { here } = new Person(service, provider, 'ann');
    for (const path of ['/', '/sign-in', '/settings', '/readyz']) await here.get(path);
    assert.equal(provider.requests, 0);
    assert.equal((await here.get('/sign-in/oidc')).status, 303);
    provider.state = 'failing';
    assert.equal((await here.get('/sign-in/oidc')).status, 303);
    assert.equal(provider.requests, 1);
  });

  it('a provider that does not support auth_time signs people in, and the log warns of it once', async () => {
    provider.isTerse = true;
    for (const name of ['ann', 'bob']) {
      const someone = new Person(service, provider, name);
      const url = await someone.begin();
      url.searchParams.delete('max_age');
      assert.ok((await someone.here.get(await someone.answer(url))).text.includes('Your identity is not linked yet'));
    }
    assert.equal(service.logged.filter((line) => line.includes('does not support auth_time')).length, 1);
  });
});

describe('signing up by OpenID Connect', () => {
  let service: TestService;
  let provider: IdentityProvider;
  /** The number of developers before a test. */
  let known: number;

  before(async () => {
    // It takes the secret in the body alone, as some do.
    ({ service, provider } = await startWithProvider('on', 'client_secret_post'));
    await setPlan(service.db, 'free', { name: 'Starter' });
  });

  after(async () => {
    await service.stop();
    await provider.stop();
  });

  const countDevelopers = async (): Promise<number> => (await listDevelopers(service.db)).length;

  beforeEach(async () => (known = await countDevelopers()));

  it('a new identity becomes a developer on the free plan once its project has a name', async () => {
    const ann = new Person(service, provider, 'ann');
    const { text: landing } = await ann.here.get('/', { accept: 'text/html' });
    assert.ok(landing.includes('href="/settings/keys/new">Get a key</a>'));
    assert.ok(landing.includes(' It starts on the Starter plan.'));
    const reply = await ann.signIn();
    assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-up']);
    assert.equal((await ann.here.get('/settings')).status, 303);
    assert.equal(await countDevelopers(), known);
    assert.match((await ann.here.get('/sign-up')).text, /which starts on the Starter plan\./);
    const done = await ann.here.post('/sign-up', { project_name: '  Ann’s <b>club</b> ' });
    assert.deepEqual([done.status, done.headers.location], [303, '/settings']);
    assert.ok((await ann.here.get('/settings')).text.includes('Ann’s &lt;b'));
    const developer = (await listDevelopers(service.db)).at(-1);
    assert.deepEqual([developer?.projectName, developer?.planId], ['Ann’s <b>club</b>', 'free']);
    assert.deepEqual(
      (await listEvents(service.db, { developerId: developer?.id, limit: 9 })).map(({ kind, actor }) => [kind, actor]),
      ['signed_in', 'identity_linked', 'registered'].map((kind) => [kind, 'developer']),
    );
    assert.equal((await new Person(service, provider, 'ann').signIn()).headers.location, '/settings');
    assert.equal(await countDevelopers(), known + 1);
  });

  it('one identity becomes one developer, however often the form is sent and in however many tabs', async () => {
    const tabs = Array.from({ length: 4 }, () => new Person(service, provider, 'carol'));
    for (const tab of tabs) await tab.signIn();
    const replies = await Promise.all(
      [...tabs, ...tabs].map(({ here }) => here.post('/sign-up', { project_name: 'Carol' })),
    );
    for (const { status } of replies) assert.ok(status === 303 || status === 409, String(status));
    assert.equal(await countDevelopers(), known + 1);
  });

  it('nobody signs up whom the provider has not confirmed', async () => {
    const visitor = new Visitor(service.url);
    assert.equal((await visitor.get('/sign-up')).headers.location, '/sign-in');
    visitor.cookies.set('catalog-sign-up', 'f'.repeat(64));
    assert.equal((await visitor.post('/sign-up', { project_name: 'Nobody' })).headers.location, '/sign-in');
    const dan = new Person(service, provider, 'dan');
    await dan.signIn();
    const forged = await dan.here.post('/sign-up', { project_name: 'X' }, { 'sec-fetch-site': 'cross-site' });
    assert.equal(forged.status, 403);
    assert.equal(await countDevelopers(), known);
  });
});
