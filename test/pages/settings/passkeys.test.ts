import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { listEvents } from '../../../src/events/events.js';
import { newAddress } from '../../support/http/new-address.js';
import { Authenticator, type Deviation, type Options } from '../../support/http/authenticator.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { signIn, Visitor } from '../../support/http/visitor.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const PAGE = '/settings/passkeys';
const NEW = `${PAGE}/new`;
const SIGN_IN = '/sign-in/passkey';

describe('passkeys', () => {
  let service: TestService;
  let developerId: number;
  let visitor: Visitor;
  let authenticator: Authenticator;

  before(async () => (service = await startService({ settings: { HOST: 'localhost' }, trustedProxies: 1 })));
  after(() => service.stop());

  beforeEach(async () => {
    developerId = await newDeveloper(service.db);
    visitor = await signIn(service, developerId, elsewhere());
    authenticator = new Authenticator(service.url);
  });

  /** A browser that is not signed in, with an address of its own. */
  function elsewhere(): Visitor {
    return new Visitor(service.url, { 'x-forwarded-for': newAddress() });
  }

  async function options(browser: Visitor, path: string): Promise<Options> {
    const { status, text } = await browser.post(`${path}/options`);
    assert.equal(status, 200, text);
    return JSON.parse(text) as Options;
  }

  /** Adds a passkey, in the way of a browser. */
  async function add(deviation: Deviation = {}, name = 'Laptop', browser = visitor): Promise<Reply> {
    const credential = authenticator.create(await options(browser, NEW), deviation);
    return browser.post(NEW, { credential, name });
  }

  /** Signs in with the passkey, in the way of a browser. */
  async function enter(deviation: Deviation = {}, browser = elsewhere()): Promise<Reply> {
    const credential = authenticator.get(await options(browser, SIGN_IN), deviation);
    return browser.post(SIGN_IN, { credential });
  }

  async function assertRefused(reply: Reply, message: string): Promise<void> {
    assert.equal(reply.status, 403, reply.text);
    assert.ok(reply.text.includes(message), reply.text);
    assert.ok(!(reply.headers['set-cookie'] ?? []).some((line) => /session=[0-9a-f]{64}/.test(line)));
  }

  const makeOld = (): Promise<number> =>
    service
      .db('sessions')
      .where({ developer_id: developerId })
      .update({ signed_in_at: service.db.raw("now() - interval '16 minutes'") });

  it('a developer adds a passkey, signs in with it elsewhere, removes it, and cannot sign in with it any more', async () => {
    const added = await add({ flags: 1 | 4 | 8 | 16 | 64 });
    assert.equal(added.headers.location, PAGE);
    const { text } = await visitor.get(PAGE);
    assert.ok(text.includes('The passkey has been added.'), text);
    assert.match(text, /Laptop<\/bdi> <span class="badge tone-info">Synced<[^]*<td[^>]*>Never</);
    const other = elsewhere();
    const { status, headers } = await enter({ flags: 1 | 4 | 8 }, other);
    assert.deepEqual([status, headers.location], [303, '/settings']);
    const list = (await other.get(PAGE)).text;
    assert.ok(!list.includes('>Synced<') && !list.includes('>Never<'), 'what the authenticator reports is shown');
    const [, passkey = ''] = /remove\?passkey=(\d+)"/.exec(list) ?? [];
    const { text: question } = await other.get(`${PAGE}/remove?passkey=${passkey}`);
    assert.match(question, /Laptop.* can no longer sign in.*This is your only passkey/s);
    assert.ok(question.includes(`name="passkey" value="${passkey}"`) && question.includes(`href="${PAGE}">Cancel`));
    const removed = await other.post(`${PAGE}/remove`, { passkey });
    assert.equal(removed.headers.location, PAGE);
    const { text: emptied } = await other.get(PAGE);
    for (const part of ['The passkey has been removed', 'You have no passkeys']) assert.ok(emptied.includes(part));
    await assertRefused(await enter(), 'This passkey was removed or belongs to another service.');
    const { text: shown } = await other.get('/settings/events');
    for (const event of ['Passkey “<bdi>Laptop</bdi>” added', 'Signed in with a passkey'])
      assert.ok(shown.includes(event));
    const events = await listEvents(service.db, { developerId, limit: 4 });
    assert.deepEqual(
      events.map(({ kind, actor, details }) => [kind, actor, details.with ?? details.name]),
      [
        ['passkey_removed', 'developer', 'Laptop'],
        ['signed_in', 'developer', 'passkey'],
        ['passkey_added', 'developer', 'Laptop'],
        ['signed_in', 'developer', 'link'],
      ],
    );
  });

  it('the options of a passkey require a resident key and a verified person, and name nothing but the project', async () => {
    await add();
    const creation = await options(visitor, NEW);
    assert.deepEqual(
      { ...creation, challenge: undefined },
      {
        challenge: undefined,
        rp: { name: 'Catalog Lookup Service', id: 'localhost' },
        user: {
          id: Buffer.from(`catalog-developer-${developerId}`).toString('base64url'),
          name: 'Test project',
          displayName: 'Test project',
        },
        pubKeyCredParams: [-8, -7, -257].map((alg) => ({ alg, type: 'public-key' })),
        timeout: 300_000,
        attestation: 'none',
        excludeCredentials: [{ id: authenticator.credentialId, transports: ['internal'], type: 'public-key' }],
        authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      },
    );
    const { challenge, ...request } = await options(elsewhere(), SIGN_IN);
    assert.match(Buffer.from(challenge, 'base64url').toString(), /^[0-9a-f]{64}$/);
    assert.deepEqual(request, { rpId: 'localhost', timeout: 300_000, userVerification: 'required' });
  });

  const UNVERIFIED = 'Your passkey could not be verified.';

  const FORGERIES: Record<string, () => Deviation> = {
    'for another origin': () => ({ origin: 'https://evil.example' }),
    'for another port of the host': () => ({ origin: 'http://localhost:1' }),
    'for another host name': () => ({ rpId: 'evil.example' }),
    'of another challenge': () => ({ challenge: Buffer.from('f'.repeat(64)).toString('base64url') }),
    'by somebody who was not verified': () => ({ flags: 1 }),
    'by nobody who was present': () => ({ flags: 4 }),
    'as the creation of a passkey': () => ({ type: 'webauthn.create' }),
    'by another key': () => ({ signedBy: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey }),
    'for another developer': () => ({ userHandle: Buffer.from('catalog-developer-1').toString('base64url') }),
    'without a developer': () => ({ userHandle: undefined }),
  };

  it('what is signed with anything forged signs nobody in', async () => {
    await add();
    for (const [what, deviation] of Object.entries(FORGERIES)) {
      const reply = await enter(deviation());
      assert.deepEqual([reply.status, reply.text.includes(UNVERIFIED)], [403, true], what);
    }
    assert.equal((await enter()).status, 303);
  });

  it('a signed challenge is worth one sign-in, even a failed one, in its own browser, within ten minutes', async () => {
    await add();
    const late = 'The sign-in took too long, or was started in another tab or browser.';
    const here = elsewhere();
    const credential = authenticator.get(await options(here, SIGN_IN));
    const [, challenge = ''] = /passkey=([0-9a-f]{64})/.exec([...here.cookies].map((it) => it.join('=')).join()) ?? [];
    await assertRefused(await elsewhere().post(SIGN_IN, { credential }), late);
    const other = elsewhere();
    const request = await options(other, SIGN_IN);
    const cookies = [...other.cookies];
    await assertRefused(await other.post(SIGN_IN, { credential }), UNVERIFIED);
    for (const [name, value] of cookies) other.cookies.set(name, value);
    await assertRefused(await other.post(SIGN_IN, { credential: authenticator.get(request) }), late);
    assert.equal((await here.post(SIGN_IN, { credential })).status, 303);
    here.cookies.set('catalog-passkey', challenge);
    await assertRefused(await here.post(SIGN_IN, { credential }), late);
    const slow = elsewhere();
    const slowly = authenticator.get(await options(slow, SIGN_IN));
    const seconds = service.db.raw("expires_at - interval '10 minutes'");
    await service.db('passkey_challenges').update({ expires_at: seconds });
    await assertRefused(await slow.post(SIGN_IN, { credential: slowly }), late);
  });

  it('an authenticator that counts is refused when it counts backwards or not at all, and one that never counts is not', async () => {
    await add();
    for (let i = 0; i < 2; i += 1) assert.equal((await enter()).status, 303, 'does not count');
    assert.equal((await enter({ count: 5 })).status, 303);
    for (const count of [5, 4, 0]) await assertRefused(await enter({ count }), UNVERIFIED);
    assert.equal((await enter({ count: 4_294_967_295 })).status, 303);
  });

  it('a passkey that is not verified or is malformed is not added', async () => {
    for (const deviation of [{ flags: 1 | 64 }, { origin: 'https://evil.example' }, { challenge: 'AAAA' }]) {
      const { status, text } = await add(deviation);
      assert.deepEqual([status, text.includes('could not be verified')], [409, true], JSON.stringify(deviation));
    }
    for (const credential of ['null', '{}', '"', '{"response":{"attestationObject":"AAAA"}}']) {
      await options(visitor, NEW);
      assert.equal((await visitor.post(NEW, { credential, name: '' })).status, 409, credential);
      await options(visitor, SIGN_IN);
      await assertRefused(await visitor.post(SIGN_IN, { credential }), UNVERIFIED);
    }
    assert.equal((await visitor.post(NEW)).status, 400);
    assert.equal((await service.db('passkeys').where({ developer_id: developerId })).length, 0);
  });

  it('one address gets a bounded number of challenges, and other addresses get theirs', async () => {
    const browser = elsewhere();
    const send = (): Promise<Reply> => browser.post(`${SIGN_IN}/options`);
    const statuses = (await Promise.all(Array.from({ length: 25 }, send))).map(({ status }) => status);
    assert.ok(statuses.includes(429) && statuses.includes(200), statuses.join());
    assert.equal((await elsewhere().post(`${SIGN_IN}/options`)).status, 200);
  });

  it('a passkey belongs to one developer, who alone can remove it', async () => {
    await add();
    const other = await signIn(service, await newDeveloper(service.db, 'Book club'), elsewhere());
    const copy = authenticator.create(await options(other, NEW));
    const { status, text } = await other.post(NEW, { credential: copy, name: 'Copy' });
    assert.deepEqual([status, text.includes('This passkey was added before.')], [409, true]);
    const [passkey = assert.fail()] = await service
      .db('passkeys')
      .where({ developer_id: developerId })
      .pluck<number[]>('id');
    assert.equal((await other.post(`${PAGE}/remove`, { passkey: String(passkey) })).headers.location, PAGE);
    const asked = await other.get(`${PAGE}/remove?passkey=${passkey}`);
    assert.ok(asked.text.includes('You have no such passkey.') && !asked.text.includes('Laptop'));
    for (const wrong of ['', 'x', '1 or 1=1', '99999999999']) {
      assert.equal((await other.post(`${PAGE}/remove`, { passkey: wrong })).status, 400, wrong);
    }
    assert.equal((await service.db('passkeys').where({ id: passkey })).length, 1);
  });

  it('adding a passkey needs a sign-in of the last 15 minutes, which a passkey gives, and removing one does not', async () => {
    await add();
    const request = await options(visitor, NEW);
    await makeOld();
    for (const reply of [
      await visitor.get(NEW),
      await visitor.post(`${NEW}/options`),
      await visitor.post(NEW, { credential: new Authenticator(service.url).create(request), name: 'B' }),
    ]) {
      assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-in']);
    }
    await visitor.get(NEW);
    assert.match((await visitor.get('/sign-in')).text, /data-passkey="get"/);
    assert.equal((await enter({}, visitor)).headers.location, `${NEW}?name=B`);
    assert.equal((await visitor.get(NEW)).status, 200);
    await makeOld();
    const [passkey = 0] = await service.db('passkeys').where({ developer_id: developerId }).pluck<number[]>('id');
    await visitor.post(`${PAGE}/remove`, { passkey: String(passkey) });
    assert.ok((await visitor.get(PAGE)).text.includes('You have no passkeys'));
    assert.doesNotMatch((await visitor.get('/sign-in')).text, /data-passkey/, 'there is none to sign in with');
  });

  it('a passkey gets a name that can be shown, whatever was typed, and its attestation is not verified', async () => {
    visitor.headers['user-agent'] = 'Mozilla/5.0 (X11; Linux x86_64; rv:1) Gecko/1 Firefox/1';
    for (const [typed, shown] of [
      ['', 'Firefox on Linux'],
      ['\u202Ename', '\uFFFDname'],
      ['x'.repeat(300), `${'x'.repeat(99)}…`],
    ] as const) {
      authenticator = new Authenticator(service.url);
      // Verified, it would be refused, since its statement is empty.
      const { headers } = await add({ format: 'packed' }, typed);
      const { text } = await visitor.get(headers.location ?? '');
      assert.ok(text.includes(`<bdi>${shown}</bdi>`), text);
    }
  });

  it('no challenge and no credential of a passkey is in the log', async () => {
    await add();
    const browser = elsewhere();
    const { challenge } = await options(browser, SIGN_IN);
    await enter({}, browser);
    await enter({ flags: 1 }, browser);
    const log = service.logged.join('\n');
    for (const secret of [challenge, Buffer.from(challenge, 'base64url').toString(), authenticator.credentialId]) {
      assert.ok(!log.includes(secret));
    }
  });

  it('a service that is reached by an IP address explains why it has no passkeys, and offers none', async () => {
    const settings = { PUBLIC_URL: 'http://127.0.0.1:8999' };
    const numeric = await startService({ databaseUrl: service.databaseUrl, settings });
    try {
      const browser = await signIn(numeric, developerId);
      for (const path of [PAGE, NEW]) {
        const { status, text: page } = await browser.get(path);
        assert.ok(status === 200 && page.includes('this service is reached at 127.0.0.1'), page);
        assert.doesNotMatch(page, /data-passkey|href="\/settings\/passkeys\/new"/);
      }
      const { text } = await browser.get(PAGE);
      assert.ok(text.includes('http://localhost:8999'));
      assert.doesNotMatch((await new Visitor(numeric.url).get('/sign-in')).text, /passkey/);
      for (const path of [NEW, `${NEW}/options`, SIGN_IN, `${SIGN_IN}/options`]) {
        const { status, text: page } = await browser.post(path, { credential: '{}' });
        assert.deepEqual([status, page.includes('Passkeys are not available')], [404, true], path);
      }
    } finally {
      await numeric.stop();
    }
  });
});
