import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { LEAKED_KEY_PATH } from '../../../src/http/leaked-keys/leaked-keys.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { signIn, Visitor } from '../../support/http/visitor.js';
import { send } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { FORMS, PAGES } from '../pages.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('forms of the service and of another site', () => {
  let service: TestService;
  let visitor: Visitor;

  before(async () => {
    service = await startService();
    visitor = await signIn(service, await newDeveloper(service.db));
  });

  after(() => service.stop());

  afterEach(async () => {
    assert.equal((await visitor.get('/settings')).status, 200, 'the developer is still signed in');
  });

  /** Begins a request with these header fields on a connection of its own. */
  function begin(path: string, fields: readonly string[], content = ''): Socket {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Type: ${FORM['content-type']}`, ...fields];
    socket.write(`${head.join('\r\n')}\r\n\r\n${content}`);
    return socket;
  }

  it('a form of another site is refused by every path that takes forms', async () => {
    for (const path of FORMS) {
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        // Another host of the same domain, or another port of this machine.
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site', origin: service.publicUrl },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: service.publicUrl.replace('http:', 'https:') },
        { origin: `${service.publicUrl}.evil.example` },
        // A name that the attacker's site has given the service.
        { origin: 'http://evil.example', host: 'evil.example' },
        // A form of an old browser, or of no browser.
        {},
      ]) {
        const queries = service.queries.length;
        const reply = await visitor.post(path, { session: '1', token: 'f'.repeat(64) }, headers);
        // A form without any origin comes from a program, which has no cookie. The answer advises it to send JSON.
        const isProgram = path === LEAKED_KEY_PATH && Object.keys(headers).length === 0;
        assert.equal(reply.status, isProgram ? 415 : 403, `${path} ${JSON.stringify(headers)}`);
        assert.ok(isProgram || reply.text.includes('was not sent from a page of this service'), reply.text);
        assert.equal(service.queries.length, queries);
      }
      const { status, headers } = await visitor.get(path);
      if (status === 405) assert.equal(headers.allow, 'POST', path);
    }
  });

  it('a form of the service is accepted with either field that names its origin', async () => {
    for (const headers of [
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'same-origin', origin: 'null' },
      { 'sec-fetch-site': 'none' },
      { origin: service.publicUrl },
    ]) {
      const reply = await visitor.post('/settings/sessions/end', { session: '0' }, headers);
      assert.equal(reply.status, 303, JSON.stringify(headers));
    }
  });

  it('every form is answered with the address of a page that takes its place in the history of a browser', async () => {
    for (const path of FORMS) {
      const sender = await signIn(service, await newDeveloper(service.db));
      const { status, headers, text: answer } = await sender.post(path);
      // Other pages are redirected to, and only the script requests what is no page.
      if (status === 303 || !String(headers['content-type']).startsWith('text/html')) continue;
      const [, address = assert.fail(path)] = / data-address="([^"]+)"/.exec(answer) ?? [];
      const page = await sender.get(address.replaceAll('&amp;', '&'));
      assert.ok([200, 303, 404].includes(page.status), `${path} ${address} ${page.status}`);
    }
  });

  it('content that is no form is refused with 415, and more than 16 KiB with 413', async () => {
    const own = { 'sec-fetch-site': 'same-origin' };
    for (const type of ['text/plain', 'multipart/form-data; boundary=x', 'application/json']) {
      assert.equal((await visitor.post('/sign-out', {}, { ...own, 'content-type': type })).status, 415, type);
    }
    const { status, headers } = await visitor.post('/sign-out', { much: 'x'.repeat(17_000) });
    assert.deepEqual([status, headers.connection], [413, 'close']);
    const chunked = { method: 'POST', headers: { ...FORM, ...own, 'transfer-encoding': 'chunked' } };
    assert.equal((await send(service.url, '/sign-out', { ...chunked, body: 'x'.repeat(40_000) })).status, 413);
    for (const [length, status] of [
      [16_384, 303],
      [16_385, 413],
    ] as const) {
      assert.equal((await send(service.url, '/sign-out', { ...chunked, body: 'x'.repeat(length) })).status, status);
    }
  });

  it('content that does not arrive is given up with 408, and the connection is closed', async () => {
    const own = 'Sec-Fetch-Site: same-origin';
    const answers = [
      begin('/sign-in/link', [own, 'Content-Length: 16000'], 'tok'),
      begin('/sign-in/link', [own, 'Transfer-Encoding: chunked'], '3\r\ntok\r\n'),
    ].map(text);
    for (const answer of await Promise.all(answers)) {
      assert.match(answer, /^HTTP\/1\.1 408 [^]*\r\nConnection: close\r\n/);
    }
  });

  it('a form is refused before 100 Continue lets its content come, and one of the service is not', async () => {
    const offer = (length: number, site: string): Socket =>
      begin('/sign-out', [
        `Content-Length: ${length}`,
        'Expect: 100-continue',
        'Connection: close',
        `Sec-Fetch-Site: ${site}`,
      ]);
    const own = offer(7, 'same-origin');
    const [first] = (await once(own, 'data')) as [Buffer];
    assert.equal(String(first), 'HTTP/1.1 100 Continue\r\n\r\n');
    own.write('a=b&c=d');
    assert.match(await text(own), /^HTTP\/1\.1 303 /);
    assert.match(await text(offer(7, 'cross-site')), /^HTTP\/1\.1 403 /);
    assert.match(await text(offer(100_000, 'same-origin')), /^HTTP\/1\.1 413 /);
  });

  it('a page that refuses a form closes the connection in place of reading the content', async () => {
    for (const [path, status] of [
      ['/docs', 405],
      ['/settings/sessions/end', 403],
    ] as const) {
      const answer = await text(begin(path, ['Content-Length: 1000000000'], 'x'));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`), path);
    }
  });

  it('a form that needs a new sign-in leads back to the page above a path that only takes forms', async () => {
    const stranger = new Visitor(service.url);
    assert.equal((await stranger.post('/settings/sessions/end', { session: '1' })).status, 303);
    assert.deepEqual([...stranger.cookies.values()].map(decodeURIComponent), [
      '/settings/sessions',
      'signed-out/settings/sessions',
    ]);
  });

  it('a host that the client invents appears in no address that the service writes', async () => {
    const invented = { host: 'evil.example', 'x-forwarded-host': 'evil.example' };
    for (const path of [...PAGES, '/settings', '/no-such-page']) {
      const { text: page, headers } = await visitor.get(path, invented);
      assert.ok(!`${page}${JSON.stringify(headers)}`.includes('evil.example'), path);
    }
  });
});
