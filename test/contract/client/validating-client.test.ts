import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { prepareDemo } from '../../../src/commands/server/demo.js';
import { SEED } from '../../support/catalog/chance.js';
import { ROOT } from '../../support/guides.js';
import { startService, type TestService } from '../../support/service.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { anyRequest, bytesOf } from './any-request.js';
import { deviationsFrom, undocumentedFields, type Answer } from '../document/conformance.js';
import { exchangeRaw } from './raw-exchange.js';
import { SPOILED } from './spoiled-requests.js';

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
    const seen = new Set<string>();
    let requests = 0;
    const property = fc.asyncProperty(anyRequest(key), async (request) => {
      const answer = await exchangeRaw(url, bytesOf(request));
      requests += 1;
      seen.add(kindOf(answer));
      assert.deepEqual(deviationsFrom(request.operationId, answer, request.method === 'HEAD'), []);
      assert.deepEqual(undocumentedFields(request.operationId, answer), []);
    });
    await fc.assert(property, { seed: SEED, numRuns: 120 });
    console.log(`      ${requests} requests, ${seen.size} kinds of answers, seed ${SEED}`);
    // Most are not refused for the same reason.
    assert.ok(seen.size >= 5, [...seen].join(', '));
  });
});

/** A status and, where there is one, the problem's code or the coding. */
function kindOf({ status, headers, body }: Answer): string {
  const isProblem = status >= 400 && body !== '';
  const more = isProblem ? (JSON.parse(body) as { code: string }).code : String(headers['content-encoding'] ?? '');
  return `${status} ${more}`.trimEnd();
}
