import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { OperatorError, withAdvice } from '../../src/errors.js';
import { createClient, parseBaseUrl, type ChangesPage } from '../../src/client/client.js';
import { follow, type FollowOptions } from '../../src/client/follow.js';
import { retryPolicy } from '../../src/client/retry.js';
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
  const { timeoutMs = 120_000, endAtFailure = Infinity, ...rest } = options;
  const stop = new AbortController();
  const stored: ChangesPage[] = [];
  const failures: Run['failures'] = [];
  const end = await follow({
    fetchPage: createClient({ baseUrl: server.url, key: KEY, timeoutMs }),
    since: SINCE,
    once: true,
    intervalMs: 1,
    store: async (page) => {
      stored.push(page);
    },
    signal: stop.signal,
    observe(observation) {
      if (observation.kind !== 'retrying') return;
      failures.push({
        failure: withAdvice(observation.failure).replace(server.url, '(server)'),
        waitMs: observation.waitMs,
      });
      if (failures.length >= endAtFailure) stop.abort();
    },
    retryPolicy: { ...retryPolicy(rest.once ?? true), firstMs: 2, longestMs: 8 },
    random: () => 0,
    ...rest,
  }).then(
    (reached) => ({ reached }),
    (error: unknown) => ({ error: error as Error }),
  );
  await server.stop();
  return { server, stored, failures, end };
}

function errorOf(end: Run['end']): string {
  if ('reached' in end) return 'no error';
  return end.error instanceof OperatorError ? withAdvice(end.error) : end.error.message;
}

const REACHED = { reached: PAGE.meta.next_since };

