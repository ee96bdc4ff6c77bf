import assert from 'node:assert/strict';
import { linkIdentity } from '../../../src/accounts/identities.js';
import { createDeveloper, listDevelopers, suspendDeveloper } from '../../../src/developers/developers.js';
import { listEvents } from '../../../src/events/events.js';
import { MICROS_PER_SECOND, systemClock } from '../../../src/platform/time/micros.js';
import { eventually } from '../../support/eventually.js';
import { newDeveloper, Visitor } from '../../support/http/visitor.js';
import type { IdentityProvider } from '../../support/programs/identity-provider.js';
import type { TestService } from '../../support/service.js';
import { CALLBACK, from, Person, startWithProvider } from './oidc-service.js';

describe('signing in by OpenID Connect', () => {
  let service: TestService;
  let provider: IdentityProvider;
  let developerId: number;

  before(async () => {
    ({ service, provider } = await startWithProvider('off'));
    developerId = await newDeveloper(service);
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

  it('begins with a link, and names the provider', async () => {
    const { text } = await person().here.get('/sign-in');
    assert.ok(text.includes('href="/sign-in/oidc"') && text.includes(`Sign in with ${new URL(provider.issuer).host}`));
  });

  it('opens the settings of the developer whom the identity is linked to', async () => {
    const ann = person();
    await ann.here.get('/settings/sessions');
    const reply = await ann.signIn();
    assert.deepEqual([reply.status, reply.headers.location], [303, '/settings/sessions']);
    const { status, text } = await ann.here.get('/settings');
    assert.equal(status, 200);
    assert.ok(text.includes('Film club'));
    assert.equal(ann.here.cookies.has('catalog-oidc'), false);
  });

  it('asks for a code with PKCE, state and nonce, none of which tells another or the cookie', async () => {
    const ann = person();
    const url = await ann.begin();
    const { searchParams } = url;
    assert.equal(searchParams.get('response_type'), 'code');
    assert.equal(searchParams.get('code_challenge_method'), 'S256');
    assert.equal(searchParams.get('redirect_uri'), service.url + CALLBACK);
    assert.equal(searchParams.get('max_age'), '900');
    const secret = ann.here.cookies.get('catalog-oidc') ?? assert.fail();
    const values = ['state', 'nonce', 'code_challenge'].map((name) => searchParams.get(name) ?? '');
    assert.equal(new Set([...values, secret]).size, 4);
    for (const value of values) assert.match(value, /^[\w-]{43}$/);
    const again = await person().begin();
    for (const name of ['state', 'nonce', 'code_challenge']) {
      assert.notEqual(again.searchParams.get(name), searchParams.get(name));
    }
  });

  it('shows an identity that nobody is linked to what to send to the operator, and the command to use', async () => {
    const { status, text, headers } = await person('eve').signIn();
    assert.equal(status, 403);
    assert.ok(text.includes(`Issuer:  ${provider.issuer}`) && text.includes('Subject: eve'));
    assert.ok(text.includes(`catalog developers link ID --issuer ${provider.issuer} --subject eve`));
    assert.ok(!(headers['set-cookie'] ?? []).some((line) => line.startsWith('catalog-session=')));
    assert.equal((await person('eve').here.get('/sign-up')).status, 404);
    await linkIdentity(service.db, developerId, { issuer: provider.issuer, subject: 'eve' });
    assert.equal((await person('eve').signIn()).status, 303);
  });

  it('shows a subject as text, and the command as the shell takes it', async () => {
    const { text } = await person(`'; rm -rf / <script>alert(1)</script>`).signIn();
    assert.ok(!text.includes('<script>alert'));
    assert.ok(text.includes(`--subject ''\\''; rm -rf / &lt;script`), text);
  });

  it('lets a suspended developer in to read', async () => {
    const id = await newDeveloper(service);
    await linkIdentity(service.db, id, { issuer: provider.issuer, subject: 'suspended' });
    await suspendDeveloper(service.db, id);
    const visitor = person('suspended');
    await visitor.signIn();
    assert.ok((await visitor.here.get('/settings')).text.includes('Your account is suspended.'));
  });

  it('refuses an answer that another browser has begun: nobody is signed in as somebody else', async () => {
    const attacker = person('mallory');
    const answer = await attacker.answer(await attacker.begin());
    const victim = person();
    const asks = provider.requests;
    assert.equal((await victim.here.get(answer)).status, 403);
    await victim.begin();
    assert.equal((await victim.here.get(answer)).status, 403, 'also while one of its own is under way');
    assert.equal(victim.here.cookies.has('catalog-session'), false);
    assert.equal(provider.requests, asks, 'the code is not even asked about');
  });

  it('refuses an answer with another state, or none, and one that comes twice', async () => {
    const ann = person();
    const answer = await ann.answer(await ann.begin());
    const secret = ann.here.cookies.get('catalog-oidc') ?? '';
    for (const path of [
      answer.replace(/state=[^&]+/, 'state=x'),
      answer.replace(/state=[^&]+/, `state=${encodeURIComponent('é'.repeat(43))}`),
      answer.replace(/&?state=[^&]+/, ''),
      CALLBACK,
    ]) {
      ann.here.cookies.set('catalog-oidc', secret);
      assert.equal((await ann.here.get(path)).status, 403, path);
    }
    ann.here.cookies.set('catalog-oidc', secret);
    assert.equal((await ann.here.get(answer)).status, 303);
    ann.here.cookies.set('catalog-oidc', secret);
    const asks = provider.requests;
    assert.equal((await ann.here.get(answer)).status, 403);
    assert.equal(provider.requests, asks, 'the provider is not asked again');
  });

  it('an answer that the provider cannot have given is refused without a request to the provider or a warning', async () => {
    const asks = provider.tokenRequests;
    const lines = service.logged.length;
    for (const change of [
      (query: URLSearchParams) => query.append('state', query.get('state') ?? ''),
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
    assert.equal(provider.tokenRequests, asks);
    assert.deepEqual(
      service.logged.slice(lines).filter((line) => !line.includes('"level":30')),
      [],
    );
  });

  it('a subject that is too long for OpenID Connect or not plain text is refused and not shown', async () => {
    for (const subject of ['x'.repeat(256), 'a\u0000b', 'a\nb', 'a\u001b[2Jb', 'a\u202Eb', ' ann', 'ann\u00a0']) {
      const { status, text } = await person(subject).signIn();
      assert.equal(status, 403);
      assert.ok(text.includes('Your identity cannot be used here') && !text.includes(subject), text);
    }
  });

  it('a sign-in that rests on one of more than 15 minutes ago at the provider is refused', async () => {
    provider.signedInAgo = 950;
    assert.equal((await person().signIn()).status, 303, 'clocks may differ by a minute');
    provider.signedInAgo = 970;
    const { status, text } = await person().signIn();
    assert.equal(status, 403);
    assert.ok(text.includes('Sign out at your provider, then try again.'));
  });

  it('a sign-in without auth_time is refused when the provider lists that claim', async () => {
    const ann = person();
    const url = await ann.begin();
    url.searchParams.delete('max_age');
    const { status, text } = await ann.here.get(await ann.answer(url));
    assert.equal(status, 403);
    assert.ok(text.includes('did not confirm that you signed in there within the last 15 minutes'));
  });

  /** @returns the path of a callback with a code that the provider does not know, for a browser that has begun a sign-in */
  async function wrongAnswer(visitor: Visitor): Promise<string> {
    const { headers } = await visitor.get('/sign-in/oidc');
    const state = new URL(headers.location ?? '').searchParams.get('state') ?? '';
    return `${CALLBACK}?${new URLSearchParams({ code: 'wrong', state, iss: provider.issuer })}`;
  }

  it('each sign-in costs the provider one request for a token, however many answers come with its cookie', async () => {
    const visitor = new Visitor(service.url, { 'x-forwarded-for': '192.0.2.1' });
    const path = await wrongAnswer(visitor);
    const cookie = `catalog-oidc=${visitor.cookies.get('catalog-oidc')}`;
    const asks = provider.tokenRequests;
    const replies = await Promise.all(Array.from({ length: 25 }, () => visitor.get(path, { cookie })));
    for (const { status } of replies) assert.ok(status === 403 || status === 429, String(status));
    assert.equal(provider.tokenRequests, asks + 1);
  });

  it('an address with ten failed sign-ins in a minute costs the provider no more requests, and others sign in', async () => {
    const visitor = new Visitor(service.url, { 'x-forwarded-for': '192.0.2.2' });
    const asks = provider.tokenRequests;
    for (let i = 0; i < 10; i += 1) assert.equal((await visitor.get(await wrongAnswer(visitor))).status, 403);
    const { status, headers } = await visitor.get(await wrongAnswer(visitor));
    assert.equal(status, 429);
    assert.match(String(headers['retry-after']), /^(?:60|5\d)$/);
    assert.equal(provider.tokenRequests, asks + 10);
    assert.equal((await person().signIn()).status, 303);
  });

  /** Comes back to a silent provider from each address at once. @returns the statuses of those refused, and of those that waited */
  async function withWaiting<T>(
    addresses: readonly string[],
    waiting: number,
    meanwhile: () => Promise<T>,
  ): Promise<number[][]> {
    const visitors = addresses.map((address) => new Visitor(service.url, { 'x-forwarded-for': address }));
    const paths = await Promise.all(visitors.map(wrongAnswer));
    const asks = provider.tokenRequests;
    provider.state = 'silent';
    const refused: number[] = [];
    const sent = visitors.map(async (visitor, i) => {
      const { status } = await visitor.get(paths[i] ?? '');
      refused.push(status);
    });
    try {
      await eventually('the others are refused', () =>
        Promise.resolve(refused.length === addresses.length - waiting && provider.tokenRequests === asks + waiting),
      );
      await meanwhile();
    } finally {
      provider.cutConnections();
      await Promise.all(sent);
    }
    return [refused.slice(0, -waiting), refused.slice(-waiting)];
  }

  it('one address has at most ten sign-ins waiting for the provider, and others sign in meanwhile', async () => {
    const addresses = Array.from({ length: 30 }, () => '192.0.2.3');
    const statuses = await withWaiting(addresses, 10, async () => {
      provider.state = 'up';
      assert.equal((await person().signIn()).status, 303);
    });
    assert.deepEqual(statuses, [Array.from({ length: 20 }, () => 429), Array.from({ length: 10 }, () => 503)]);
  });

  it('at most twenty sign-ins wait for the provider, and new ones still begin', async () => {
    const addresses = Array.from({ length: 30 }, (_, i) => `203.0.113.${i}`);
    const ann = person();
    const answer = await ann.answer(await ann.begin());
    const statuses = await withWaiting(addresses, 20, async () => {
      assert.equal((await ann.here.get(answer)).status, 503);
      await Promise.all(Array.from({ length: 30 }, () => person().begin()));
    });
    assert.deepEqual(statuses, [Array.from({ length: 10 }, () => 503), Array.from({ length: 20 }, () => 503)]);
  });

  it('refuses an identity that was confirmed for another sign-in: the nonce differs', async () => {
    const ann = person();
    const url = await ann.begin();
    url.searchParams.set('nonce', 'another');
    const { status, headers } = await ann.here.get(await ann.answer(url));
    assert.equal(status, 503);
    assert.equal(ann.here.cookies.has('catalog-session'), false);
    assert.equal(headers['retry-after'], '60');
  });

  it('refuses a code that another verifier was made for', async () => {
    const ann = person();
    const url = await ann.begin();
    url.searchParams.set('code_challenge', 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
    assert.equal((await ann.here.get(await ann.answer(url))).status, 403);
    assert.equal(ann.here.cookies.has('catalog-session'), false);
  });

  it('says so when the person declines at the provider', async () => {
    const ann = person();
    const state = (await ann.begin()).searchParams.get('state') ?? '';
    const { status, text } = await ann.here.get(`${CALLBACK}?error=access_denied&state=${state}`);
    assert.equal(status, 403);
    assert.ok(text.includes('Your provider did not sign you in'));
  });

  it('the log has the error code of a provider and nothing else of its answer', async () => {
    provider.tokenError = {
      error: 'server_error',
      error_description: 'a private text',
      error_uri: 'https://private.example',
    };
    assert.equal((await person().signIn()).status, 503);
    provider.tokenError = { error: 'a private text' };
    assert.equal((await person().signIn()).status, 503);
    const lines = service.logged.filter((line) => line.includes('ProviderUnavailable'));
    assert.ok(lines.at(-2)?.includes('(server_error)'));
    assert.ok(lines.length >= 2 && !service.logged.join().includes('private'));
  });

  it('writes no code, state or secret into the log', async () => {
    const ann = person();
    const answer = await ann.answer(await ann.begin());
    const secret = ann.here.cookies.get('catalog-oidc') ?? assert.fail();
    await ann.here.get(answer);
    const log = service.logged.join('\n');
    const { searchParams } = new URL(answer, service.url);
    for (const text of [searchParams.get('code'), searchParams.get('state'), secret, provider.clientSecret]) {
      assert.ok(text !== null && text !== '' && !log.includes(text));
    }
  });
});

describe('a provider that is not as it should be', () => {
  let service: TestService;
  let provider: IdentityProvider;

  /** How far the clock of the service is ahead, in seconds. */
  let ahead: number;

  // A service that has found its provider keeps what it was told.
  beforeEach(async () => {
    ahead = 0;
    ({ service, provider } = await startWithProvider('off', () => systemClock() + BigInt(ahead) * MICROS_PER_SECOND));
  });

  afterEach(async () => {
    await service.stop();
    await provider.stop();
  });

  it('is asked nothing at the start, nor by any page', async () => {
    const visitor = new Visitor(service.url);
    for (const path of ['/', '/sign-in', '/settings', '/readyz']) await visitor.get(path);
    assert.equal(provider.requests, 0);
  });

  for (const state of ['failing', 'nonsense', 'silent', 'gone'] as const) {
    it(`makes only signing in fail while it is ${state}`, async () => {
      if (state === 'gone') await provider.stop();
      else provider.state = state;
      const began = performance.now();
      const sent = Promise.all(
        Array.from({ length: 30 }, (_, i) => new Visitor(service.url, from(i)).get('/sign-in/oidc')),
      );
      // More wait for the provider than there are pages at a time: neither pages nor the API wait with them.
      const visitor = new Visitor(service.url);
      for (const path of ['/', '/sign-in', '/settings']) assert.ok((await visitor.get(path)).status < 400, path);
      assert.equal((await service.get('/api/v1/me')).status, 200);
      assert.equal((await service.get('/readyz')).status, 200);
      if (state === 'silent') assert.ok(performance.now() - began < 3_000, 'they were answered meanwhile');
      for (const { status, text } of await sent) {
        assert.equal(status, 503);
        assert.ok(/Your provider is not responding|Service unavailable/.test(text), text);
      }
      assert.ok(performance.now() - began < 8_000);
      if (state === 'gone') return;
      provider.state = 'up';
      assert.equal((await visitor.get('/sign-in/oidc')).status, 503);
      assert.equal(provider.requests, 1, 'what failed is not tried again at once');
      ahead = 10;
      assert.equal((await visitor.get('/sign-in/oidc')).status, 303, 'it is used again once it is well');
    });
  }

  it('its description is used beyond an hour while it fails, and asked for every 10 seconds at most', async () => {
    const { here } = new Person(service, provider, 'ann');
    assert.equal((await here.get('/sign-in/oidc')).status, 303);
    provider.state = 'failing';
    for (const [seconds, requests] of [
      [3_500, 1],
      [3_601, 2],
      [3_620, 3],
    ] as const) {
      ahead = seconds;
      for (let i = 0; i < 20; i += 1) assert.equal((await here.get('/sign-in/oidc')).status, 303);
      await eventually('it is asked', () => Promise.resolve(provider.requests >= requests));
      assert.equal(provider.requests, requests);
    }
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

  it('makes only signing in fail when it fails after it was found', async () => {
    const ann = new Person(service, provider, 'ann');
    const answer = await ann.answer(await ann.begin());
    provider.state = 'failing';
    assert.equal((await ann.here.get(answer)).status, 503);
    assert.ok(service.logged.some((line) => line.includes('ProviderUnavailable')));
    assert.equal((await service.get('/api/v1/me')).status, 200);
    assert.equal((await ann.here.get('/sign-in/oidc')).status, 303, 'what it has said of itself is still known');
  });
});

describe('signing up by OpenID Connect', () => {
  let service: TestService;
  let provider: IdentityProvider;

  before(async () => {
    ({ service, provider } = await startWithProvider('on'));
  });

  after(async () => {
    await service.stop();
    await provider.stop();
  });

  it('makes a developer on the free plan, once the project has a name', async () => {
    const ann = new Person(service, provider, 'ann');
    const before = (await listDevelopers(service.db)).length;
    const reply = await ann.signIn();
    assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-up']);
    assert.equal((await listDevelopers(service.db)).length, before, 'not before it has a name');
    assert.equal((await ann.here.get('/settings')).status, 303);
    assert.equal((await ann.here.get('/sign-up')).status, 200);
    const done = await ann.here.post('/sign-up', { project_name: '  Ann’s <b>club</b> ' });
    assert.deepEqual([done.status, done.headers.location], [303, '/settings']);
    assert.ok((await ann.here.get('/settings')).text.includes('Ann’s &lt;b'));
    const developer = (await listDevelopers(service.db)).at(-1);
    assert.deepEqual([developer?.projectName, developer?.planId], ['Ann’s <b>club</b>', 'free']);
    assert.deepEqual(
      (await listEvents(service.db, { developerId: developer?.id, limit: 9 })).map(({ kind, actor }) => [kind, actor]),
      [
        ['signed_in', 'developer'],
        ['identity_linked', 'developer'],
        ['registered', 'developer'],
      ],
    );
    const again = new Person(service, provider, 'ann');
    assert.equal((await again.signIn()).headers.location, '/settings');
    assert.equal((await listDevelopers(service.db)).length, before + 1);
  });

  it('takes names of 1 to 200 characters, and says so beside the field', async () => {
    const bob = new Person(service, provider, 'bob');
    await bob.signIn();
    for (const name of ['', '   ', 'x'.repeat(201), 'a\u0000b', 'a\u202Eb', '"><script>alert(1)</script>'.repeat(20)]) {
      const { status, text } = await bob.here.post('/sign-up', { project_name: name });
      assert.equal(status, 422, name);
      assert.match(text, /aria-invalid(?:="true")?[^>]* aria-describedby="project-name-error"/);
      assert.ok(!text.includes('<script>alert'));
    }
    assert.equal((await bob.here.post('/sign-up', { project_name: '😀'.repeat(200) })).status, 303);
  });

  it('makes one developer of one identity, however often the form is sent, in however many tabs', async () => {
    const tabs = Array.from({ length: 4 }, () => new Person(service, provider, 'carol'));
    for (const tab of tabs) await tab.signIn();
    const before = (await listDevelopers(service.db)).length;
    const replies = await Promise.all(
      tabs.flatMap(({ here }) => [
        here.post('/sign-up', { project_name: 'Carol' }),
        here.post('/sign-up', { project_name: 'Carol' }),
      ]),
    );
    for (const { status } of replies) assert.ok(status === 303 || status === 409, String(status));
    assert.equal((await listDevelopers(service.db)).length, before + 1);
  });

  it('is open to nobody whom the provider has not confirmed', async () => {
    const before = (await listDevelopers(service.db)).length;
    const visitor = new Visitor(service.url);
    assert.equal((await visitor.get('/sign-up')).headers.location, '/sign-in');
    visitor.cookies.set('catalog-sign-up', 'f'.repeat(64));
    assert.equal((await visitor.post('/sign-up', { project_name: 'Nobody' })).headers.location, '/sign-in');
    assert.equal((await listDevelopers(service.db)).length, before);
    const dan = new Person(service, provider, 'dan');
    await dan.signIn();
    const forged = await dan.here.post('/sign-up', { project_name: 'X' }, { 'sec-fetch-site': 'cross-site' });
    assert.equal(forged.status, 403);
    assert.equal((await listDevelopers(service.db)).length, before);
  });

  it('never goes by an address: an identity of another provider is another person', async () => {
    const { id } = await createDeveloper(service.db, { projectName: 'Elsewhere', attributionRequired: false });
    await linkIdentity(service.db, id, { issuer: 'https://other.example', subject: 'erin' });
    assert.equal((await new Person(service, provider, 'erin').signIn()).headers.location, '/sign-up');
  });
});
