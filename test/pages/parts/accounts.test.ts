import assert from 'node:assert/strict';
import { browserName } from '../../../src/pages/parts/accounts.js';

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)';

describe('the name of a browser in the list of sessions', () => {
  it('names the browser and the system, or repeats an unknown User-Agent up to a length', () => {
    for (const [userAgent, name] of [
      ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
      [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/140.0 Safari/537.36 Edg/140.0`, 'Edge on Windows'],
      [`Mozilla/5.0 (Linux; Android 15; K) ${WEBKIT} Chrome/140.0 Mobile Safari/537.36`, 'Chrome on Android'],
      [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${WEBKIT} Version/19.0 Safari/605.1.15`, 'Safari on macOS'],
      [`Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) ${WEBKIT} CriOS/140.0 Mobile`, 'Chrome on iPhone'],
      ['curl/8.5.0', 'curl/8.5.0'],
      ['', 'Unknown browser'],
      ['😀'.repeat(61), `${'😀'.repeat(59)}…`],
    ] as const) {
      assert.equal(browserName(userAgent), name);
    }
  });
});
