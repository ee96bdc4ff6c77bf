import assert from 'node:assert/strict';
import { createClient, parseBaseUrl, type ChangesPage } from '../../src/follower/client.js';
import { follow, type FollowOptions } from '../../src/follower/follow.js';
import { retryPolicy } from '../../src/follower/retry.js';
import { startScripted, type Scripted, type ScriptedServer } from './scripted-server.js';

const SINCE = 1_795_218_000;
const KEY = 'svc_abcdefgh_0123456789';

const ENTRY = {
  svc_id: 'a',
  media_type: 'movie',
  title: 'A',
  updated_at: '2026-11-20T23:40:05.123456Z',
  has_bundles: false,
} as const;

const PAGE: ChangesPage = { data: [ENTRY], meta: { has_more: false, next_since: 1_795_218_005.123456 } };

function problem(status: number, code: string, headers: Record<string, string> = {}, members: object = {}): Scripted {
  return {
    status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
    body: { type: 'about:blank', title: 'T', status, detail: 'Some detail.', code, request_id: 'r', ...members },
  };
}

/** The result of following a scripted server. */
interface Run {
  readonly server: ScriptedServer;
  readonly stored: ChangesPage[];
  readonly failures: { failure: string; waitMs: number }[];
  readonly end: { reached: number } | { error: Error };
}

async function run(
  script: readonly Scripted[],
  options: Partial<FollowOptions> & { timeoutMs?: number; endAtFailure?: number } = {},
): Promise<Run> {
  const server = await startScripted(script);
  const { timeoutMs = 5_000, endAtFailure = Infinity, ...rest } = options;
  const stop = new AbortController();
  const stored: ChangesPage[] = [];
  const failures: Run['failures'] = [];
  const end = await follow({
    readPage: createClient({ baseUrl: server.url, key: KEY, timeoutMs }),
    since: SINCE,
    once: true,
    intervalMs: 1,
    store: async (page) => {
      stored.push(page);
    },
    signal: stop.signal,
    onFailure: (failure, waitMs) => {
      failures.push({ failure: failure.replace(server.url, '(server)'), waitMs });
      if (failures.length >= endAtFailure) stop.abort();
    },
    retryPolicy: { ...retryPolicy(rest.once ?? true), firstMs: 2, longestMs: 8 },
    random: () => 0,
    ...rest,
  }).then(
    (reached) => ({ reached }),
    (error: unknown) => ({ error: error as Error }),
  );
  await server.close();
  return { server, stored, failures, end };
}

const REACHED = { reached: PAGE.meta.next_since };

