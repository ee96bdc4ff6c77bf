import assert from 'node:assert/strict';
import { loggableUrl } from '../../src/http/loggable-url.js';
import { generateApiKey } from '../../src/keys/api-key.js';

describe('the URL of a request in the log', () => {
  const { key, prefix } = generateApiKey();

  function logged(target: string): string {
    const [path = '', query = ''] = target.split('?');
    return loggableUrl(path, new URLSearchParams(query));
  }

  /** Every character percent-encoded, so many times over. */
  function encoded(text: string, times: number): string {
    if (times === 0) return text;
    const once = Array.from(text, (character) => `%${character.charCodeAt(0).toString(16)}`).join('');
    return times === 1 ? once : once.replaceAll('%', `%${'25'.repeat(times - 1)}`);
  }

  it('is cut to what may be logged', () => {
    assert.equal(logged('/api/v1/titles/a%20b'), '/api/v1/titles/a b');
    assert.equal(logged(`/api/v1/changes?since=17&api_key=${key}`), '/api/v1/changes?since=17');
  });

  it('never shows a key, however often it is encoded', () => {
    for (let times = 0; times <= 12; times += 1) {
      for (const target of [`/api/v1/${encoded(key, times)}`, `/api/v1/changes?since=${encoded(key, times)}`]) {
        const url = logged(target);
        assert.ok(!url.includes(key.slice(prefix.length)), `${times} times: ${url}`);
        assert.ok(url === '(encoded too often)' || url.includes(prefix), `${times} times: ${url}`);
      }
    }
    assert.ok(logged(`/${encoded(key, 3)}`).includes(prefix));
  });

  it('shows no part of a key that something was put into', () => {
    const secret = key.slice(prefix.length + 1);
    for (const broken of [
      key.toUpperCase(),
      key.replace('svc', 'SVC'),
      `${prefix}_%c0%af${secret}`,
      `${prefix}_-${secret}`,
      `${prefix}_${secret.slice(0, 10)}%09${secret.slice(10)}`,
      `${prefix}_${secret.slice(0, 10)}/${secret.slice(10)}`,
      `${prefix}_${secret.slice(0, 10)}%0a${secret.slice(10)}`,
    ]) {
      const url = logged(`/api/v1/titles/${broken}`).toLowerCase();
      assert.equal(url, `/api/v1/titles/${prefix.toLowerCase()}_[redacted]`, broken);
    }
  });

  it('is not looked for any further where it was encoded thousands of times', () => {
    assert.equal(logged(`/api/v1/%${'25'.repeat(8_000)}41`), '(encoded too often)');
    assert.equal(logged(`/api/v1/changes?since=%${'25'.repeat(8_000)}41`), '(encoded too often)');
  });
});
