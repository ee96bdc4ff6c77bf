import assert from 'node:assert/strict';
import { get } from 'node:http';
import { operations } from '../../../src/api/index.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { newPlan } from '../../support/keys/new-key.js';
import { eventually } from '../../support/eventually.js';
import { converse } from '../../support/http/conversation.js';
import { send, type RequestOptions } from '../../support/request.js';
import { addTitles } from '../../support/titles.js';
import { nonZero, scrape, type Scrape } from '../../support/http/exposition.js';
import type { TestService } from '../../support/service.js';
import { testWorld } from '../../support/world.js';

const PROJECT = 'Zanzibar film club';
const PLAN = 'plan-of-zanzibar';

/** Requests that are sent so many times each with a valid key, and the operation and the status that count them. */
const REQUESTS: readonly (readonly [
  count: number,
  path: string,
  operation: string,
  status: number,
  RequestOptions?,
])[] = [
  [3, '/api/v1/me', 'getMe', 200],
  [1, '/api/v1/me', 'getMe', 200, { method: 'HEAD' }],
  [2, '/api/v1/stats', 'getStats', 200],
  [2, '/api/v1/stats', 'getStats', 304, { headers: { 'if-none-match': '*' } }],
  [2, `/api/v1/changes?since=${Math.floor(Date.now() / 1000)}`, 'getChanges', 200],
  [1, '/api/v1/changes', 'getChanges', 400],
  [1, '/api/v1/titles/title-0001', 'getTitle', 200],
  [2, '/api/v1/titles/title-9999', 'getTitle', 404],
  [1, '/api/v1/nope', 'none', 404],
  [1, '/nope', 'none', 404],
  [1, '/livez', 'probe', 200],
  [1, '/readyz?full', 'probe', 200],
  [2, '/api/v1/me', 'none', 405, { method: 'POST' }],
  [1, '/api/v1/me', 'none', 413, { headers: { 'content-length': '20000' } }],
  [1, '/api/v1/me', 'none', 401, { headers: { authorization: '' } }],
  [1, '/api/v1/me', 'none', 401, { headers: { authorization: 'Bearer svc_mistyped' } }],
];

