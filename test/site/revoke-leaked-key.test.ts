import assert from 'node:assert/strict';
import { crc32 } from 'node:zlib';
import { listEvents } from '../../src/events/events.js';
import { generateApiKey, hashApiKey } from '../../src/keys/api-key.js';
import { Visitor } from '../support/http/visitor.js';
import { readGuide } from '../support/guides.js';
import { assertHeaders, assertProblem } from '../support/problem.js';
import { send, type Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

const PATH = '/revoke-leaked-key';

describe('revoking a key that was found', () => {
  let service: TestService;
  let addresses = 0;

  before(async () => {
    service = await startService({ trustedProxies: 1, failurePolicy: { limit: 3, windowSeconds: 60 } });
  });

  after(() => service.stop());

  /** Sends JSON, as scanners do. */
  function report(content: string, address = newAddress()): Promise<Reply> {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': address };
    return send(service.url, PATH, { method: 'POST', body: content, headers });
  }

  function reportKey(key: string, address?: string): Promise<Reply> {
    return report(JSON.stringify({ key }), address);
  }

  function newAddress(): string {
    addresses += 1;
    return `192.0.2.${addresses}`;
  }

  async function works(key: string): Promise<boolean> {
    const headers = { 'x-api-key': key, 'x-forwarded-for': newAddress() };
    return (await service.get('/api/v1/me', { headers })).status === 200;
  }

  it('needs the whole key and nothing else, and holds from the next request on', async () => {
    const { key, developerId, prefix } = await service.newKey();
    assert.equal(await works(key), true);
    const { status, headers, json } = await reportKey(key);
    assert.deepEqual([status, json], [200, { revoked: true }]);
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(await works(key), false);
    // A second report gets the same answer.
    assert.deepEqual((await reportKey(` ${key}\n`)).json, { revoked: true });
    const [event, before] = await listEvents(service.db, { developerId, limit: 2 });
    assert.deepEqual([event?.kind, event?.actor, event?.keyPrefix], ['revoked', 'finder', prefix]);
    assert.equal(before?.kind, 'created');
  });

  it('answers alike for a key that nobody has and for what is no key, and changes nothing', async () => {
    const { key, prefix } = await service.newKey();
    for (const text of [generateApiKey().key, key.slice(0, -1), prefix, '', '\u0000']) {
      const { status, json } = await reportKey(text);
      assert.deepEqual([status, json], [200, { revoked: false }]);
    }
    assert.equal(await works(key), true);
  });

  for (const content of ['', '{', 'null', '[]', '{}', '{"key":1}', '{"keys":["a"]}', '"svc_"']) {
    it(`asks for a JSON object with a key where it gets ${content === '' ? 'nothing' : content}`, async () => {
      const reply = await report(content);
      assertProblem(reply, 'invalid_parameter');
      assert.equal(reply.headers['cache-control'], 'no-store');
    });
  }

  it('limits an address that sends unknown keys, and still revokes one that exists', async () => {
    const { key } = await service.newKey();
    const address = newAddress();
    for (let i = 0; i < 3; i += 1) assert.equal((await reportKey(generateApiKey().key, address)).status, 200);
    const refused = await reportKey(generateApiKey().key, address);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers['content-type'], 'application/problem+json');
    assert.ok(Number(refused.headers['retry-after']) > 0);
    const visitor = new Visitor(service.url, { 'x-forwarded-for': address });
    const page = await visitor.post(PATH, { key: generateApiKey().key });
    assert.equal(page.status, 429);
    assert.equal((await reportKey(generateApiKey().key)).status, 200);
    assert.deepEqual((await reportKey(key, address)).json, { revoked: true });
    assert.equal(await works(key), false);
  });

  it('answers a program that makes a mistake with a problem document', async () => {
    const json = { 'content-type': 'application/json' };
    const post = (headers: Record<string, string>, body = '{}'): Promise<Reply> =>
      send(service.url, PATH, { method: 'POST', body, headers });
    const forged = await post({ ...json, 'sec-fetch-site': 'cross-site' });
    // A program that forgets what it sends says that it is a form.
    const form = await post({ 'content-type': 'application/x-www-form-urlencoded' });
    const text = await post({ 'content-type': 'text/plain' });
    for (const [reply, status, title] of [
      [forged, 403, 'Refused'],
      [form, 403, 'Refused'],
      [text, 415, 'Not a form'],
    ] as const) {
      const { detail, request_id: requestId, ...members } = reply.json as Record<string, unknown>;
      assert.deepEqual(members, { type: 'about:blank', title, status });
      assert.deepEqual([reply.status, requestId], [status, reply.headers['x-request-id']]);
      assert.ok(typeof detail === 'string' && detail.length > 20);
      assertHeaders(reply, {
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        connection: 'close',
      });
    }
    const long = JSON.stringify({ key: 'x'.repeat(17_000) });
    assertProblem(await post(json, long), 'content_too_large', { headers: { connection: 'close' } });
    assertProblem(await send(service.url, PATH, { method: 'PUT' }), 'method_not_allowed', {
      headers: { allow: 'GET, HEAD, POST' },
    });
    const browser = { accept: 'text/html,*/*;q=0.8', 'content-type': 'application/x-www-form-urlencoded' };
    const page = await post(browser);
    assert.deepEqual([page.status, page.headers['content-type']], [403, 'text/html; charset=utf-8']);
  });

  it('takes a form, and does not repeat the key', async () => {
    const { key } = await service.newKey();
    const visitor = new Visitor(service.url, { 'x-forwarded-for': newAddress() });
    const form = await visitor.get(PATH);
    assert.equal(form.status, 200);
    for (const [text, status, answer] of [
      [key.slice(0, 40), 422, 'This is not a whole key'],
      [generateApiKey().key, 200, 'This is no key of this service'],
      [key, 200, 'This key does not work any more'],
    ] as const) {
      const reply = await visitor.post(PATH, { key: text });
      assert.equal(reply.status, status);
      assert.ok(reply.text.includes(answer), answer);
      assert.ok(!reply.text.includes(text.slice(13, 30)));
    }
    assert.equal(await works(key), false);
  });

  it('logs nothing of a key, in whatever it came', async () => {
    const { key } = await service.newKey();
    await reportKey(key);
    await report(`{"key":"${key}`);
    await report(`key=${key}`);
    await new Visitor(service.url).post(PATH, { key });
    await new Visitor(service.url).get(`${PATH}?key=${key}`);
    assert.ok(service.logged.length > 4);
    const secret = key.slice(13, 25);
    assert.deepEqual(
      service.logged.filter((line) => line.includes(secret)),
      [],
    );
  });

  describe('by the guide for scanners', () => {
    let guide: string;

    before(async () => {
      guide = await readGuide('leaked-keys');
    });

    /** The first block of code of a language. */
    function block(language: string): string {
      return new RegExp(`\`\`\`${language}\n([\\s\\S]+?)\n\`\`\``).exec(guide)?.[1] ?? assert.fail(language);
    }

    it('a pattern finds each key, and no text beside it', () => {
      const pattern = new RegExp(block('regex'), 'g');
      const keys = Array.from({ length: 100 }, () => generateApiKey().key);
      const text = keys.map((key, i) => `KEY${i}="${key}"; x_${key} ${key}x ${key.slice(0, -1)}`).join('\n');
      assert.deepEqual(text.match(pattern), keys);
    });

    it('the checksum of the worked example is right, and a key with it has the form of one', () => {
      const [, body = '', sum = '', digits = '', key = ''] =
        /`(svc_\w{8}_\w{32})`[\s\S]+?`(\d+)`[\s\S]+?`(\w{6})`[\s\S]+?`(svc_\w+)`/.exec(
          guide.split('## Checksum')[1] ?? '',
        ) ?? assert.fail('no worked example');
      assert.equal(crc32(body), Number(sum));
      assert.equal(key, body + digits);
      assert.notEqual(hashApiKey(key), undefined);
    });

    it('the program revokes a key', async () => {
      const { key } = await service.newKey();
      const [, url, name, value] =
        /curl -X POST (\S+)[\s\S]+?-H '([^:]+): ([^']+)'/.exec(block('sh')) ?? assert.fail('no call');
      assert.equal(new URL(url ?? '').pathname, PATH);
      const headers = { [String(name)]: String(value) };
      const body = JSON.stringify({ key });
      assert.deepEqual((await send(service.url, PATH, { method: 'POST', body, headers })).json, { revoked: true });
    });
  });
});