describe('a follower', () => {
  it('sends each position exactly as received, and the key only in a header', async () => {
    const more: ChangesPage = { ...PAGE, meta: { has_more: true, next_since: 1_795_218_005.000001 } };
    const { server, stored, failures, end } = await run([{ body: more }, { body: PAGE }]);
    assert.deepEqual(
      server.requests.map(({ url, authorization }) => [url, authorization]),
      [
        ['/api/v1/changes?since=1795218000', `Bearer ${KEY}`],
        ['/api/v1/changes?since=1795218005.000001', `Bearer ${KEY}`],
      ],
    );
    assert.deepEqual({ stored, failures, end }, { stored: [more, PAGE], failures: [], end: REACHED });
  });

  for (const [what, failing, message] of [
    [
      'the connection is cut before the response',
      { cut: 'before' },
      /^Cannot reach the service: (other side closed|read ECONNRESET)$/,
    ],
    [
      'the connection is cut in the middle of the response',
      { cut: 'body', body: PAGE },
      /^Cannot reach the service: (other side closed|read ECONNRESET|terminated)$/,
    ],
    ['no response comes', { silent: true }, /^Cannot reach the service: no response within 0\.2 s$/],
    ['the response stalls', { stalls: true, body: PAGE }, /^Cannot reach the service: no response within 0\.2 s$/],
    ['the response is not JSON', { body: '<html>' }, /^The response is not a page of changes$/],
    ['the response is other JSON', { body: { data: [1], meta: PAGE.meta } }, /^The response is not a page of changes$/],
    [
      'the position is missing',
      { body: { data: [], meta: { has_more: false } } },
      /^The response is not a page of changes$/,
    ],
    [
      'the position is beyond any time',
      { body: { data: [], meta: { has_more: false, next_since: 1e12 } } },
      /^The response is not a page of changes$/,
    ],
    ['a proxy has no service', { status: 502, body: '<html>\u001b[2J' }, /^The service responded with 502$/],
    [
      'the service fails',
      problem(500, 'internal_error'),
      /^The service responded with 500 internal_error: Some detail$/,
    ],
  ] as const satisfies readonly (readonly [string, Scripted, RegExp])[]) {
    it(`backs off and retries if ${what}`, async () => {
      const { stored, failures, end } = await run([failing, failing, failing, failing, { body: PAGE }], {
        timeoutMs: 200,
      });
      assert.deepEqual(
        failures.map(({ waitMs }) => waitMs),
        [1, 2, 4, 4],
      );
      for (const { failure } of failures) assert.match(failure, message);
      assert.deepEqual([stored, end], [[PAGE], REACHED]);
    });
  }

  it('starts again with short waits after a page', async () => {
    const bad = problem(500, 'internal_error');
    const more: ChangesPage = { ...PAGE, meta: { has_more: true, next_since: SINCE + 1 } };
    const { failures } = await run([bad, bad, { body: more }, bad, { body: PAGE }]);
    assert.deepEqual(
      failures.map(({ waitMs }) => waitMs),
      [1, 2, 1],
    );
  });

  for (const [what, retryAfter, least, most] of [
    ['seconds', () => '17', 17_000, 17_000],
    ['a date', () => new Date(Date.now() + 3_600_000).toUTCString(), 3_500_000, 3_600_000],
    ['a year', () => '31536000', 86_400_000, 86_400_000],
  ] as const) {
    for (const [status, code] of [
      [429, 'rate_limit_exceeded'],
      [503, 'service_unavailable'],
    ] as const) {
      it(`waits for ${what} of Retry-After with ${status}, at most a day, and can be stopped meanwhile`, async () => {
        const { failures, end, server } = await run([problem(status, code, { 'Retry-After': retryAfter() })], {
          once: false,
          endAtFailure: 1,
        });
        const wait = failures[0]?.waitMs ?? 0;
        assert.ok(wait >= least && wait <= most, String(wait));
        assert.equal(server.requests.length, 1);
        assert.deepEqual(end, { reached: SINCE });
      });
    }
  }

  it('retries after the second that Retry-After asks for', async () => {
    const { failures, stored, end } = await run([
      problem(503, 'service_unavailable', { 'Retry-After': '1' }),
      { body: PAGE },
    ]);
    assert.deepEqual(failures, [
      { failure: 'The service responded with 503 service_unavailable: Some detail', waitMs: 1_000 },
    ]);
    assert.deepEqual([stored, end], [[PAGE], REACHED]);
  });

  it('gives up with --once if Retry-After exceeds five minutes', async () => {
    const { end, failures } = await run([problem(429, 'rate_limit_exceeded', { 'Retry-After': '301' })]);
    assert.deepEqual(failures, []);
    assert.equal(
      'error' in end && end.error.message,
      'The service responded with 429 rate_limit_exceeded: Some detail. Gave up; try again in 301 s.',
    );
  });

  it('gives up with --once if its waits after failures in a row exceed five minutes', async () => {
    const bad = problem(500, 'internal_error');
    const more: ChangesPage = { ...PAGE, meta: { has_more: true, next_since: SINCE + 1 } };
    const policy = { firstMs: 2, longestMs: 8, giveUpAfterMs: 10 };
    const { end, failures, stored } = await run([bad, bad, bad, { body: more }, bad], { retryPolicy: policy });
    assert.deepEqual(
      failures.map(({ waitMs }) => waitMs),
      // The page ends the first series of failures. Another 4 ms would exceed the bound.
      [1, 2, 4, 1, 2, 4],
    );
    assert.deepEqual(
      stored.map(({ meta }) => meta.next_since),
      [SINCE + 1],
    );
    assert.match(
      String('error' in end && end.error.message),
      /^The service responded with 500 .*\. Gave up; try again in 1 s\./,
    );
    assert.equal(retryPolicy(true).giveUpAfterMs, 300_000);
  });

  for (const [what, response, message] of [
    [
      'its key is unknown',
      problem(401, 'invalid_api_key'),
      /^The service does not accept the key in CATALOG_API_KEY \(401 invalid_api_key: Some detail\)\. Set it to a valid key and start again; the position is kept\.$/,
    ],
    [
      'its position has left the window',
      problem(400, 'since_out_of_window', {}, { oldest_since: 1_795_218_600.5 }),
      /^The position 1795218000 \(2026-11-20T23:40:00Z\) has left the window of the feed, which begins at 1795218600\.5 \(2026-11-20T23:50:00Z\); changes in between are no longer available \(400 since_out_of_window: Some detail\)\.$/,
    ],
    [
      'its position has left a window of unknown beginning',
      problem(400, 'since_out_of_window'),
      /^The position 1795218000 \(2026-11-20T23:40:00Z\) has left the window of the feed; changes since then are no longer available \(400 since_out_of_window: Some detail\)\.$/,
    ],
    [
      'its position lies in the future',
      problem(400, 'invalid_since'),
      /^The service refused the request \(400 invalid_since: Some detail\)\.$/,
    ],
    [
      'the address is another page',
      { status: 404, body: '<html>' },
      /^The URL does not seem to be that of a Catalog Lookup Service \(404\)\.$/,
    ],
    [
      'the address redirects',
      { status: 301, body: '', headers: { Location: 'https://other.example/\u009b' } },
      /^The service redirects to https:\/\/other\.example\/\uFFFD \(301\)\. Use the URL of the service itself\.$/,
    ],
    [
      'the service gives the same position again',
      { body: { ...PAGE, meta: { has_more: true, next_since: SINCE } } },
      /^The service is not advancing: after 1795218000 /,
    ],
    [
      'the service announces more but sends nothing',
      { body: { data: [], meta: { has_more: true, next_since: SINCE } } },
      /^The service is not advancing/,
    ],
  ] as const satisfies readonly (readonly [string, Scripted, RegExp])[]) {
    it(`ends with advice, delivers and saves nothing, if ${what}`, async () => {
      const { end, stored, failures, server } = await run([response]);
      assert.ok('error' in end);
      assert.equal(end.error.name, 'OperatorError');
      assert.match(end.error.message, message);
      assert.deepEqual(
        { stored, failures, requests: server.requests.length },
        { stored: [], failures: [], requests: 1 },
      );
    });
  }

  for (const status of [301, 302, 303, 307, 308]) {
    it(`does not follow a redirect (${status}), so its key never goes to another host`, async () => {
      const other = await startScripted([{ body: PAGE }]);
      const location = `${other.url.replace('127.0.0.1', 'localhost')}/api/v1/changes?since=${SINCE}`;
      const { server, end } = await run([{ status, body: '', headers: { Location: location } }]);
      await other.close();
      assert.deepEqual([server.requests.length, other.requests], [1, []]);
      assert.equal(
        'error' in end && end.error.message,
        `The service redirects to ${location.split('?')[0]} (${status}). Use the URL of the service itself.`,
      );
    });
  }

  it('requests no further page if one cannot be stored', async () => {
    const more: ChangesPage = { ...PAGE, meta: { has_more: true, next_since: SINCE + 1 } };
    const { server, end } = await run([{ body: more }], { store: () => Promise.reject(new Error('disk full')) });
    assert.equal(server.requests.length, 1);
    assert.equal('error' in end && end.error.message, 'disk full');
  });
});