describe('a follower', () => {
  it('it sends each position exactly as received, and the key only in a header', async () => {
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

  it('a failure that may be temporary is retried with growing waits, whatever it is', async () => {
    for (const [failing, message] of [
      [{ cut: 'before' }, /^Cannot reach the service: (other side closed|read ECONNRESET)\.$/],
      [{ cut: 'body', body: PAGE }, /^Cannot reach the service: (other side closed|read ECONNRESET|terminated)\.$/],
      [{ silent: true }, /^Cannot reach the service: no response within 0\.2 s\.$/],
      [{ stalls: true, body: PAGE }, /^Cannot reach the service: no response within 0\.2 s\.$/],
      [{ body: '<html>' }, /^The response is not a page of changes\.$/],
      [{ body: { data: [1], meta: PAGE.meta } }, /^The response is not a page of changes\.$/],
      [{ body: { data: [], meta: { has_more: false } } }, /^The response is not a page of changes\.$/],
      [
        { body: { data: [], meta: { has_more: false, next_since: 1e12 } } },
        /^The response is not a page of changes\.$/,
      ],
      // Of a proxy that has no service.
      [{ status: 502, body: '<html>\u001b[2J' }, /^The service responded with 502\.$/],
      // Of a service that was restored, while its clock is behind the position.
      [problem(400, 'invalid_since'), /^The service refused the request \(400 invalid_since: Some detail\)\.$/],
      [problem(500, 'internal_error'), /^The service responded with 500 internal_error: Some detail\.$/],
      [problem(500, 'a\u001b[2J\nb'), /^The service responded with 500 a\uFFFD\[2J\uFFFDb: Some detail\.$/],
      // Larger than what the contract allows, as sent or once it is decoded.
      [{ endless: true, body: JSON.stringify(PAGE).padEnd(1e6) }, /^The response is larger than 8388608 bytes\.$/],
      [{ endless: true, status: 502, body: ' '.repeat(1e6) }, /^The service responded with 502\.$/],
      [
        { body: gzipSync(Buffer.alloc(9e6, ' ')), headers: { 'Content-Encoding': 'gzip' } },
        /^The response is larger than 8388608 bytes\.$/,
      ],
    ] as const satisfies readonly (readonly [Scripted, RegExp])[]) {
      const script = [failing, failing, failing, failing, { body: PAGE }];
      const isLate = 'silent' in failing || 'stalls' in failing;
      const { stored, failures, end } = await run(script, isLate ? { timeoutMs: 200 } : {});
      // With a short timeout, the good page may be late as well.
      const waits = failures.slice(0, isLate ? 4 : undefined).map(({ waitMs }) => waitMs);
      assert.deepEqual(waits, [1, 2, 4, 4], String(message));
      for (const { failure } of failures) assert.match(failure, message);
      assert.deepEqual([stored, end], [[PAGE], REACHED]);
    }
  });

  it('the waits start short again after a page, and with --once have a sum after which it gives up', async () => {
    const bad = problem(500, 'internal_error');
    const more: ChangesPage = { ...PAGE, meta: { has_more: true, next_since: SINCE + 1 } };
    const policy = { firstMs: 2, longestMs: 8, giveUpAfterMs: 10 };
    const { end, failures, stored } = await run([bad, bad, bad, { body: more }, bad], { retryPolicy: policy });
    assert.deepEqual(
      failures.map(({ waitMs }) => waitMs),
      // The page ends the first series of failures. Another 4 ms would exceed the bound.
      [1, 2, 4, 1, 2, 4],
    );
    assert.deepEqual(stored, [more]);
    assert.match(errorOf(end), /^The service responded with 500 .*\. Gave up; try again in 1 s\./);
    assert.equal(retryPolicy(true).giveUpAfterMs, 300_000);
  });

  it('it waits as long as Retry-After says, at most a day, and can be stopped meanwhile', async () => {
    for (const [retryAfter, least, most] of [
      ['17', 17_000, 17_000],
      [new Date(Date.now() + 7_200_000).toUTCString(), 1_000, 7_200_000],
      ['31536000', 86_400_000, 86_400_000],
    ] as const) {
      for (const status of [429, 503]) {
        const { failures, end, server } = await run([problem(status, 'some_code', { 'Retry-After': retryAfter })], {
          once: false,
          endAtFailure: 1,
        });
        const wait = failures[0]?.waitMs ?? 0;
        assert.ok(wait >= least && wait <= most, `${retryAfter}: ${wait}`);
        assert.deepEqual([server.requests.length, end], [1, { reached: SINCE }]);
      }
    }
    const { end, failures } = await run([problem(429, 'rate_limit_exceeded', { 'Retry-After': '301' })]);
    assert.deepEqual(failures, []);
    assert.equal(
      errorOf(end),
      'The service responded with 429 rate_limit_exceeded: Some detail. Gave up; try again in 301 s.',
    );
  });

  it('it ends with advice, delivers and saves nothing, where a retry cannot help', async () => {
    for (const [response, message] of [
      [
        problem(401, 'invalid_api_key'),
        /^The service does not accept the key in CATALOG_API_KEY \(401 invalid_api_key: Some detail\)\. Set it to a valid key and start again\.$/,
      ],
      [
        problem(400, 'since_out_of_window', {}, { oldest_since: 1_795_218_600.5 }),
        /^The position 1795218000 \(2026-11-20T23:40:00Z\) has left the window of the feed, which begins at 1795218600\.5 \(2026-11-20T23:50:00Z\); changes in between are no longer available \(400 since_out_of_window: Some detail\)\.$/,
      ],
      [
        problem(400, 'since_out_of_window'),
        /^The position 1795218000 \(2026-11-20T23:40:00Z\) has left the window of the feed; changes since then are no longer available \(400 since_out_of_window: Some detail\)\.$/,
      ],
      [{ status: 404, body: '<html>' }, /^This does not look like the URL of a Catalog Lookup Service \(404\)\.$/],
      [
        { status: 301, body: '', headers: { Location: 'https://other.example/\u009b' } },
        /^The service redirects to https:\/\/other\.example\/\uFFFD \(301\)\. Use the URL of the service itself\.$/,
      ],
      [
        { body: { ...PAGE, meta: { has_more: true, next_since: SINCE } } },
        /^The service is not advancing: after 1795218000 /,
      ],
      [{ body: { data: [], meta: { has_more: true, next_since: SINCE } } }, /^The service is not advancing/],
    ] as const satisfies readonly (readonly [Scripted, RegExp])[]) {
      const { end, stored, failures, server } = await run([response]);
      assert.ok('error' in end);
      assert.equal(end.error.name, 'OperatorError');
      assert.match(errorOf(end), message);
      const expected = { stored: [], failures: [], requests: 1 };
      assert.deepEqual({ stored, failures, requests: server.requests.length }, expected);
    }
  });

  it('it requests no further page if one cannot be stored', async () => {
    const more: ChangesPage = { ...PAGE, meta: { has_more: true, next_since: SINCE + 1 } };
    const { server, end } = await run([{ body: more }], { store: () => Promise.reject(new Error('disk full')) });
    assert.deepEqual([server.requests.length, errorOf(end)], [1, 'disk full']);
  });
});

describe('what a follower is started with', () => {
  it('a base URL is the part of a URL before /api/v1, or is refused without being repeated', () => {
    for (const [given, read] of [
      ['https://catalog.example.com', 'https://catalog.example.com'],
      ['https://Catalog.example.com/', 'https://catalog.example.com'],
      ['http://127.0.0.1:8080//', 'http://127.0.0.1:8080'],
      ['https://example.com/catalog/', 'https://example.com/catalog'],
      ['https://example.com/catalog/api/v1', 'https://example.com/catalog'],
      ['https://example.com/api/v1/', 'https://example.com'],
    ] as const) {
      assert.equal(parseBaseUrl(given), read);
    }
    for (const given of [
      '',
      'catalog.example.com',
      'ftp://example.com',
      'https://user:geheim@example.com',
      'https://example.com/?api_key=geheim',
      'https://example.com/#a',
    ]) {
      assert.throws(
        () => parseBaseUrl(given),
        (error: Error) => error.name === 'OperatorError' && !error.message.includes('geheim'),
        given,
      );
    }
  });

  it('a key that a header cannot hold is refused without being repeated', () => {
    for (const key of ['', 'svc_geheim\n', 'svc_gehëim', 'svc geheim']) {
      assert.throws(
        () => createClient({ baseUrl: 'http://127.0.0.1', key }),
        (error: Error) => error.name === 'OperatorError' && !/geh.im/.test(error.message),
      );
    }
  });
});