/** Messages that are not requests, and their statuses. */
const MESSAGES = [
  ['GET / HTTP/1.1\nnonsense\r\n\r\n', 400],
  [`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
] as const;

describe('the metrics of requests', () => {
  const world = testWorld();
  let service: TestService;
  /** Before the requests of a test. */
  let beginning: Scrape;
  let key: string;
  let developerId: number;

  before(async () => {
    const { db } = world;
    await addTitles(db, 3);
    developerId = await world.newDeveloper(PROJECT);
    ({ key } = await world.newKey({ developerId, planId: await newPlan(db, PLAN) }));
    const settings = { SITE: 'off', METRICS_ADDRESS: '127.0.0.1:0', DATABASE_POOL_SIZE: '2' };
    service = await world.startService({ trustedProxies: 1, settings });
  });

  const scrapeAll = (): Promise<Scrape> => scrape(`${service.operatorUrl}/metrics`);

  beforeEach(async () => {
    beginning = await eventually('all requests before are counted', async () => {
      const now = await scrapeAll();
      return now.series.get('catalog_http_requests_in_flight') === 0 && now;
    });
  });

  async function statusOf(path: string, { headers, ...options }: RequestOptions = {}): Promise<number> {
    return (await send(service.url, path, { headers: { authorization: `Bearer ${key}`, ...headers }, ...options }))
      .status;
  }

  /** Returns what was counted since the test began, once so many requests are: a connection closes after its answer. */
  function scrapeAfter(count: number): Promise<Scrape> {
    return eventually(`${count} requests are counted`, async () => {
      const { text, series } = await scrapeAll();
      const counted = [...series].map(([name, value]): [string, number] => [
        name,
        /_(?:total|count|sum|bucket)(?:\{|$)/.test(name) ? value - (beginning.series.get(name) ?? 0) : value,
      ]);
      const since = { text, series: new Map(counted) };
      const total = Object.values(nonZero(since, 'catalog_http_requests_total')).reduce((sum, n) => sum + n, 0);
      assert.equal(total, count);
      return since;
    });
  }

  it('every operation has zero failures from the start, so that the first failure is an increase', () => {
    for (const operation of [...Object.keys(operations), 'none', 'probe']) {
      for (const status of ['500', '503']) {
        const name = `catalog_http_requests_total{operation="${operation}",status="${status}"}`;
        assert.equal(beginning.series.get(name), 0, name);
      }
    }
  });

  it('only requests outside the API count as changes that failed', async () => {
    const headers = { 'content-type': 'application/json' };
    await world.db.raw('alter table api_keys rename to away');
    try {
      assert.equal(await statusOf('/api/v1/me', { method: 'POST' }), 500);
      assert.equal(
        await statusOf('/revoke-leaked-key', { method: 'POST', headers, body: JSON.stringify({ key }) }),
        500,
      );
    } finally {
      await world.db.raw('alter table away rename to api_keys');
    }
    assert.equal((await scrapeAfter(2)).series.get('catalog_http_changes_failed_total'), 1);
  });

  it('each request is counted once, by its operation and its status', async () => {
    const totals: Record<string, number> = {};
    const durations: Record<string, number> = {};
    const count = (operation: string, status: number, times = 1): void => {
      const name = `catalog_http_requests_total{operation="${operation}",status="${status}"}`;
      totals[name] = (totals[name] ?? 0) + times;
      const duration = `catalog_http_request_duration_seconds_count{operation="${operation}"}`;
      durations[duration] = (durations[duration] ?? 0) + times;
    };
    for (const [times, path, operation, status, options] of REQUESTS) {
      for (let i = 0; i < times; i += 1) assert.equal(await statusOf(path, options), status);
      count(operation, status, times);
    }
    const unknown = { headers: { authorization: `Bearer ${generateApiKey().key}`, 'x-forwarded-for': '198.51.100.7' } };
    for (let i = 0; i < 33; i += 1) {
      const status = i < 30 ? 401 : 429;
      assert.equal(await statusOf('/api/v1/me', unknown), status);
      count('none', status);
    }
    const tight = await world.newKey({ developerId, planId: await newPlan(world.db, 'tight', 1, 5) });
    for (const status of [200, 429, 429]) {
      assert.equal(await statusOf('/api/v1/me', { headers: { authorization: `Bearer ${tight.key}` } }), status);
      count('getMe', status);
    }
    const scraped = { ...durations };
    for (const [bytes, status] of MESSAGES) {
      assert.deepEqual((await converse(service.url, bytes)).statuses, [status]);
      count('none', status);
    }
    const counted = await scrapeAfter(Object.values(totals).reduce((sum, n) => sum + n, 0));
    assert.deepEqual(nonZero(counted, 'catalog_http_requests_total'), totals);
    // Messages that are not requests have no duration.
    assert.deepEqual(nonZero(counted, 'catalog_http_request_duration_seconds_count'), scraped);
    const decisions = 'catalog_rate_limit_decisions_total';
    assert.deepEqual(nonZero(counted, decisions), {
      [`${decisions}{counted_in="process",outcome="served"}`]: 18,
      [`${decisions}{counted_in="process",outcome="refused"}`]: 2,
    });
    const failedKeys = 'catalog_failed_keys_total';
    assert.deepEqual(nonZero(counted, failedKeys), { [`${failedKeys}{reason="unknown"}`]: 33 });
    assert.equal(counted.series.get('catalog_failed_keys_over_limit_total'), 3);
    // Without Redis and a replica, they have no series.
    assert.deepEqual(
      [...counted.series].filter(([name]) => /^catalog_(?:component_up|caller_cache)/.test(name)),
      [['catalog_component_up{component="database"}', 1]],
    );
  });

  it('neither a client nor a developer can put text into the metrics or add series', async () => {
    const secret = key.slice('svc_12345678_'.length);
    const seriesOf = ({ series }: Scrape): string[] => [...series.keys()].filter((name) => name.startsWith('catalog_'));
    const roots = ['/', '/api/v1/', '/api/v1/titles/', '/api/v1/changes?since=', '/api/v1/me?api_key=', '/metrics'];
    const texts = [key, `${key}x`, `..%2f"}%0A{#${PROJECT.replaceAll(' ', '%20')}`, 'word-1', 'word-2'];
    const methods = ['GET', 'PROPFIND'];
    const requests = roots.flatMap((root) => texts.flatMap((text) => methods.map((method) => [root + text, method])));
    for (const [path = '', method = ''] of requests) {
      const headers = { 'user-agent': key, 'x-request-id': key, 'x-forwarded-for': '203.0.113.77' };
      await statusOf(path, { method, headers });
    }
    await converse(service.url, `GET /${key} HTTP/9.9\r\n\r\n`);
    const counted = await scrapeAfter(requests.length + 1);
    for (const hidden of [secret, key.slice(0, 12), 'anzibar', PLAN, '203.0.113', '127.0.0.1', 'titles/', 'word']) {
      assert.ok(!counted.text.includes(hidden), hidden);
    }
    const more = seriesOf(counted).filter((name) => !beginning.series.has(name));
    for (const series of more) {
      const [, operation = ''] = /^catalog_http_requests_total\{operation="(\w+)",status="\d{3}"\}$/.exec(series) ?? [];
      assert.ok(['none', 'probe'].includes(operation) || operation in operations, series);
    }
  });

  it('requests in flight, queries that wait for a connection, and clients that have left are counted', async () => {
    const valueOf = async (name: string): Promise<number> => (await scrapeAll()).series.get(name) ?? NaN;
    const connections = (state: string): string => `catalog_database_connections{pool="primary",state="${state}"}`;
    const pending = 'catalog_database_connections_pending_requests{pool="primary"}';
    const inFlight = 'catalog_http_requests_in_flight';
    const waiting = async (): Promise<number> => {
      const { rows } = await world.db.raw<{ rows: unknown[] }>(
        "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
      );
      return rows.length;
    };
    const lock = await world.db.transaction();
    await lock.raw('lock table catalog_counts in access exclusive mode');
    const patient = statusOf('/api/v1/stats');
    // Requests that arrive together would share a query.
    await eventually('it waits in the database', async () => (await waiting()) === 1);
    const headers = { 'x-api-key': key, 'x-request-id': 'leaving' };
    const leaving = get(`${service.url}/api/v1/stats`, { headers }).on('error', () => undefined);
    await eventually('both wait in the database', async () => (await waiting()) === 2);
    const queued = statusOf('/api/v1/me');
    await eventually(
      'the third waits for a connection',
      async () => (await valueOf(inFlight)) === 3 && (await valueOf(pending)) > 0,
    );
    assert.equal(await valueOf('catalog_database_connections_max{pool="primary"}'), 2);
    assert.deepEqual([await valueOf(connections('used')), await valueOf(connections('idle'))], [2, 0]);
    // A client that only ends its side may still read.
    leaving.socket?.resetAndDestroy();
    const line = await eventually('its line is written', () =>
      service.logged.find((text) => text.includes('"request_id":"leaving"')),
    );
    const { operation, status, aborted } = JSON.parse(line) as Record<string, unknown>;
    assert.deepEqual({ operation, status, aborted }, { operation: 'getStats', status: undefined, aborted: true });
    await lock.rollback();
    assert.deepEqual(await Promise.all([patient, queued]), [200, 200]);
    await eventually('all connections are idle', async () => (await valueOf(connections('used'))) === 0);
    assert.deepEqual([await valueOf(inFlight), await valueOf(pending)], [0, 0]);
    const name = 'catalog_http_requests_total{operation="getStats",status="none"}';
    assert.equal(await valueOf(name), 1);
  });
});
