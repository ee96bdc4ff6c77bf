import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { QUOTA_EXCEEDED } from '../../../src/http/response/rate-limit-fields.js';
import { listEvents } from '../../../src/events/events.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { newAddress } from '../../support/http/new-address.js';
import { Visitor } from '../../support/http/visitor.js';
import { ROOT } from '../../support/guides.js';
import { assertProblem } from '../../support/problem.js';
import { converse } from '../../support/http/conversation.js';
import { send, type Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const PATH = '/revoke-leaked-key';

interface Described {
  readonly paths: Record<string, { post: { responses: Record<string, { $ref?: string }>; requestBody: unknown } }>;
  readonly components: { responses: Record<string, unknown> };
}

const DOCUMENT = JSON.parse(readFileSync(new URL('generated/openapi-leaked-keys.json', ROOT), 'utf8')) as Described;

/** Holds the content of a message against the OpenAPI document. @param message - a response, or a request's body */
function assertDescribed(message: unknown, mediaType: string, content: unknown): void {
  const { schema } = (message as { content: Record<string, { schema: object }> }).content[mediaType] ?? assert.fail();
  const ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv);
  const validate = ajv.compile({ ...schema, components: DOCUMENT.components });
  assert.ok(validate(content), ajv.errorsText(validate.errors));
}

