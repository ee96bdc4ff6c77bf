import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { LEAKED_KEY_PATH } from '../../../src/http/leaked-keys/leaked-keys.js';
import { newDeveloper, signIn, Visitor } from '../../support/http/visitor.js';
import { send } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { FORMS, PAGES } from '../pages.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('requests that another site makes a browser send', () => {
  let service: TestService;
  let visitor: Visitor;

  before(async () => {
    service = await startService();
    visitor = await signIn(service, await newDeveloper(service));
  });

  after(() => service.stop());

  const isSignedIn = async (): Promise<boolean> => (await visitor.get('/settings')).status === 200;

  for (const path of FORMS) {
    it(`are refused by ${path}, and change nothing`, async () => {
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        // Another host of the same domain, or another port of this machine.
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site', origin: service.url },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: service.url.replace('http:', 'https:') },
        { origin: `${service.url}.evil.example` },
        // By the name that the attacker's site has itself given the service.
        { origin: 'http://evil.example', host: 'evil.example' },
        // A form of an old browser, or no browser: nobody knows where it comes from.
        {},
      ]) {
        const reply = await visitor.post(path, { session: '1' }, headers);
        // A form without any origin is a program's, which has no cookie: it gets the advice to send JSON.
        const isProgram = path === LEAKED_KEY_PATH && Object.keys(headers).length === 0;
        assert.equal(reply.status, isProgram ? 415 : 403, JSON.stringify(headers));
        assert.ok(isProgram || reply.text.includes('was not sent from a page of this service'), reply.text);
        assert.ok(await isSignedIn());
      }
    });
  }

  it('are refused before a link is spent', async () => {
    const { status } = await visitor.post(
      '/sign-in/link',
      { token: 'f'.repeat(64) },
      { 'sec-fetch-site': 'cross-site' },
    );
    assert.equal(status, 403);
    assert.equal(service.queries.filter((sql) => sql.includes('sign_in_links where hash')).length, 1, 'the one before');
  });

  it('are told from those of its own pages, by either field', async () => {
    for (const headers of [
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'same-origin', origin: 'null' },
      { 'sec-fetch-site': 'none' },
      { origin: service.url },
    ]) {
      const reply = await visitor.post('/settings/sessions/end', { session: '0' }, headers);
      assert.equal(reply.status, 303, JSON.stringify(headers));
    }
  });

  it('cannot take another form than a form', async () => {
    for (const [type, status] of [
      ['text/plain', 415],
      ['multipart/form-data; boundary=x', 415],
      ['application/json', 415],
    ] as const) {
      const reply = await visitor.post('/sign-out', {}, { 'sec-fetch-site': 'same-origin', 'content-type': type });
      assert.equal(reply.status, status, type);
    }
    assert.ok(await isSignedIn());
  });

  it('cannot send much: 16 KiB are the most', async () => {
    const { status, headers } = await visitor.post('/sign-out', { much: 'x'.repeat(17_000) });
    assert.deepEqual([status, headers.connection], [413, 'close']);
    const chunked = await send(service.url, '/sign-out', {
      method: 'POST',
      headers: { ...FORM, 'sec-fetch-site': 'same-origin', 'transfer-encoding': 'chunked' },
      body: 'x'.repeat(40_000),
    });
    assert.equal(chunked.status, 413);
    assert.ok(await isSignedIn());
  });

  it('cannot hold a connection by content that does not come, and the answer says so', async () => {
    const { port } = new URL(service.url);
    const heads = [
      `Sec-Fetch-Site: same-origin\r\nContent-Type: ${FORM['content-type']}\r\nContent-Length: 16000\r\n\r\ntok`,
      `Sec-Fetch-Site: same-origin\r\nContent-Type: ${FORM['content-type']}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntok\r\n`,
    ];
    const answers = heads.map((head) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(`POST /sign-in/link HTTP/1.1\r\nHost: x\r\n${head}`);
      return text(socket);
    });
    for (const answer of await Promise.all(answers)) {
      assert.match(answer, /^HTTP\/1\.1 408 [^]*\r\nConnection: close\r\n/);
    }
  });

  it('are refused before their content is asked for with 100 Continue, as that of the own pages is', async () => {
    const { port } = new URL(service.url);
    const offer = (length: number, ...fields: string[]): Socket => {
      const socket = connect(Number(port), '127.0.0.1');
      const head = ['POST /sign-out HTTP/1.1', 'Host: x', `Content-Type: ${FORM['content-type']}`, 'Connection: close'];
      const lines = [...head, `Content-Length: ${length}`, 'Expect: 100-continue', ...fields];
      socket.write(`${lines.join('\r\n')}\r\n\r\n`);
      return socket;
    };
    const own = offer(7, 'Sec-Fetch-Site: same-origin');
    const [first] = (await once(own, 'data')) as [Buffer];
    assert.equal(String(first), 'HTTP/1.1 100 Continue\r\n\r\n');
    own.write('a=b&c=d');
    assert.match(await text(own), /^HTTP\/1\.1 303 /);
    assert.match(await text(offer(7, 'Sec-Fetch-Site: cross-site')), /^HTTP\/1\.1 403 /);
    assert.match(await text(offer(100_000, 'Sec-Fetch-Site: same-origin')), /^HTTP\/1\.1 413 /);
  });

  it('cannot send content to a page that refuses them', async () => {
    const { port } = new URL(service.url);
    for (const [path, status] of [
      ['/docs', 405],
      ['/settings/sessions/end', 403],
    ] as const) {
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${FORM['content-type']}\r\nContent-Length: 1000000000\r\n\r\nx`,
      );
      const answer = await text(socket);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`), path);
    }
  });

  it('lead back to the settings after a new sign-in, not to an address that only takes forms', async () => {
    const stranger = new Visitor(service.url);
    const { status } = await stranger.post('/settings/sessions/end', { session: '1' });
    assert.equal(status, 303);
    assert.deepEqual([...stranger.cookies.values()].map(decodeURIComponent), ['/settings']);
  });

  it('do not sign anybody out, or in, by GET', async () => {
    for (const path of FORMS) {
      const { status, headers } = await visitor.get(path);
      if (status === 405) assert.equal(headers.allow, 'POST', path);
    }
    assert.ok(await isSignedIn());
  });
});

describe('a host that the client invents', () => {
  it('appears in no address that the service writes', async () => {
    const service = await startService();
    try {
      const visitor = new Visitor(service.url);
      for (const path of [...PAGES, '/settings', '/no-such-page']) {
        const { text, headers } = await visitor.get(path, { host: 'evil.example', 'x-forwarded-host': 'evil.example' });
        assert.ok(!`${text}${JSON.stringify(headers)}`.includes('evil.example'), path);
      }
    } finally {
      await service.stop();
    }
  });
});
