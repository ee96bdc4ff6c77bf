import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { prepareDemo } from '../../../src/commands/server/demo.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { SEED } from '../../support/catalog/chance.js';
import { ROOT } from '../../support/guides.js';
import { addresses } from '../../support/http/addresses.js';
import { startService, type TestService } from '../../support/service.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { anyRequest, bytesOf, type AnyRequest } from './any-request.js';
import { deviationsFrom, undocumentedFields, type Answer } from '../document/conformance.js';
import { exchangeRaw } from './raw-exchange.js';
import { SPOILED } from './spoiled-requests.js';

/** An address of each operation that is answered with 200. */
/** Before every change of the demo, so that a page is worth compressing, in seconds. */
const SINCE = Math.floor(Date.now() / 1_000) - 29.5 * 86_400;

const ADDRESSES = addresses({ since: String(SINCE) });

describe('the answers to any bytes', () => {
  let service: TestService;
  /** Its time-outs are so short that 408 is quick. On a busy machine it may give 408 in place of any other answer. */
  let impatient: TestService;

  before(async () => {
    const settings = { SITE: 'off', COPIES_DIR: await temporaryFolder() };
    service = await startService({ settings });
    impatient = await startService({
      databaseUrl: service.databaseUrl,
      settings,
      serverLimits: { headersTimeoutMs: 300, requestTimeoutMs: 600, checkIntervalMs: 50 },
    });
    await prepareDemo(service.db, fileURLToPath(ROOT).replace(/\/$/, ''));
  });

  after(async () => {
    await impatient.stop();
    await service.stop();
  });

  it('a request that is refused before its key is checked is not charged', async () => {
    const { key } = await service.newKey();
    const leftToday = async () => {
      const { headers } = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
      return Number(/"day";r=(\d+)/.exec(String(headers.ratelimit))?.[1]);
    };
    const before = await leftToday();
    for (const [code, spoil] of Object.entries(SPOILED)) {
      const { url } = code === 'request_timeout' ? impatient : service;
      const answer = await exchangeRaw(url, spoil(`GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n`));
      assert.equal(kindOf(answer).split(' ')[1], code);
    }
    assert.equal(await leftToday(), before - 1);
  });

  it('any request to a path of a document gets an answer that its operation documents', async () => {
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
      plain('getManifest', { method: 'DELETE', target: '/copies/manifest.json' }),
      plain('getCopyFile', { target: '/copies/none' }),
      plain('revokeLeakedKey', { target: '/revoke-leaked-key' }),
      plain('revokeLeakedKey', { method: 'POST', target: '/revoke-leaked-key' }),
      plain('getMe', withField('X', '\u0007')),
      plain('getMe', withField('Content-Length', '17000')),
      plain('getMe', withField('X', 'x'.repeat(17_000))),
    ];
    const seen = new Set<string>();
    let requests = 0;
    const property = fc.asyncProperty(anyRequest(key), async (request) => {
      const answer = await exchangeRaw(url, bytesOf(request));
      requests += 1;
      seen.add(kindOf(answer));
      assert.deepEqual(deviationsFrom(request.operationId, answer, request.method === 'HEAD'), []);
      assert.deepEqual(undocumentedFields(request.operationId, answer), []);
    });
    await fc.assert(property, { seed: SEED, examples, numRuns: 120 });
    console.log(`      ${requests} requests, ${seen.size} kinds of answers, seed ${SEED}`);
    const expected = [
      ...['200', '200 gzip', '304', '400 invalid_parameter', '400 invalid_since', '400 malformed_request'],
      ...['400 missing_since', '400 since_out_of_window', '401 invalid_api_key', '401 missing_api_key'],
      ...[
        '404 not_found',
        '404 title_not_found',
        '405 method_not_allowed',
        '413 content_too_large',
        '415 unsupported_media_type',
        '431 header_fields_too_large',
      ],
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
