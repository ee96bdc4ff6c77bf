import assert from 'node:assert/strict';
import {
  readAllUsageOverTime,
  readUsage,
  readUsageCsv,
  USAGE_RANGES,
  type Usage,
  type UsageOwner,
  type UsageRange,
} from '../../src/usage/read-usage.js';
import { KINDS, OUTCOMES, type UsageCounts } from '../../src/usage/outcome.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { newPlan } from '../support/keys/new-key.js';
import { addUsage, rollUp } from '../support/keys/usage.js';
import { testWorld } from '../support/world.js';

const HOUR_MS = 3_600_000;
const ALL = { limit: 100 };
const NONE = { successful: 0, clientErrors: 0, rateLimited: 0, serverErrors: 0 };

describe('the usage of the keys of a service', () => {
  const world = testWorld();

  function read(
    owner: UsageOwner,
    range: UsageRange = '30d',
    part: Parameters<typeof readUsage>[3] = ALL,
  ): Promise<Usage> {
    return readUsage(world.db, owner, range, part);
  }

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
    const { keys, ways: found } = await read({ developerId: id });
    assert.deepEqual(
      keys.map(({ label, successful, clientErrors, rateLimited, serverErrors }) => [
        label,
        successful,
        clientErrors,
        rateLimited,
        serverErrors,
      ]),
      [['counted', 3, 3, 2, 2]],
    );
    const ways = [
      { operation: 'getMe', outcome: 'success', requests: 3 },
      { operation: 'getTitle', outcome: 'title_not_found', requests: 3 },
      { operation: 'getMe', outcome: 'rate_limit_exceeded', requests: 2 },
      { operation: 'getTitle', outcome: 'internal_error', requests: 2 },
    ] as const;
    const owner = { developerId: id };
    assert.deepEqual(
      found.map(({ operation, outcome, requests }) => ({ operation, outcome, requests })),
      ways,
    );
    // The counts over time of every operation and outcome are those of the table.
    for (const { operation, outcome, requests } of ways) {
      const kind = OUTCOMES[outcome];
      for (const [choice, expected] of [
        [{ outcome }, requests],
        [{ operation }, requests],
        [{ operation, outcome }, requests],
        [{ operation: '', outcome }, 0],
      ] as const) {
        const { buckets } = await read({ ...owner, ...choice }, '7d');
        assert.deepEqual([buckets.length, buckets.at(-1)?.[kind]], [7, expected], `${operation} ${outcome}`);
      }
    }
    const [, line = ''] = await readUsageCsv(world.db, { ...owner, operation: 'getMe' }, '7d');
    assert.match(
      line,
      /^.*,"counted",getMe,rate_limit_exceeded,rate limited,2\r\n.*,"counted",getMe,success,successful,3\r\n$/,
    );
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
    const { ways } = await read({ developerId: id }, '24h');
    assert.deepEqual(
      ways.map(({ operation, outcome, requests }) => [operation, outcome, requests]),
      [
        ['', 'not_found', 1],
        ['', 'rate_limit_exceeded', 1],
        ['getTitle', 'rate_limit_exceeded', 1],
        ['getTitle', 'title_not_found', 1],
      ],
    );
  });

  it('a request writes nothing, and a server that stops saves the last use of valid keys', async () => {
    // Its clock is two hours ahead.
    const service = await world.startService({ now: () => BigInt(Date.now() + 2 * HOUR_MS) * 1000n });
    const unused = await world.newKey();
    for (const key of [service.key, 'wrong']) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    await service.get('/api/v1/me', { headers: {} });
    await service.get('/api/v1/nope');
    assert.deepEqual(
      service.queries.filter((sql) => /\b(?:insert|update|delete|merge)\b/i.test(sql)),
      [],
    );
    const lastUse = async (prefix: string): Promise<string | null | undefined> =>
      (await world.db('api_keys').where({ prefix }).pluck<(string | null)[]>('last_used_at'))[0];
    const used = service.key.slice(0, unused.prefix.length);
    assert.equal(await lastUse(used), null);
    await service.stop();
    const late = Date.now() - Date.parse((await lastUse(used)) ?? assert.fail('never used'));
    assert.ok(Math.abs(late) < HOUR_MS, `${late} ms late`);
    assert.equal(await lastUse(unused.prefix), null);
  });

  it('a running server saves the first use of a key, also of a request over a limit', async () => {
    const service = await world.startService({ jobIntervalMs: 20 });
    const planId = await newPlan(world.db, 'one', 1, 9);
    for (const status of [200, 429]) {
      const developerId = await world.newDeveloper();
      const keys = [await world.newKey({ planId, developerId }), await world.newKey({ planId, developerId })];
      const [{ key, prefix } = assert.fail()] = status === 200 ? keys : keys.toReversed();
      if (status === 429) await service.get('/api/v1/me', { headers: { 'x-api-key': keys[0]?.key ?? '' } });
      assert.equal((await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status, status);
      await eventually(`the use is written, ${status}`, async () => {
        return (await world.db('api_keys').where({ prefix }).whereNotNull('last_used_at')).length === 1;
      });
    }
    await service.stop();
  });

  it('usage is read by hour for 24 hours, and by day for 7 and 30 days, up to the ends of each range', async () => {
    const developerId = await world.newDeveloper();
    const { prefix } = await world.newKey({ developerId, label: 'production' });
    const foreign = await world.newKey();
    await rollUp(world.db);
    await world.db('developer_usage').delete();
    const hour = new Date().getUTCHours();
    /** How many hours ago the first and the last hour of a day were. */
    const first = (days: number): number => hour + days * 24;
    const last = (days: number): number => first(days) - 23;
    const requests: readonly (readonly [hoursAgo: number, counts: Partial<UsageCounts>])[] = [
      [0, { successful: 1 }],
      [23, { clientErrors: 2 }],
      [24, { rateLimited: 4 }],
      [first(6), { serverErrors: 8 }],
      [last(7), { successful: 16 }],
      [first(29), { rateLimited: 32 }],
      [last(30), { successful: 64 }],
    ];
    for (const [hoursAgo, counts] of requests) {
      await addUsage(world.db, prefix, hoursAgo, counts);
      await addUsage(world.db, foreign.prefix, hoursAgo, { successful: 1_000 });
    }
    for (const isRolledUp of [false, true]) {
      if (isRolledUp) await rollUp(world.db);
      for (const range of Object.keys(USAGE_RANGES) as UsageRange[]) {
        const { unit, hours, buckets } = USAGE_RANGES[range];
        const usage = await read({ developerId }, range);
        const expected = Array.from({ length: buckets }, () => ({ ...NONE }));
        for (const [hoursAgo, counts] of requests) {
          const place = unit === 'hour' ? hoursAgo : Math.ceil((hoursAgo - hour) / 24);
          const bucket = expected[buckets - 1 - place];
          for (const [kind, number] of Object.entries(counts)) {
            if (bucket !== undefined) bucket[kind as keyof UsageCounts] += number;
          }
        }
        assert.deepEqual(
          usage.buckets.map(({ successful, clientErrors, rateLimited, serverErrors }) => ({
            successful,
            clientErrors,
            rateLimited,
            serverErrors,
          })),
          expected,
          range,
        );
        const begin = Date.parse(usage.buckets[0]?.start ?? '');
        const present = Math.floor(Date.now() / (hours * HOUR_MS)) * hours * HOUR_MS;
        assert.equal(begin, present - (buckets - 1) * hours * HOUR_MS);
        for (const [index, { start }] of usage.buckets.entries()) {
          assert.equal(Date.parse(start), begin + index * hours * HOUR_MS);
        }
      }
    }
    const all = await readAllUsageOverTime(world.db);
    assert.deepEqual(
      [all.length, all[0]?.clientErrors, all[0]?.successful, all.at(-1)?.successful],
      [24, 2, 1_000, 1_001],
    );
    for (const [range, start] of [
      ['30d', /^\d{4}-\d\d-\d\d$/],
      ['24h', /^\d{4}-\d\d-\d\dT\d\d:00Z$/],
    ] as const) {
      const [heading = '', ...parts] = await readUsageCsv(world.db, { developerId }, range);
      assert.equal(heading, `${range === '24h' ? 'hour' : 'day'},key_prefix,label,operation,outcome,kind,requests\r\n`);
      const sums: Record<string, number> = {};
      for (const line of parts.flatMap((part) => part.trimEnd().split('\r\n'))) {
        const [time = '', itsPrefix, label, operation, outcome, kind = '', requests] = line.split(',');
        assert.match(time, start);
        assert.deepEqual([itsPrefix, label, operation], [prefix, '"production"', 'getMe']);
        assert.ok(outcome);
        sums[kind] = (sums[kind] ?? 0) + Number(requests);
      }
      const { buckets } = await read({ developerId }, range);
      const expected = { successful: 0, rateLimited: 0, clientErrors: 0, serverErrors: 0 };
      for (const kind of KINDS) for (const bucket of buckets) expected[kind] += bucket[kind];
      assert.deepEqual(
        ['successful', 'rate limited', 'client errors', 'server errors'].map((kind) => sums[kind] ?? 0),
        [expected.successful, expected.rateLimited, expected.clientErrors, expected.serverErrors],
      );
    }
    const none = { developerId: await world.newDeveloper() };
    assert.equal((await readUsageCsv(world.db, none, '7d')).length, 1);
    assert.equal((await read(none, '7d')).buckets.length, 7);
  });

  it('a label is a cell of CSV in quotes, and no formula', async () => {
    const developerId = await world.newDeveloper();
    const { prefix } = await world.newKey({ developerId });
    await addUsage(world.db, prefix, 0, { successful: 5 });
    for (const [label, cell] of [
      ['=1+1,"x"', `"'=1+1,""x"""`],
      ['-1', `"'-1"`],
      ['+1', `"'+1"`],
      ['@sum', `"'@sum"`],
      ['1=1', '"1=1"'],
      [null, ''],
    ] as const) {
      await world.db('api_keys').where({ prefix }).update({ label });
      const [, line = ''] = await readUsageCsv(world.db, { developerId }, '30d');
      assert.ok(line.endsWith(`,${prefix},${cell},getMe,success,successful,5\r\n`), line);
    }
  });

  it('the keys of a range are read in parts, the most used first, by what is chosen', async () => {
    const developerId = await world.newDeveloper();
    const prefixes: string[] = [];
    for (const requests of [10, 9, 100]) {
      const { prefix } = await world.newKey({ developerId });
      await addUsage(world.db, prefix, 1, { success: requests, not_found: 101 - requests });
      await addUsage(world.db, prefix, 1, { success: 1 }, 'getTitle');
      prefixes.push(prefix);
    }
    const [a = '', b = '', c = ''] = prefixes;
    const keys = async (choice: Partial<UsageOwner>, part: Parameters<typeof readUsage>[3] = ALL): Promise<unknown[]> =>
      (await read({ developerId, ...choice }, '24h', part)).keys.map((key) => [
        key.keyPrefix,
        key.successful,
        key.clientErrors,
      ]);
    // All have as many requests: the first key comes first.
    assert.deepEqual(await keys({}), [
      [a, 11, 91],
      [b, 10, 92],
      [c, 101, 1],
    ]);
    assert.deepEqual(await keys({ outcome: 'success' }), [
      [c, 101, 0],
      [a, 11, 0],
      [b, 10, 0],
    ]);
    assert.deepEqual(await keys({ outcome: 'success' }, { limit: 1, after: { keyPrefix: c } }), [[a, 11, 0]]);
    assert.deepEqual(await keys({}, { limit: 9, after: { keyPrefix: a } }), [
      [b, 10, 92],
      [c, 101, 1],
    ]);
    assert.deepEqual(await keys({ operation: 'getTitle', keyPrefix: b }), [[b, 1, 0]]);
    assert.deepEqual(await keys({ operation: 'getTitle', outcome: 'not_found' }), []);
    const { ways } = await read({ developerId, keyPrefix: a, operation: 'getTitle' }, '24h');
    assert.deepEqual(
      ways.map(({ operation, outcome, requests }) => [operation, outcome, requests]),
      [
        ['getMe', 'not_found', 91],
        ['getMe', 'success', 10],
        ['getTitle', 'success', 1],
      ],
    );
  });
});