describe('a base URL', () => {
  for (const [given, read] of [
    ['https://catalog.example.com', 'https://catalog.example.com'],
    ['https://Catalog.example.com/', 'https://catalog.example.com'],
    ['http://127.0.0.1:8080//', 'http://127.0.0.1:8080'],
    ['https://example.com/catalog/', 'https://example.com/catalog'],
    ['https://example.com/catalog/api/v1', 'https://example.com/catalog'],
    ['https://example.com/api/v1/', 'https://example.com'],
  ] as const) {
    it(`is parsed: ${given}`, () => assert.equal(parseBaseUrl(given), read));
  }

  for (const given of [
    '',
    'catalog.example.com',
    'ftp://example.com',
    'https://user:geheim@example.com',
    'https://example.com/?api_key=geheim',
    'https://example.com/#a',
  ]) {
    it(`is refused without being repeated: ${JSON.stringify(given)}`, () => {
      assert.throws(
        () => parseBaseUrl(given),
        (error: Error) => error.name === 'OperatorError' && !error.message.includes('geheim'),
      );
    });
  }

  it('requires a key that a header can hold, and does not repeat any other', () => {
    for (const key of ['', 'svc_geheim\n', 'svc_gehëim', 'svc geheim']) {
      assert.throws(
        () => createClient({ baseUrl: 'http://127.0.0.1', key }),
        (error: Error) => error.name === 'OperatorError' && !/geh.im/.test(error.message),
      );
    }
  });
});
