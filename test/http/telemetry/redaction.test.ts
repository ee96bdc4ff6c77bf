import assert from 'node:assert/strict';
import pino from 'pino';
import { parseTarget } from '../../../src/http/request/target.js';
import { logFailedAnswers, redactUrl } from '../../../src/http/telemetry/redaction.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { contextOf } from '../../support/http/context.js';

describe('the URL of a request in the log', () => {
  const { key, prefix } = generateApiKey();
  const secret = key.slice(prefix.length + 1);

  function logged(target: string, isOperation = false): string {
    const [path = '', query = ''] = target.split('?');
    return redactUrl({ path, search: new URLSearchParams(query) }, isOperation);
  }

  /** Every character percent-encoded, so many times over. */
  function encoded(text: string, times: number): string {
    if (times === 0) return text;
    const once = Array.from(text, (character) => `%${character.charCodeAt(0).toString(16)}`).join('');
    return times === 1 ? once : once.replaceAll('%', `%${'25'.repeat(times - 1)}`);
  }

  it('the log has the path and since, decoded and cut to 200 characters', () => {
    assert.equal(logged('/api/v1/titles/a%20b'), '/api/v1/titles/a b');
    assert.equal(logged(`/api/v1/changes?since=17&api_key=${key}`), '/api/v1/changes?since=17');
    for (const since of [
      '1795218005',
      '1795837975000',
      '1795837975000.123456',
      '9'.repeat(40),
      '1795218005.123456',
      '-1',
      '0x10',
      'soon',
    ]) {
      assert.equal(logged(`/api/v1/changes?since=${since}`), `/api/v1/changes?since=${since}`);
    }
    assert.equal(logged('/api/v1/changes?x=2&since=1&since=a%26b'), '/api/v1/changes?since=1&since=a&b');
    assert.equal(logged(`/api/v1/titles/${'a.'.repeat(200)}`).length, 200);
  });

  it('a key is never logged, however often it was encoded', () => {
    for (let times = 0; times <= 12; times += 1) {
      for (const target of [`/api/v1/${encoded(key, times)}`, `/api/v1/changes?since=${encoded(key, times)}`]) {
        const url = logged(target);
        assert.ok(!url.includes(key.slice(prefix.length)), `${times} times: ${url}`);
        assert.ok(url === '(encoded too often)' || url.includes(prefix), `${times} times: ${url}`);
      }
    }
    assert.ok(logged(`/${encoded(key, 3)}`).includes(prefix));
  });

  it('the id of a title in a path of the contract is logged unchanged, unless it holds the beginning of a key', () => {
    for (const id of [secret, 'x'.repeat(64), 'the-lord-of-the-rings-extended-2003', 'svc_short']) {
      assert.equal(logged(`/api/v1/titles/${id}`, true), `/api/v1/titles/${id}`);
    }
    for (const id of [`%73${secret}`, 'x'.repeat(65)]) {
      assert.equal(logged(`/api/v1/titles/${id}`, true), '/api/v1/titles/[redacted]');
    }
    assert.equal(logged(`/api/v1/stats?since=${secret}`, true), '/api/v1/stats?since=[redacted]');
    for (const separator of ['_', '-', '.']) {
      for (const text of [`${prefix}${separator}${secret}`, `a${prefix.toUpperCase()}${separator}${secret}`]) {
        assert.ok(!logged(`/api/v1/titles/${text}`, true).includes(secret), text);
      }
    }
  });

  it('a URL that was encoded thousands of times is replaced', () => {
    assert.equal(logged(`/api/v1/%${'25'.repeat(8_000)}41`), '(encoded too often)');
    assert.equal(logged(`/api/v1/changes?since=%${'25'.repeat(8_000)}41`), '(encoded too often)');
  });
});

describe('an answer that fails', () => {
  const lines: string[] = [];
  const onError = logFailedAnswers(pino({}, { write: (line: string) => lines.push(line) }));

  beforeEach(() => {
    lines.length = 0;
  });

  it('an answer that fails is logged without the key of its request', () => {
    const { key } = generateApiKey();
    const ctx = contextOf();
    ctx.req.rawHeaders = ['X-API-Key', key];
    ctx.state = { requestId: 'failed-1', target: parseTarget('/') };
    onError(new Error(`a mistake about ${key}`), ctx);
    assert.equal(lines.length, 1);
    const { level, request_id: id, msg } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
    assert.deepEqual([level, id, msg], [40, 'failed-1', 'answer failed']);
    assert.ok(!lines[0]?.includes(key.slice(-20)));
  });

  it('an answer whose connection the client broke is not logged again', async () => {
    const ctx = contextOf();
    const reset = new Error('read ECONNRESET');
    ctx.req.socket.on('error', () => undefined).destroy(reset);
    await new Promise(setImmediate);
    onError(reset, ctx);
    assert.deepEqual(lines, []);
  });
});