describe('revoking a key that was found', () => {
  let service: TestService;
  /** A server of the same service without pages. */
  let bare: TestService;

  before(async () => {
    const options = { trustedProxies: 1, failurePolicy: { limit: 3, windowSeconds: 60 } };
    service = await startService(options);
    bare = await startService({ ...options, databaseUrl: service.databaseUrl, settings: { SITE: 'off' } });
  });

  after(async () => {
    await bare.stop();
    await service.stop();
  });

  /** Sends what is no form, to a server without pages. The answer is as the OpenAPI document describes it. */
  async function post(headers: Record<string, string>, body: string): Promise<Reply> {
    const reply = await send(bare.url, PATH, { method: 'POST', body, headers });
    const { responses } = DOCUMENT.paths[PATH]?.post ?? assert.fail();
    const response = responses[reply.status] ?? assert.fail(`${reply.status} is not described`);
    const resolved = DOCUMENT.components.responses[response.$ref?.split('/').at(-1) ?? ''] ?? response;
    assertDescribed(resolved, String(reply.headers['content-type']), reply.json);
    return reply;
  }

  /** Sends JSON, as scanners do. */
  function report(content: string, address = newAddress()): Promise<Reply> {
    return post({ 'content-type': 'application/json', 'x-forwarded-for': address }, content);
  }

  function reportKey(key: string, address?: string): Promise<Reply> {
    return report(JSON.stringify({ key }), address);
  }

  async function isActive(key: string): Promise<boolean> {
    const headers = { 'x-api-key': key, 'x-forwarded-for': newAddress() };
    return (await service.get('/api/v1/me', { headers })).status === 200;
  }

  it('a program revokes a key with the whole key alone, from the next request', async () => {
    const { key, developerId, prefix } = await service.newKey();
    assert.equal(await isActive(key), true);
    const { status, headers, json } = await reportKey(key);
    assert.deepEqual([status, json], [200, { revoked: true }]);
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(await isActive(key), false);
    // Again, with the same answer.
    assert.deepEqual((await reportKey(` ${key}\n`)).json, { revoked: true });
    const [event, before] = await listEvents(service.db, { developerId, limit: 2 });
    assert.deepEqual([event?.kind, event?.actor, event?.keyPrefix], ['revoked', 'finder', prefix]);
    assert.equal(before?.kind, 'created');
  });

  it('each match with the form of a key is answered with its hash and whether it is a key of the service', async () => {
    const [first, second] = [await service.newKey(), await service.newKey()];
    const texts = [generateApiKey().key, first.key, 'svc_', second.key, first.key];
    const matches = texts.map((token, i) => ({ token, type: `type_${i}`, url: '', source: 'commit' }));
    assertDescribed(DOCUMENT.paths[PATH]?.post.requestBody, 'application/json', matches);
    const { status, json, text } = await report(JSON.stringify(matches));
    assert.equal(status, 200);
    assert.deepEqual(
      json,
      texts.flatMap((token, i) => {
        const label = [first.key, second.key].includes(token) ? 'true_positive' : 'false_positive';
        return token === 'svc_' ? [] : [{ token_hash: hash('sha256', token), token_type: `type_${i}`, label }];
      }),
    );
    assert.ok(!text.includes(first.key.slice(13, 30)));
    for (const { key, developerId } of [first, second]) {
      assert.equal(await isActive(key), false);
      const revoked = (await listEvents(service.db, { developerId, limit: 9 })).filter(
        ({ kind }) => kind === 'revoked',
      );
      assert.deepEqual(
        revoked.map(({ actor }) => actor),
        ['finder'],
      );
    }
    assert.deepEqual((await report('[]')).json, []);
  });

  it('a report of 300 texts takes one query and none for texts that are no keys, counts each, and is the largest', async () => {
    const product = await startService({ databaseUrl: service.databaseUrl, trustedProxies: 1 });
    try {
      for (const [token, queries, answered] of [
        [() => generateApiKey().key, 1, 300],
        [() => 'no key', 0, 0],
      ] as const) {
        const matches = Array.from({ length: 301 }, () => ({ token: token() }));
        const headers = { 'content-type': 'application/json', 'x-forwarded-for': newAddress() };
        const post = (content: unknown) =>
          send(product.url, PATH, { method: 'POST', body: JSON.stringify(content), headers });
        assertProblem(await post(matches), 'content_too_large', { detail: /more than 300 matches\. Send several/ });
        const before = product.queries.length;
        const { status, json } = await post(matches.slice(1));
        assert.deepEqual([status, (json as unknown[]).length], [200, answered]);
        assert.equal(product.queries.length - before, queries);
        for (const more of [matches.slice(300), { key: token() }]) {
          assertProblem(await post(more), 'rate_limit_exceeded', {
            type: QUOTA_EXCEEDED,
            members: { 'violated-policies': ['failures'] },
            headers: { 'ratelimit-policy': '"failures";q=300;w=60' },
          });
        }
      }
    } finally {
      await product.stop();
    }
  });

  it('an unknown key gets the same answer as a text that is no key, and other content is refused with 400', async () => {
    const { key, prefix } = await service.newKey();
    for (const text of [generateApiKey().key, key.slice(0, -1), prefix, '', '\u0000']) {
      const { status, json } = await reportKey(text);
      assert.deepEqual([status, json], [200, { revoked: false }]);
    }
    for (const content of ['', '{', 'null', '[1]', '[{"key":"a"}]', '{}', '{"key":1}', '{"keys":["a"]}', '"svc_"']) {
      assertProblem(await report(content), 'invalid_parameter', { headers: { 'cache-control': 'no-store' } });
    }
    assert.equal(await isActive(key), true);
  });

  it('an address that reports unknown keys is limited, and its reports of existing keys still revoke them', async () => {
    const address = newAddress();
    for (let i = 0; i < 3; i += 1) assert.equal((await reportKey(generateApiKey().key, address)).status, 200);
    const [first, second] = [await service.newKey(), await service.newKey()];
    const matches = JSON.stringify([{ token: generateApiKey().key }, { token: first.key }]);
    for (const refused of [await reportKey(generateApiKey().key, address), await report(matches, address)]) {
      assertProblem(refused, 'rate_limit_exceeded', {
        type: QUOTA_EXCEEDED,
        members: { 'violated-policies': ['failures'] },
      });
      assert.ok(Number(refused.headers['retry-after']) > 0);
    }
    assert.deepEqual((await reportKey(second.key, address)).json, { revoked: true });
    assert.deepEqual([await isActive(first.key), await isActive(second.key)], [false, false]);
    assert.equal((await reportKey(generateApiKey().key)).status, 200);
    const visitor = new Visitor(service.url, { 'x-forwarded-for': address });
    const page = (): Promise<Reply> => visitor.post(PATH, { key: generateApiKey().key });
    for (let i = 0; i < 3; i += 1) assert.equal((await page()).status, 200);
    assert.equal((await page()).status, 429);
  });

  it('a mistake of a program is answered with a problem that has a code, with pages and without', async () => {
    const json = { 'content-type': 'application/json' };
    // Clients without a content type of their own often send that of a form.
    for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
      const headers = { 'content-type': type };
      for (const reply of [
        await post(headers, '{}'),
        await send(service.url, PATH, { method: 'POST', body: '{}', headers }),
      ]) {
        assertProblem(reply, 'unsupported_media_type', { headers: { connection: 'close' } });
      }
    }
    const long = JSON.stringify({ key: 'x'.repeat(66_000) });
    assertProblem(await post(json, long), 'content_too_large', { headers: { connection: 'close' } });
    for (const coding of ['br', 'gzip', 'zstd']) {
      const coded = { ...json, 'content-encoding': coding };
      assertProblem(await post(coded, '{}'), 'unsupported_media_type', { headers: { connection: 'close' } });
    }
    const head = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const { received } = await converse(bare.url, `${head}zz\r\n`);
    assert.match(received, /^HTTP\/1\.1 400 [\s\S]*"code":"malformed_request"/);
    const put = { method: 'PUT' };
    assertProblem(await send(service.url, PATH, put), 'method_not_allowed', {
      headers: { allow: 'GET, HEAD, POST' },
      detail: 'This path supports only GET, HEAD and POST.',
    });
    assertProblem(await send(bare.url, PATH, put), 'method_not_allowed', { headers: { allow: 'POST' } });
    assertProblem(await send(bare.url, PATH), 'method_not_allowed', { headers: { allow: 'POST' } });
  });

  it('JSON is accepted from any origin, since only the key counts, and a form from its own page alone', async () => {
    const elsewhere = { origin: 'https://elsewhere.example', 'sec-fetch-site': 'cross-site' };
    const { key } = await service.newKey();
    const form = await new Visitor(service.url).post(PATH, { key }, elsewhere);
    assert.deepEqual([form.status, form.headers['content-type']], [403, 'text/html; charset=utf-8']);
    assert.equal(await isActive(key), true);
    const headers = { 'content-type': 'application/json', ...elsewhere };
    assert.deepEqual((await post(headers, JSON.stringify({ key }))).json, { revoked: true });
  });

  it('the form revokes a key and does not repeat it', async () => {
    const { key } = await service.newKey();
    const visitor = new Visitor(service.url, { 'x-forwarded-for': newAddress() });
    const form = await visitor.get(PATH);
    assert.equal(form.status, 200);
    for (const [text, status, answer] of [
      [key.slice(0, 40), 422, 'This is not a key'],
      [generateApiKey().key, 200, 'This is not a key of this service'],
      [key, 200, 'The key has been revoked'],
    ] as const) {
      const reply = await visitor.post(PATH, { key: text });
      assert.equal(reply.status, status);
      assert.ok(reply.text.includes(answer), answer);
      assert.ok(!reply.text.includes(text.slice(13, 30)));
    }
    assert.equal(await isActive(key), false);
  });

  it('the log has nothing of a key, however it was sent', async () => {
    const { key } = await service.newKey();
    await reportKey(key);
    for (const content of [`{"key":"${key}`, `key=${key}`, `[{"token":"${key}"}]`]) await report(content);
    await new Visitor(service.url).post(PATH, { key });
    await new Visitor(service.url).get(`${PATH}?key=${key}`);
    const logged = [...service.logged, ...bare.logged];
    assert.ok(logged.length > 5 && !logged.some((line) => line.includes(key.slice(13, 25))));
  });
});
