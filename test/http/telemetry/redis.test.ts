import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { MirrorStatus } from '../../../src/commands/mirrors/mirror-status.js';
import { newPlan } from '../../support/keys/new-key.js';
import { readAlerts, readDashboardQueries, selectorsIn } from '../../deploy/monitoring.js';
import { versionKey } from '../../../src/admission/versions.js';
import { eventually } from '../../support/eventually.js';
import { send } from '../../support/request.js';
import { nonZero, scrape, type Scrape } from '../../support/http/exposition.js';
import { testWorld } from '../../support/world.js';

describe('metrics with Redis and a replica', () => {
  const world = testWorld({
    redis: true,
    service: {
      settings: {
        METRICS_ADDRESS: '127.0.0.1:0',
        // Nothing listens there: the replica is lost from the start.
        DATABASE_READ_URL: 'postgres://nobody@127.0.0.1:1/nothing',
        // For the metrics of notices. Nothing listens there either.
        NOTIFY_URL: 'http://127.0.0.1:1/',
        NOTIFY_SECRET: `whsec_${'A'.repeat(32)}`,
        // For the metric of published copies. There are none.
        COPIES_DIR: '/nonexistent',
      },
    },
  });
  let key: string;
  let developerId: number;

  before(
    async () =>
      ({ key, developerId } = await world.newKey({ planId: await newPlan(world.db, 'roomy', 1_000, 10_000) })),
  );

  const scrapeAll = (): Promise<Scrape> => scrape(`${world.service.operatorUrl}/metrics`);

  async function request(path: string, times = 1, apiKey = key): Promise<void> {
    for (let i = 0; i < times; i += 1) {
      const { status } = await send(world.service.url, `/api/v1${path}`, { headers: { 'x-api-key': apiKey } });
      assert.equal(status, apiKey === key ? 200 : 429);
    }
  }

  /** The series about the state of the service. */
  function stateOf({ series }: Scrape): Record<string, number> {
    return Object.fromEntries(
      [...series].filter(([name]) =>
        /^catalog_(?:component_up|rate_limit_decisions_total|caller_cache_\w+)(?:\{|$)/.test(name),
      ),
    );
  }

  const up = (component: string): string => `catalog_component_up{component="${component}"}`;
  const decided = (where: string, outcome: string): string =>
    `catalog_rate_limit_decisions_total{counted_in="${where}",outcome="${outcome}"}`;
  const looked = (result: string): string => `catalog_caller_cache_lookups_total{result="${result}"}`;

  it('lookups in the cache and decisions of the limits are counted', async () => {
    await request('/me', 10);
    const { key: small } = await world.newKey({ planId: await newPlan(world.db, 'none', 1, 1) });
    assert.equal((await send(world.service.url, '/api/v1/me', { headers: { 'x-api-key': small } })).status, 200);
    await request('/me', 3, small);
    const state = stateOf(await scrapeAll());
    // The database announced the new plan and key, which emptied the cache.
    const { [looked('miss')]: misses = 0, [looked('hit')]: hits = 0, [looked('stale')]: stale = 0, ...others } = state;
    assert.deepEqual(others, {
      [up('database')]: 1,
      [up('redis')]: 1,
      [up('announcements')]: 1,
      [up('replica')]: 0,
      [decided('redis', 'served')]: 11,
      [decided('redis', 'refused')]: 3,
      [decided('process', 'served')]: 0,
      [decided('process', 'refused')]: 0,
      catalog_caller_cache_records: others.catalog_caller_cache_records,
      catalog_caller_cache_open: 1,
    });
    assert.equal(hits + misses, 14);
    assert.ok(hits >= 9 && misses >= 2, JSON.stringify({ hits, misses }));
    assert.equal(stale, 0);
  });

  it('the alerts and the dashboard use only metrics and labels that servers export', async () => {
    // Those without a value here have no labels.
    const text = (await scrapeAll()).text + (await new MirrorStatus().metrics.text());
    const samples = text.matchAll(/^(?:# TYPE (?=\S+ (?:gauge|counter)))?(\w+)(?:\{(.*)\})? /gm);
    const exported = new Map([...samples].map(([, name = '', labels = '']) => [name, labels]));
    const queries = [...(await readAlerts()).map(({ expr }) => expr), ...(await readDashboardQueries())];
    const selectors = queries.flatMap(selectorsIn);
    assert.ok(selectors.length > 0);
    for (const { metric, labels } of selectors) {
      const exportedLabels = exported.get(metric) ?? assert.fail(`no server exports ${metric}`);
      for (const label of labels) assert.match(exportedLabels, new RegExp(`\\b${label}="`), metric);
    }
  });

  it('a lookup whose record has another version counts as stale', async () => {
    await eventually('the key is cached', async () => {
      const hits = async (): Promise<number> => (await scrapeAll()).series.get(looked('hit')) ?? 0;
      const before = await hits();
      await request('/me');
      return (await hits()) === before + 1;
    });
    const before = stateOf(await scrapeAll());
    assert.ok((before.catalog_caller_cache_records ?? 0) >= 1);
    const direct = new Redis(world.redis.url);
    await direct.set(versionKey(developerId), 'another');
    direct.disconnect();
    await request('/me', 3);
    const after = stateOf(await scrapeAll());
    assert.deepEqual(
      ['stale', 'miss', 'hit'].map((result) => (after[looked(result)] ?? 0) - (before[looked(result)] ?? 0)),
      [1, 0, 2],
    );
    assert.equal(after.catalog_caller_cache_records, before.catalog_caller_cache_records);
  });

  it('the connections of the replica are shown like those of the primary', async () => {
    const pools = [...(await scrapeAll()).series.keys()].filter((name) =>
      name.startsWith('catalog_database_connections'),
    );
    const ofReplica = pools.filter((name) => name.includes('pool="replica"'));
    assert.ok(ofReplica.length > 0);
    for (const name of ofReplica) assert.ok(pools.includes(name.replace('"replica"', '"primary"')), name);
  });

  it('the loss and the return of Redis are shown, and the limits meanwhile count in the process', async () => {
    const before = stateOf(await scrapeAll());
    await world.redis.kill();
    await eventually('the loss is seen', async () => (await scrapeAll()).series.get(up('redis')) === 0);
    const shard = 'catalog_redis_shard_up{node="redis"}';
    assert.equal((await scrapeAll()).series.get(shard), 0);
    await request('/me', 4);
    const during = stateOf(await scrapeAll());
    assert.equal(during[decided('process', 'served')], 4);
    assert.equal(during[decided('redis', 'served')], before[decided('redis', 'served')]);
    assert.equal(during[up('announcements')], 1);

    await world.redis.restart();
    await eventually('it is back', async () => (await scrapeAll()).series.get(up('redis')) === 1);
    assert.equal((await scrapeAll()).series.get(shard), 1);
    await request('/me', 3);
    const after = await scrapeAll();
    assert.deepEqual(nonZero(after, 'catalog_rate_limit_decisions_total'), {
      [decided('redis', 'served')]: (before[decided('redis', 'served')] ?? 0) + 3,
      [decided('redis', 'refused')]: before[decided('redis', 'refused')],
      [decided('process', 'served')]: 4,
    });
  });
});
