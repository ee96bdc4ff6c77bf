import assert from 'node:assert/strict';
import { generateApiKey, type NewApiKey } from '../../src/keys/api-key.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { eventually } from '../support/eventually.js';
import { send, type RequestOptions } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';

type Send = readonly [path: string, headers?: RequestOptions['headers'], method?: string];

describe('a key', () => {
  let service: TestService;
  const warnings: string[] = [];
  const noteWarning = (warning: Error): void => void warnings.push(warning.message);

  before(async () => {
    service = await startService();
    process.on('warning', noteWarning);
  });

  after(async () => {
    process.off('warning', noteWarning);
    await service.stop();
  });

  /** Every way by which a key may arrive, meant or not. */
  function waysToSend(key: string): Send[] {
    const half = key.length / 2;
    const encoded = `%${Buffer.from(key).toString('hex').match(/../g)?.join('%') ?? ''}`;
    return [
      ['/api/v1/me', { authorization: `Bearer ${key}` }],
      ['/api/v1/me', { authorization: `Bearer ${key}x` }],
      ['/api/v1/me', { authorization: `Basic ${key}` }],
      ['/api/v1/me', { 'x-api-key': key }],
      ['/api/v1/me', { 'x-api-key': [key, key] }],
      ['/api/v1/me', { 'x-api-key': key, 'x-request-id': key }],
      ['/api/v1/me', { 'x-request-id': key }],
      ['/api/v1/me', { 'x-request-id': `x.${key}` }],
      [`/api/v1/me?api_key=${key}`],
      [`/api/v1/me?api_key=${key}`, {}, 'HEAD'],
      [`/api/v1/me?api_key=${key}`, {}, 'POST'],
      [`/api/v1/me?api_key=${encoded}`],
      [`/api/v1/me?%61pi%5Fkey=${encoded}`],
      [`/api/v1/me?api_key=${key}&api_key=${key}`],
      [`/api/v1/me?api_key=${key}%zz`],
      [`/api/v1/me?x=%zz&api_key=${key}`],
      [`/api/v1/me?API_KEY=${key}&apikey=${key}&key=${key}`],
      [`/api/v1/me?api_key[]=${key}`],
      [`/api/v1/me?${key}`],
      [`/api/v1/me?since=${key}&api_key=${key}`],
      [`/api/v1/changes?since=${key}&api_key=${key}`],
      [`/api/v1/changes?since=${encoded}&api_key=${key}`],
      [`/api/v1/changes?since=1&since=${key}&api_key=${key}`],
      [`/api/v1/titles/${key}?api_key=${key}`],
      [`/api/v1/titles/${encoded}?api_key=${key}`],
      [`/api/v1/titles/${key.slice(0, half)}%5F${key.slice(half)}%zz?api_key=${key}`],
      [`/api/v1/me%3Fapi_key=${key}`],
      [`/api/v1/me%253Fapi_key%253D${key}`],
      [`/api/v1/me;api_key=${key}`],
      [`/${key}`],
      [`/${encoded}`],
      // Encoded twice and more, of which one character is enough.
      [`/api/v1/titles/%2573${key.slice(1)}`],
      [`/api/v1/changes?since=%2573${key.slice(1)}`],
      [`/api/v1/changes?since=%252573${key.slice(1)}`],
      [`/nope?api_key=${key}`],
      [`/livez?api_key=${key}`],
      [`/livez?api_key=${key}`, {}, 'POST'],
      [`/api/v1/me#api_key=${key}`],
      [`http://catalog.example/api/v1/me?api_key=${key}`],
      [`http://catalog.example:port/api/v1/me?api_key=${key}`],
      [`http://[catalog/api/v1/me?api_key=${key}`],
      [`http://${key}@catalog.example/api/v1/me`],
      [`ftp://catalog.example/${key}`],
    ];
  }

  const cases: [string, () => Promise<NewApiKey | { key: string; prefix: string }>][] = [
    ['that is valid', async () => newKey()],
    ['that was revoked', async () => newKey(true)],
    ['of nobody', async () => generateApiKey()],
  ];
  for (const [what, makeKey] of cases) {
    it(`${what} appears in no answer, no log line and no warning, however it is sent`, async () => {
      const { key } = await makeKey();
      const secret = key.slice('svc_12345678_'.length);
      const linesBefore = service.logged.length;
      const ways = waysToSend(key);
      for (const [path, headers = {}, method = 'GET'] of ways) {
        const { text, headers: answered } = await send(service.url, path, { method, headers });
        assert.ok(!text.includes(secret), `in the body: ${method} ${path}`);
        assert.ok(!JSON.stringify(answered).includes(secret), `in a header: ${method} ${path}`);
      }
      await eventually('every request is logged', () => service.logged.length >= linesBefore + ways.length);
      const log = service.logged.slice(linesBefore);
      assert.equal(log.length, ways.length);
      for (const line of log) assert.ok(!decodeRepeatedly(line).includes(secret), line);
      for (const warning of warnings) assert.ok(!warning.includes(secret), warning);
    });
  }

  async function newKey(revoked = false): Promise<{ key: string; prefix: string }> {
    const { id } = await createDeveloper(service.db, { projectName: 'Careless', attributionRequired: false });
    const record = await createKey(service.db, { developerId: id, planId: 'test' });
    if (revoked) await revokeKey(service.db, record.prefix);
    return record;
  }

  it('is named in the log by its prefix, with what else belongs in the line', async () => {
    const linesBefore = service.logged.length;
    const { key, prefix } = await newKey();
    await send(service.url, `/api/v1/changes?since=1&api_key=${key}&x=y`, { headers: { 'x-request-id': 'mine' } });
    const [line] = await eventually('the request is logged', () => {
      const lines = service.logged.slice(linesBefore);
      return lines.length > 0 && lines;
    });
    const { time, duration_ms: duration, ...rest } = JSON.parse(line ?? '') as Record<string, unknown>;
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.equal(typeof duration, 'number');
    assert.deepEqual(rest, {
      level: 30,
      request_id: 'mine',
      method: 'GET',
      url: '/api/v1/changes?since=1',
      operation: 'getChanges',
      status: 400,
      key_prefix: prefix,
      msg: 'request',
    });
  });

  it('is stored as its hash alone', async () => {
    const { key } = await newKey();
    const { rows } = await service.db.raw<{ rows: { line: string }[] }>('select api_keys::text as line from api_keys');
    for (const { line } of rows) assert.ok(!line.includes(key.slice('svc_12345678_'.length)));
  });
});

/** What someone who reads the log can make of it. */
function decodeRepeatedly(text: string): string {
  const decoded = text.replace(/%([2-7][0-9a-f])/gi, (_match, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return decoded === text ? text : decodeRepeatedly(decoded);
}
