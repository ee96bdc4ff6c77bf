import assert from 'node:assert/strict';
import {
  readUsageByKey,
  readUsageByOutcome,
  readUsageCsv,
  readUsageOverTime,
  USAGE_RANGES,
  type UsageRange,
} from '../../src/usage/read-usage.js';
import { OUTCOMES, type UsageCounts } from '../../src/usage/outcome.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { mergeOldHours, removeOldUsage } from '../../src/usage/write-usage.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { newPlan } from '../support/keys/new-key.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';
import { count } from './count.js';

const HOUR_MS = 3_600_000;
const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;

describe('the usage of keys', () => {
  const world = testWorld();
  let developerId: number;

  before(async () => (developerId = await world.newDeveloper()));

  async function newKey(): Promise<number> {
    const { prefix } = await world.newKey({ developerId });
    return (await world.db('api_keys').where({ prefix }).pluck<number[]>('id'))[0] ?? assert.fail();
  }

  /** Creates keys with these numbers. @returns their ids */
  async function newKeys(first: number, last: number): Promise<number[]> {
    const { rows } = await world.db.raw<{ rows: { id: number }[] }>(
      `insert into api_keys (prefix, hash, developer_id, plan_id)
       select 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), ?, 'free' from generate_series(?::integer, ?) as n
       returning id`,
      [developerId, first, last],
    );
    return rows.map(({ id }) => id);
  }

  /** The rows of a key, oldest first. */
  async function rowsOf(keyId: number): Promise<(UsageCounts & { hour: number })[]> {
    const rows = await world
      .db('api_key_usage')
      .where({ key_id: keyId })
      .orderBy('hour')
      .select<(UsageCounts & { hour: string })[]>('hour', 'served', 'rejected', 'refused', 'failed');
    return rows.map(({ hour, ...counts }) => ({ hour: (Date.parse(hour) - NOW) / HOUR_MS, ...counts }));
  }

  /** The requests of a key by hour, operation and outcome. */
  async function outcomesOf(keyId: number): Promise<number[]> {
    return world.db('api_key_outcomes').where({ key_id: keyId }).orderBy('hour').pluck<number[]>('requests');
  }

  /** @returns how many queries something sends */
  async function queriesOf(act: () => Promise<unknown>): Promise<number> {
    let queries = 0;
    const note = (): void => void (queries += 1);
    world.db.on('query', note);
    await act();
    world.db.off('query', note);
    return queries;
  }

  it('usage is counted by hour and by how requests ended', async () => {
    const keyId = await newKey();
    const usage = new UsageCounter();
    for (const status of [200, 200, 304, 404, 400, undefined, 429, 429, 500, 503, 503]) {
      count(usage, keyId, status, NOW + HOUR_MS - 1);
    }
    count(usage, keyId, 200, NOW - 1);
    count(usage, keyId, 200, NOW - HOUR_MS);
    await usage.flush(world.db);
    assert.deepEqual(await rowsOf(keyId), [
      { hour: -1, served: 2, rejected: 0, refused: 0, failed: 0 },
      { hour: 0, served: 3, rejected: 3, refused: 2, failed: 3 },
    ]);
  });

  it('the usage of thousands of keys is written in one statement, and nothing is written without usage', async () => {
    const keys = await newKeys(1, 4_000);
    const usage = new UsageCounter();
    for (let round = 0; round < 50; round += 1) for (const id of keys) count(usage, id, 200, NOW);
    assert.equal(await queriesOf(async () => assert.equal(await usage.flush(world.db), 4_000)), 1);
    assert.equal(await queriesOf(() => usage.flush(world.db)), 0);
    const { rows } = await world.db.raw<{ rows: object[] }>(
      'select distinct served from api_key_usage where key_id = any(?)',
      [keys],
    );
    assert.deepEqual(rows, [{ served: 50 }]);
  });

  it('usage adds up when processes write the same keys at the same time', async () => {
    const keys = await newKeys(4_001, 4_500);
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(
        [keys, keys.toReversed(), keys, keys.toReversed()].map((order) => {
          const usage = new UsageCounter();
          for (const keyId of order) count(usage, keyId, 200, NOW);
          return usage.flush(world.db);
        }),
      );
    }
    for (const keyId of [keys[0], keys.at(-1)]) assert.equal((await rowsOf(keyId ?? 0))[0]?.served, 40);
  });

  it('a server whose PostgreSQL answers and refuses to write reports that once, counts failed changes, and saves usage later', async () => {
    const service = await world.startService({ flushIntervalMs: 20, settings: { METRICS_ADDRESS: '127.0.0.1:0' } });
    const { key, prefix } = await world.newKey({ developerId });
    const headers = { 'content-type': 'application/json' };
    const revoke = async (): Promise<number> =>
      (await send(service.url, '/revoke-leaked-key', { method: 'POST', headers, body: JSON.stringify({ key }) }))
        .status;
    const reports = (): unknown[] =>
      service.logged
        .filter((line) => line.includes('the usage of keys'))
        .map((line) => (JSON.parse(line) as { msg: string }).msg);
    const cannotSave = 'could not save the usage of keys; trying again until it can';
    // As a full disk does.
    await world.db.raw(`
      create function refuse_to_write() returns trigger language plpgsql as $$
      begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
      create trigger refuse before insert on api_key_usage execute function refuse_to_write();
      create trigger refuse before update on api_keys execute function refuse_to_write()`);
    assert.equal((await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status, 200);
    await eventually('the failure is reported', () => reports().length > 0);
    assert.equal(await revoke(), 503);
    assert.equal((await service.get('/readyz')).status, 200);
    const { series } = await scrape(`${service.operatorUrl}/metrics`);
    assert.equal(series.get('catalog_usage_rows_waiting'), 1);
    await eventually('the failed revocation is counted', async () => {
      const { series: now } = await scrape(`${service.operatorUrl}/metrics`);
      return now.get('catalog_http_changes_failed_total') === 1;
    });
    await world.db.raw('drop function refuse_to_write cascade');
    await eventually('the usage is saved', () => reports().length > 1);
    assert.deepEqual(reports(), [cannotSave, 'the usage of keys is saved again']);
    assert.equal(await revoke(), 200);
    const [id = 0] = await world.db('api_keys').where({ prefix }).pluck<number[]>('id');
    assert.equal((await rowsOf(id))[0]?.served, 1);
    await service.stop();
  });

  it('a server that stops writes how every request with a valid key ended', async () => {
    const service = await world.startService();
    const id = await world.newDeveloper();
    const planId = await newPlan(world.db, 'counted', 8, 100);
    const { key } = await world.newKey({ developerId: id, planId, label: 'counted' });
    const ask = async (requests: number, path: string, as = key): Promise<number[]> => {
      const headers = { 'x-api-key': as };
      const replies = Array.from({ length: requests }, () => service.get(`/api/v1${path}`, { headers }));
      return (await Promise.all(replies)).map(({ status }) => status).sort();
    };
    // A fault of the service: a table that it reads is missing.
    await world.db.raw('alter table titles rename to away');
    assert.deepEqual(await ask(2, '/titles/a'), [500, 500]);
    await world.db.raw('alter table away rename to titles');
    assert.deepEqual(await ask(3, '/titles/a'), [404, 404, 404]);
    assert.deepEqual(await ask(5, '/me'), [200, 200, 200, 429, 429]);
    assert.deepEqual(await ask(1, '/me', 'svc_wrong'), [401]);
    await service.stop();
    const totals = await readUsageByKey(world.db, { developerId: id }, '30d', { limit: 10, offset: 0 });
    assert.deepEqual(
      totals.map(({ label, keyPrefix: _, ...counts }) => [label, counts]),
      [['counted', { served: 3, rejected: 3, refused: 2, failed: 2 }]],
    );
    const ways = [
      { operation: 'getMe', outcome: 'success', requests: 3 },
      { operation: 'getTitle', outcome: 'title_not_found', requests: 3 },
      { operation: 'getMe', outcome: 'rate_limit_exceeded', requests: 2 },
      { operation: 'getTitle', outcome: 'internal_error', requests: 2 },
    ] as const;
    const owner = { developerId: id };
    assert.deepEqual(await readUsageByOutcome(world.db, owner, '24h'), ways);
    // The counts over time of every operation and outcome are those of the table.
    for (const { operation, outcome, requests } of ways) {
      const kind = OUTCOMES[outcome];
      for (const [choice, expected] of [
        [{ outcome }, requests],
        [{ operation }, requests],
        [{ operation, outcome }, requests],
        [{ operation: '', outcome }, 0],
      ] as const) {
        const buckets = await readUsageOverTime(world.db, { ...owner, ...choice }, '7d');
        assert.deepEqual([buckets.length, buckets.at(-1)?.[kind]], [7, expected], `${operation} ${outcome}`);
      }
    }
    const [, line = ''] = await readUsageCsv(world.db, { ...owner, operation: 'getMe' });
    assert.match(line, /,"counted",3,2,0,0\r\n$/);
  });

  it('a request counts as the operation of its path also when a limit refuses it, and as no operation elsewhere', async () => {
    const service = await world.startService({ settings: { METRICS_ADDRESS: '127.0.0.1:0' } });
    const id = await world.newDeveloper();
    const { key } = await world.newKey({ developerId: id, planId: await newPlan(world.db, 'narrow', 2, 100) });
    for (const path of ['/api/v1/nope', '/api/v1/titles/a', '/api/v1/titles/a', '/api/v1/nope']) {
      await service.get(path, { headers: { 'x-api-key': key } });
    }
    const { series } = await scrape(`${service.operatorUrl}/metrics`);
    assert.equal(series.get('catalog_http_requests_total{operation="getTitle",status="429"}'), 1);
    await service.stop();
    assert.deepEqual(await readUsageByOutcome(world.db, { developerId: id }, '24h'), [
      { operation: '', outcome: 'not_found', requests: 1 },
      { operation: '', outcome: 'rate_limit_exceeded', requests: 1 },
      { operation: 'getTitle', outcome: 'rate_limit_exceeded', requests: 1 },
      { operation: 'getTitle', outcome: 'title_not_found', requests: 1 },
    ]);
  });

  it('usage that could not be written is added to later usage', async () => {
    const keyId = await newKey();
    const usage = new UsageCounter();
    count(usage, keyId, 200, NOW);
    await world.db.raw('alter table api_key_usage rename to away');
    try {
      await assert.rejects(usage.flush(world.db), { code: '42P01' });
      const flushed = usage.flush(world.db);
      count(usage, keyId, 200, NOW);
      count(usage, keyId, 500, NOW);
      await assert.rejects(flushed, { code: '42P01' });
      count(usage, keyId, 429, NOW);
    } finally {
      await world.db.raw('alter table away rename to api_key_usage');
    }
    for (const rows of [3, 0]) {
      assert.equal(await usage.flush(world.db), rows);
      assert.deepEqual(await rowsOf(keyId), [{ hour: 0, served: 2, rejected: 0, refused: 1, failed: 1 }]);
    }
  });

  it('usage of a deleted key does not stop the usage of others from being written', async () => {
    const [gone, keyId] = [await newKey(), await newKey()];
    const usage = new UsageCounter();
    count(usage, gone, 200, NOW);
    count(usage, keyId, 200, NOW);
    await world.db('api_keys').where({ id: gone }).delete();
    await usage.flush(world.db);
    assert.equal((await rowsOf(keyId))[0]?.served, 1);
  });

  it('usage of a process whose clock is ahead counts in the present hour of the database', async () => {
    const keyId = await newKey();
    const usage = new UsageCounter();
    count(usage, keyId, 200, NOW);
    count(usage, keyId, 200, NOW + 30 * HOUR_MS);
    await usage.flush(world.db);
    const rows = await rowsOf(keyId);
    assert.equal(
      rows.reduce((sum, { served }) => sum + served, 0),
      2,
    );
    assert.ok(rows.every(({ hour }) => hour <= 1));
  });

  it('usage is kept for 35 days', async () => {
    const keyId = await newKey();
    const usage = new UsageCounter();
    for (const days of [0, 34, 36, 400]) count(usage, keyId, 200, NOW - days * 24 * HOUR_MS);
    await usage.flush(world.db);
    assert.equal(await removeOldUsage(world.db), 2 * 2);
    assert.equal((await outcomesOf(keyId)).length, 2);
    assert.deepEqual(
      (await rowsOf(keyId)).map(({ hour }) => hour),
      [-34 * 24, 0],
    );
  });

  it('usage of days that are not read by the hour is merged by the day, and no request is lost or added', async () => {
    const keys = await newKeys(5_001, 5_060);
    const usage = new UsageCounter();
    const today = Math.floor(NOW / (24 * HOUR_MS)) * 24 * HOUR_MS;
    for (const keyId of keys) {
      for (let hour = -5 * 24; hour <= 0; hour += 1) {
        count(usage, keyId, 200, today + hour * HOUR_MS);
        count(usage, keyId, 429, today + hour * HOUR_MS);
        count(usage, keyId, 500, today + hour * HOUR_MS);
      }
    }
    await usage.flush(world.db);
    // Two servers at the same time.
    const merged = await Promise.all([mergeOldHours(world.db), mergeOldHours(world.db)]);
    assert.equal(merged[0] + merged[1] + (await mergeOldHours(world.db)), keys.length * 2 * 23 * (1 + 3));
    assert.equal(await mergeOldHours(world.db), 0);
    const startOfToday = (today - NOW) / HOUR_MS;
    const day = { served: 24, rejected: 0, refused: 24, failed: 24 };
    const hour = { served: 1, rejected: 0, refused: 1, failed: 1 };
    for (const keyId of [keys[0], keys.at(-1)]) {
      const rows = (await rowsOf(keyId ?? 0)).map((row) => ({ ...row, hour: row.hour - startOfToday }));
      assert.deepEqual(rows, [
        { ...day, hour: -5 * 24 },
        { ...day, hour: -4 * 24 },
        ...Array.from({ length: 3 * 24 + 1 }, (_, i) => ({ ...hour, hour: i - 3 * 24 })),
      ]);
      const outcomes = [2 * 3, 3 * (3 * 24 + 1)].map((length, index) =>
        Array<number>(length).fill(index === 0 ? 24 : 1),
      );
      assert.deepEqual(await outcomesOf(keyId ?? 0), outcomes.flat());
    }
  });

  it('usage is read by hour for 24 hours, and by day for 7 and 30 days, for the keys of one developer', async () => {
    const id = await world.newDeveloper();
    const own = await world.newKey({ developerId: id, label: 'production' });
    const [keyId = 0] = await world.db('api_keys').where({ prefix: own.prefix }).pluck<number[]>('id');
    const today = Date.parse(new Date(NOW).toISOString().slice(0, 10));
    const at = (days: number): number => today - days * 24 * HOUR_MS;
    const usage = new UsageCounter();
    count(usage, keyId, 200, at(0));
    count(usage, keyId, 429, at(1) + 23 * HOUR_MS);
    count(usage, keyId, 500, at(1));
    count(usage, keyId, 200, at(29));
    count(usage, keyId, 200, at(30) + 23 * HOUR_MS);
    count(usage, await newKey(), 200, at(0));
    await usage.flush(world.db);
    const owner = { developerId: id };
    const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
    /** The buckets with requests, by how many buckets they are before the present one. */
    const read = async (range: UsageRange): Promise<unknown> => {
      const { unit, buckets } = USAGE_RANGES[range];
      const length = unit === 'hour' ? HOUR_MS : 24 * HOUR_MS;
      const rows = await readUsageOverTime(world.db, owner, range);
      assert.equal(rows.length, buckets);
      const present = unit === 'hour' ? NOW : today;
      assert.equal(Date.parse(rows.at(-1)?.start ?? ''), present - (present % length));
      return rows.flatMap(({ start, ...counts }, index) => {
        assert.equal(Date.parse(start), Date.parse(rows[0]?.start ?? '') + index * length);
        const { served, refused, failed } = counts;
        return served + refused + failed === 0 ? [] : { ago: buckets - 1 - index, ...counts };
      });
    };
    const recent = [
      { ago: 1, served: 0, rejected: 0, refused: 1, failed: 1 },
      { ago: 0, served: 1, rejected: 0, refused: 0, failed: 0 },
    ];
    assert.deepEqual(await read('30d'), [{ ago: 29, served: 1, rejected: 0, refused: 0, failed: 0 }, ...recent]);
    assert.deepEqual(await read('7d'), recent);
    const hour = new Date(NOW).getUTCHours();
    assert.deepEqual(
      await read('24h'),
      [
        // The last hour of yesterday, unless that is too long ago.
        { ago: hour + 1, served: 0, rejected: 0, refused: 1, failed: 0 },
        { ago: hour, served: 1, rejected: 0, refused: 0, failed: 0 },
      ].filter(({ ago }) => ago < 24),
    );
    const [heading = '', ...lines] = await readUsageCsv(world.db, owner);
    assert.deepEqual(lines, [
      `${dayOf(at(29))},${own.prefix},"production",1,0,0,0\r\n`,
      `${dayOf(at(1))},${own.prefix},"production",0,1,1,0\r\n`,
      `${dayOf(at(0))},${own.prefix},"production",1,0,0,0\r\n`,
    ]);
    const none = { developerId: await world.newDeveloper() };
    assert.deepEqual(await readUsageCsv(world.db, none), [heading]);
    assert.equal((await readUsageOverTime(world.db, none, '7d')).length, 7);
  });
});
