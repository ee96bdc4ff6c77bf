import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { prepareDemo } from '../../../src/commands/demo/prepare-demo.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { ROOT } from '../../support/guides.js';
import { addresses } from '../../support/http/addresses.js';
import { startService, type TestService } from '../../support/service.js';
import { anyRequest, bytesOf, type AnyRequest } from './any-request.js';
import { deviationsFrom, type Answer } from '../document/conformance.js';
import { exchangeRaw } from './raw-exchange.js';

/** An address of each operation that is answered with 200. */
const ADDRESSES = addresses();

/** Ends of requests that are refused before their operation is looked up, by the status. */
const REFUSED: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  400: {
    'a control character in a header field': 'If-None-Match: "a\u0001b"\r\n\r\n',
    'a NUL in a header field': 'If-None-Match: "a\u0000b"\r\n\r\n',
    'a header field without a colon': 'If-None-Match\r\n\r\n',
    'a blank in the name of a header field': 'If None Match: *\r\n\r\n',
    'two lengths of the content': 'Content-Length: 1\r\nContent-Length: 2\r\n\r\n',
    'a length of the content that is no number': 'Content-Length: one\r\n\r\n',
    'two framings of the content': 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'two hosts': 'Host: y\r\n\r\n',
  },
  408: { 'header fields that do not end': '' },
  413: {
    'content in chunks': 'Transfer-Encoding: chunked\r\n\r\n',
    'much content': 'Content-Length: 16385\r\n\r\n',
    'content that waits for 100 (Continue)': 'Content-Length: 16385\r\nExpect: 100-continue\r\n\r\n',
  },
  431: { 'a long header field': `X-Large: ${'x'.repeat(17_000)}\r\n\r\n` },
};

/** Bound on the random requests, in milliseconds. */
const TIME_LIMIT_MS = 8_000;

describe('the answers to any bytes', () => {
  let service: TestService;
  /** Its time-outs are so short that 408 is quick. On a busy machine it may give 408 in place of any other answer. */
  let impatient: TestService;

  before(async () => {
    service = await startService();
    impatient = await startService({
      databaseUrl: service.databaseUrl,
      serverLimits: { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 },
    });
    await prepareDemo(service.db, fileURLToPath(ROOT).replace(/\/$/, ''));
  });

  after(async () => {
    await impatient.stop();
    await service.stop();
  });

  const head = (method: string, target: string) =>
    `${method} ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.key}\r\n`;

  for (const [status, causes] of Object.entries(REFUSED)) {
    for (const [cause, rest] of Object.entries(causes)) {
      it(`${cause} is answered with the ${status} that every operation documents`, async () => {
        const requests = Object.entries(ADDRESSES).flatMap(([operationId, target]) =>
          ['GET', 'HEAD', 'POST'].map((method) => ({ operationId, target, method })),
        );
        const { url } = status === '408' ? impatient : service;
        const check = async ({ operationId, target, method }: (typeof requests)[number]) => {
          const answer = await exchangeRaw(url, `${head(method, target)}${rest}`);
          assert.equal(answer.status, Number(status), answer.body);
          assert.deepEqual(deviationsFrom(operationId, answer, method === 'HEAD'), [], `${method} ${target}`);
        };
        await Promise.all(requests.map(check));
      });
    }
  }

  it('a request that is refused before its key is checked is not charged', async () => {
    const { key } = await service.newKey();
    const leftToday = async () => {
      const { headers } = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
      return Number(/"day";r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
    };
    const before = await leftToday();
    for (const [status, causes] of Object.entries(REFUSED)) {
      const { url } = status === '408' ? impatient : service;
      for (const rest of Object.values(causes)) {
        const answer = await exchangeRaw(url, `GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n${rest}`);
        assert.equal(answer.status, Number(status));
      }
    }
    assert.equal(await leftToday(), before - 1);
  });

  it('any request to a path of the contract gets an answer that its operation documents', async () => {
    const { key, url } = impatient;
    const plain = (operationId: string, change: Partial<AnyRequest> = {}): [AnyRequest] => [
      {
        operationId,
        method: 'GET',
        target: ADDRESSES[operationId] ?? '',
        version: 'HTTP/1.1',
        fields: [
          ['Host', 'x'],
          ['X-API-Key', key],
        ] as const,
        content: '',
        ...change,
      },
    ];
    const withField = (name: string, value: string): Partial<AnyRequest> => ({
      fields: [...plain('getMe')[0].fields, [name, value]],
    });
    // One request for each kind of answer, so that each kind is tried.
    const examples = [
      ...Object.keys(ADDRESSES).map((operationId) => plain(operationId)),
      plain('getChanges', withField('Accept-Encoding', 'gzip')),
      plain('getStats', withField('If-None-Match', '*')),
      plain('getTitle', { target: '/api/v1/titles/no-title' }),
      plain('getTitle', { target: '/api/v1/titles/a.b' }),
      plain('getChanges', { target: '/api/v1/changes' }),
      plain('getChanges', { target: '/api/v1/changes?since=soon' }),
      plain('getChanges', { target: '/api/v1/changes?since=1' }),
      plain('getMe', { fields: [['Host', 'x']] }),
      plain('getMe', {
        fields: [
          ['Host', 'x'],
          ['X-API-Key', generateApiKey().key],
        ],
      }),
      plain('getMe', { method: 'DELETE' }),
      plain('getMe', withField('X', '\u0007')),
      plain('getMe', withField('Transfer-Encoding', 'chunked')),
      plain('getMe', withField('X', 'x'.repeat(17_000))),
    ];
    const seen = new Set<string>();
    const seed = Math.floor(Math.random() * 2 ** 31);
    let requests = 0;
    const property = fc.asyncProperty(anyRequest(key), async (request) => {
      const answer = await exchangeRaw(url, bytesOf(request));
      requests += 1;
      seen.add(kindOf(answer));
      assert.deepEqual(deviationsFrom(request.operationId, answer, request.method === 'HEAD'), []);
    });
    await fc.assert(property, { seed, examples, numRuns: 300, plugins: [fc.interruptAfterTimeLimit(TIME_LIMIT_MS)] });
    console.log(`      ${requests} requests, ${seen.size} kinds of answers, seed ${seed}`);
    const expected = [
      ...['200', '200 gzip', '304', '400 invalid_parameter', '400 invalid_since', '400 malformed_request'],
      ...['400 missing_since', '400 since_out_of_window', '401 invalid_api_key', '401 missing_api_key'],
      ...['404 title_not_found', '405 method_not_allowed', '413 content_too_large', '431 header_fields_too_large'],
    ];
    assert.deepEqual(
      expected.filter((kind) => !seen.has(kind)),
      [],
    );
  });
});

/** A status and, where there is one, the problem's code or the coding. */
function kindOf({ status, headers, body }: Answer): string {
  const isProblem = status >= 400 && body !== '';
  const more = isProblem ? (JSON.parse(body) as { code: string }).code : String(headers['content-encoding'] ?? '');
  return `${status} ${more}`.trimEnd();
}
