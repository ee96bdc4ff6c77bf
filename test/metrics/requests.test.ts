import assert from 'node:assert/strict';
import { get } from 'node:http';
import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import type { Knex } from 'knex';
import { operations } from '../../src/api/index.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { eventually } from '../support/eventually.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { send, type RequestOptions } from '../support/request.js';
import { addTitles } from '../support/titles.js';
import { nonZero, startMeasuredServer, type MeasuredServer, type Scrape } from '../support/http/exposition.js';

const PROJECT = 'Zanzibar film club';
const PLAN = 'plan-of-zanzibar';
const UNLIMITED = 2_000_000_000;

describe('metrics of requests', () => {
  let postgres: TestPostgres;
  let db: Knex;
  let server: MeasuredServer;
  /** What a test begins with. */
  let beginning: Scrape;
  /** What the server shows before any request. */
  let fresh: Scrape;
  let key: string;
  let developerId: number;
  /** Lets go of what a test holds up. */
  let release = async (): Promise<void> => undefined;

  before(async () => {
    postgres = await startPostgres();
    db = openDatabase({
      address: postgres.url,
      applicationName: 'test',
      poolSize: 4,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    await addTitles(db, 3);
    await setPlan(db, PLAN, {
      name: PLAN,
      requestsPerMinute: UNLIMITED,
      requestsPerDay: UNLIMITED,
      commercialUse: true,
    });
    ({ id: developerId } = await createDeveloper(db, { projectName: PROJECT, attributionRequired: false }));
    ({ key } = await createKey(db, { developerId, planId: PLAN }));
    server = await startMeasuredServer({ DATABASE_URL: postgres.url, TRUST_PROXY: '1' });
    fresh = await server.scrape();
  });

  beforeEach(async () => {
    beginning = await eventually('all requests before are counted', async () => {
      const scrape = await server.scrape();
      return scrape.series.get('catalog_http_requests_in_flight') === 0 && scrape;
    });
  });

  afterEach(() => release());

  after(async () => {
    await server.stop();
    await db.destroy();
    await postgres.stop('immediate');
  });

  /** Sends requests with the key, one after the other. @returns their statuses */
  async function ask(path: string, options: RequestOptions = {}, times = 1): Promise<number[]> {
    const statuses: number[] = [];
    for (let i = 0; i < times; i += 1) {
      const headers = { authorization: `Bearer ${key}`, ...options.headers };
      statuses.push((await send(server.url, path, { ...options, headers })).status);
    }
    return statuses;
  }

  /** What a test itself has made the server count. */
  function sinceBeginning({ text, series }: Scrape): Scrape {
    const counted = [...series].map(([name, value]): [string, number] => [
      name,
      /_(?:total|count|sum|bucket)(?:\{|$)/.test(name) ? value - (beginning.series.get(name) ?? 0) : value,
    ]);
    return { text, series: new Map(counted) };
  }

  /** Scrapes once so many requests have been counted: their connections close after their answers have come. */
  function scrapeAfter(count: number): Promise<Scrape> {
    return eventually(`${count} requests are counted`, async () => {
      const scrape = sinceBeginning(await server.scrape());
      const total = Object.values(nonZero(scrape, 'catalog_http_requests_total')).reduce((sum, n) => sum + n, 0);
      assert.equal(total, count);
      return scrape;
    });
  }

  /** Sends something that is no request, and reads what comes back. */
  async function sendRaw(bytes: string): Promise<string> {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.end(bytes);
    return readText(socket);
  }

  /** Holds up all reading of the counts. */
  async function holdCounts(): Promise<void> {
    const transaction = await db.transaction();
    release = async () => {
      if (!transaction.isCompleted()) await transaction.rollback();
    };
    await transaction.raw('lock table catalog_counts in access exclusive mode');
  }

  async function waiting(): Promise<number> {
    const { rows } = await db.raw<{ rows: unknown[] }>(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows.length;
  }

  it('count every response by operation and status, exactly', async () => {
    const since = Math.floor(Date.now() / 1000);
    const api = '/api/v1';
    assert.deepEqual(await ask(`${api}/me`, {}, 3), [200, 200, 200]);
    assert.deepEqual(await ask(`${api}/me`, { method: 'HEAD' }), [200]);
    assert.deepEqual(await ask(`${api}/stats`, {}, 2), [200, 200]);
    const { headers } = await send(server.url, `${api}/stats`, { headers: { 'x-api-key': key } });
    assert.deepEqual(await ask(`${api}/stats`, { headers: { 'if-none-match': headers.etag ?? '' } }, 2), [304, 304]);
    assert.deepEqual(await ask(`${api}/changes?since=${since}`, {}, 2), [200, 200]);
    assert.deepEqual(await ask(`${api}/changes`), [400]);
    assert.deepEqual(await ask(`${api}/titles/title-0001`), [200]);
    assert.deepEqual(await ask(`${api}/titles/title-9999`, {}, 2), [404, 404]);
    assert.deepEqual(await ask(`${api}/nope`), [404]);
    assert.deepEqual(await ask('/nope'), [404]);
    assert.deepEqual(await ask('/livez'), [200]);
    assert.deepEqual(await ask(`${api}/me`, { method: 'POST' }, 2), [405, 405]);
    assert.deepEqual(await ask(`${api}/me`, { method: 'GET', headers: { 'content-length': '20000' } }), [413]);
    assert.equal((await send(server.url, `${api}/me`)).status, 401);
    assert.equal((await send(server.url, `${api}/me`, { headers: { 'x-api-key': 'svc_mistyped' } })).status, 401);

    // 30 failed keys get 401, the others 429.
    const unknown = { headers: { authorization: `Bearer ${generateApiKey().key}`, 'x-forwarded-for': '198.51.100.7' } };
    const failed = await ask(`${api}/me`, unknown, 33);
    assert.deepEqual(failed, [...Array<number>(30).fill(401), 429, 429, 429]);

    await setPlan(db, 'tight', { name: 'Tight', requestsPerMinute: 1, requestsPerDay: 5, commercialUse: false });
    const tight = {
      headers: { authorization: `Bearer ${(await createKey(db, { developerId, planId: 'tight' })).key}` },
    };
    assert.deepEqual(await ask(`${api}/me`, tight, 3), [200, 429, 429]);

    assert.match(await sendRaw('GET / HTTP/1.1\nnonsense\r\n\r\n'), /^HTTP\/1\.1 400 /);
    assert.match(await sendRaw(`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`), /^HTTP\/1\.1 431 /);

    const scrape = await scrapeAfter(61);
    assert.deepEqual(nonZero(scrape, 'catalog_http_requests_total'), {
      'catalog_http_requests_total{operation="getMe",status="200"}': 5,
      'catalog_http_requests_total{operation="getStats",status="200"}': 3,
      'catalog_http_requests_total{operation="getStats",status="304"}': 2,
      'catalog_http_requests_total{operation="getChanges",status="200"}': 2,
      'catalog_http_requests_total{operation="getChanges",status="400"}': 1,
      'catalog_http_requests_total{operation="getTitle",status="200"}': 1,
      'catalog_http_requests_total{operation="getTitle",status="404"}': 2,
      'catalog_http_requests_total{operation="none",status="200"}': 1,
      'catalog_http_requests_total{operation="none",status="400"}': 1,
      'catalog_http_requests_total{operation="none",status="401"}': 32,
      'catalog_http_requests_total{operation="none",status="404"}': 2,
      'catalog_http_requests_total{operation="none",status="405"}': 2,
      'catalog_http_requests_total{operation="none",status="413"}': 1,
      'catalog_http_requests_total{operation="none",status="429"}': 5,
      'catalog_http_requests_total{operation="none",status="431"}': 1,
    });
    // All but the two that never became a request.
    assert.deepEqual(nonZero(scrape, 'catalog_http_request_duration_seconds_count'), {
      'catalog_http_request_duration_seconds_count{operation="getMe"}': 5,
      'catalog_http_request_duration_seconds_count{operation="getStats"}': 5,
      'catalog_http_request_duration_seconds_count{operation="getChanges"}': 3,
      'catalog_http_request_duration_seconds_count{operation="getTitle"}': 3,
      'catalog_http_request_duration_seconds_count{operation="none"}': 43,
    });
    assert.deepEqual(nonZero(scrape, 'catalog_rate_limit_decisions_total'), {
      'catalog_rate_limit_decisions_total{counted_in="process",outcome="served"}': 19,
      'catalog_rate_limit_decisions_total{counted_in="process",outcome="refused"}': 2,
    });
    assert.deepEqual(nonZero(scrape, 'catalog_failed_keys_total'), { catalog_failed_keys_total: 33 });
    assert.deepEqual(nonZero(scrape, 'catalog_failed_keys_over_limit_total'), {
      catalog_failed_keys_over_limit_total: 3,
    });
    assert.deepEqual(nonZero(scrape, 'catalog_http_requests_in_flight'), {});
    // Without Redis and a replica there is nothing to say of them.
    assert.deepEqual(
      [...scrape.series].filter(([name]) => /^catalog_(?:component_up|caller_cache)/.test(name)),
      [['catalog_component_up{component="database"}', 1]],
    );
  });

  it('show zero failures of each operation from the start, so that the first failure is an increase', () => {
    const { series } = fresh;
    for (const operation of [...Object.keys(operations), 'none']) {
      for (const status of ['500', '503']) {
        const name = `catalog_http_requests_total{operation="${operation}",status="${status}"}`;
        assert.equal(series.get(name), 0, name);
      }
    }
  });

  for (const [what, field, answered] of [
    ['requests', '', 16],
    // The first answer is the last. It does not ask for the content, which might still come.
    ['requests that offer content', 'Expect: 100-continue\r\n', 1],
  ] as const) {
    it(`count one request in flight, however many ${what} a client sends at once`, async () => {
      const COUNT = 16;
      await holdCounts();
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      const answers = readText(socket);
      const request = `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n${field}`;
      socket.write(`${`${request}\r\n`.repeat(COUNT - 1)}${request}Connection: close\r\n\r\n`);
      const inFlight: number[] = [];
      await eventually('one waits, and no more come', async () => {
        inFlight.push((await server.scrape()).series.get('catalog_http_requests_in_flight') ?? NaN);
        return Math.max(...inFlight) > 0 && inFlight.length > 10;
      });
      await release();
      const statuses = [...(await answers).matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
      assert.equal(statuses.length, answered);
      // First the answers to requests that were held for too long, then the others.
      assert.match(statuses.join(' '), /^(?:503 ?)*(?:200 ?)*$/);
      if (answered > 1) assert.equal(statuses.at(-1), '200');
      assert.equal(Math.max(...inFlight), 1, inFlight.join());
    });
  }

  it('contain no text that a client sent or a developer chose', async () => {
    const secret = key.split('_')[2] ?? assert.fail();
    const odd = `/${key}/..%2f"}\n{#${PROJECT}`.replaceAll('\n', '%0A').replaceAll(' ', '%20');
    for (const path of ['/api/v1/me', `/api/v1/titles/${key}`, `/api/v1/changes?since=${key}`, odd, `/api/v1${odd}`]) {
      for (const headers of [
        { authorization: `Bearer ${key}` },
        { 'x-api-key': key },
        { 'x-api-key': `${key}x`, 'user-agent': key, 'x-request-id': key },
        { 'x-forwarded-for': '203.0.113.77', authorization: `Basic ${key}` },
      ]) {
        await send(server.url, path, { headers: { 'x-forwarded-for': '203.0.113.77', ...headers } });
        await send(server.url, `${path}${path.includes('?') ? '&' : '?'}api_key=${key}`, { headers });
      }
    }
    await sendRaw(`GET /${key} HTTP/9.9\r\n\r\n`);
    const { text } = await scrapeAfter(41);
    for (const hidden of [secret, key.slice(0, 12), PROJECT, 'anzibar', PLAN, '203.0.113', '127.0.0.1', 'titles/']) {
      assert.ok(!text.includes(hidden), hidden);
    }
    const labels = new Set([...text.matchAll(/(?<=[{,])([a-z_]+)="/g)].map(([, label]) => label));
    assert.deepEqual(
      [...labels].sort(),
      [
        'component',
        'counted_in',
        'kind',
        'le',
        'major',
        'minor',
        'operation',
        'outcome',
        'patch',
        'pool',
        'space',
        'state',
      ]
        .concat(['status', 'type', 'version'])
        .sort(),
    );
  });

  it('have no more series after a thousand arbitrary requests', async () => {
    const seriesOf = ({ series }: Scrape): string[] => [...series.keys()].filter((name) => name.startsWith('catalog_'));
    const before = seriesOf(await server.scrape()).length;
    const random = (n: number): number => Math.floor(Math.random() * n);
    const word = (): string => Math.random().toString(36).slice(2);
    const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND', 'TRACE', 'HEAD', 'PURGE'];
    const roots = ['/', '/api/v1/', '/api/v1/titles/', '/api/v1/changes?since=', '/api/v1/me?', '/metrics'];
    const answered = new Set<number>();
    for (let i = 0; i < 50; i += 1) {
      const requests = Array.from({ length: 20 }, () =>
        ask(`${roots[random(roots.length)] ?? ''}${word()}`, {
          method: methods[random(methods.length)] ?? '',
          headers: { [`x-${word()}`]: word(), ...(random(3) === 0 && { authorization: word() }) },
        }),
      );
      for (const [status = 0] of await Promise.all(requests)) answered.add(status);
    }
    const after = seriesOf(await scrapeAfter(1_000));
    assert.ok(answered.size >= 5, [...answered].join());
    assert.ok(after.length - before <= 20, `${before}, then ${after.length}:\n${after.join('\n')}`);
    for (const series of after.filter((name) => name.startsWith('catalog_http_requests_total'))) {
      const [, operation = ''] = /\{operation="(\w+)",status="(?:\d{3}|none)"\}$/.exec(series) ?? [];
      assert.ok(operation === 'none' || operation in operations, series);
    }
  });

  it('count failures: 503 for a locked table, 500 for a missing one, 503 without a database', async () => {
    await holdCounts();
    assert.deepEqual(await ask('/api/v1/stats'), [503]);
    await release();
    await db.raw('alter table catalog_counts rename to elsewhere');
    assert.deepEqual(await ask('/api/v1/stats', {}, 2), [500, 500]);
    await db.raw('alter table elsewhere rename to catalog_counts');
    await postgres.stop('fast');
    assert.deepEqual(await ask('/api/v1/stats', {}, 2), [503, 503]);
    await eventually('the loss is seen', async () => (await server.scrape()).text.includes('{component="database"} 0'));
    const scrape = await scrapeAfter(5);
    assert.deepEqual(nonZero(scrape, 'catalog_http_requests_total'), {
      'catalog_http_requests_total{operation="getStats",status="500"}': 2,
      'catalog_http_requests_total{operation="getStats",status="503"}': 1,
      'catalog_http_requests_total{operation="none",status="503"}': 2,
    });
    await postgres.restart();
  });

  it('show requests in flight, queries that wait for a connection, and clients that left', async () => {
    await server.stop();
    server = await startMeasuredServer({ DATABASE_URL: postgres.url, DATABASE_POOL_SIZE: '2' });
    beginning = await server.scrape();
    const pendingIn = ({ series }: Scrape): number =>
      series.get('catalog_database_connections_pending_requests{pool="primary"}') ?? NaN;
    await holdCounts();
    const patient = ask('/api/v1/stats');
    // Requests that arrive together share a query.
    await eventually('it waits in the database', async () => (await waiting()) === 1);
    const headers = { 'x-api-key': key, 'x-request-id': 'leaving' };
    const leaving = get(`${server.url}/api/v1/stats`, { headers }).on('error', () => undefined);
    await eventually('both wait in the database', async () => (await waiting()) === 2);
    const queued = ask('/api/v1/me');
    const during = await eventually('the third waits for a connection', async () => {
      const scrape = await server.scrape();
      return scrape.series.get('catalog_http_requests_in_flight') === 3 && pendingIn(scrape) > 0 ? scrape : undefined;
    });
    assert.deepEqual(
      [...during.series].filter(([series]) => /^catalog_database_connections(?:_max)?\{/.test(series)),
      [
        ['catalog_database_connections{pool="primary",state="used"}', 2],
        ['catalog_database_connections{pool="primary",state="idle"}', 0],
        ['catalog_database_connections_max{pool="primary"}', 2],
      ],
    );
    // The service's own check of the database may wait as well.
    assert.ok(pendingIn(during) <= 2);
    // A connection that is only ended may still be read from.
    leaving.socket?.resetAndDestroy();
    await eventually('its end is seen', async () => (await server.scrape()).text.includes('status="none"} 1'));
    const line = await eventually('its line is written', () =>
      server.output.stdout.split('\n').find((text) => text.includes('"request_id":"leaving"')),
    );
    const { operation, status, aborted } = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual({ operation, status, aborted }, { operation: 'getStats', status: undefined, aborted: true });
    // It is let go when its own bound has passed, and leaves its connection to the one that waits for it.
    assert.deepEqual(await Promise.all([patient, queued]), [[503], [200]]);
    await release();
    const scrape = await scrapeAfter(3);
    assert.deepEqual(nonZero(scrape, 'catalog_http_requests_total'), {
      'catalog_http_requests_total{operation="getStats",status="none"}': 1,
      'catalog_http_requests_total{operation="getStats",status="503"}': 1,
      'catalog_http_requests_total{operation="getMe",status="200"}': 1,
    });
    const idle = await eventually('all connections are idle', async () => {
      const later = await server.scrape();
      return later.series.get('catalog_database_connections{pool="primary",state="used"}') === 0 ? later : undefined;
    });
    assert.equal(idle.series.get('catalog_http_requests_in_flight'), 0);
    assert.equal(idle.series.get('catalog_database_connections_pending_requests{pool="primary"}'), 0);
  });
});
