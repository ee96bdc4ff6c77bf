import assert from 'node:assert/strict';
import { LastHour } from '../../src/operator-pages/status/last-hour.js';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { RequestMetrics } from '../../src/http/telemetry/metrics.js';

const MINUTE_MS = 60_000;

describe('the last hour of a server', () => {
  let metrics: Metrics;
  let requests: RequestMetrics;
  let isRedisUp: boolean;
  let now: number;
  let lastHour: LastHour;

  beforeEach(() => {
    metrics = new Metrics();
    requests = new RequestMetrics(metrics, ['getMe', 'getStats']);
    isRedisUp = true;
    metrics.readGauge({
      name: 'catalog_component_up',
      help: '-',
      labels: ['component'],
      read: () => [{ labels: { component: 'redis' }, value: Number(isRedisUp) }],
    });
    now = 1_000_000;
    lastHour = new LastHour({ text: () => metrics.text() }, () => now);
  });

  function answer(count: number, operation: string | undefined, status: number, seconds = 0.003): void {
    for (let i = 0; i < count; i += 1) {
      requests.begin();
      requests.end(operation, status, seconds);
    }
  }

  async function pass(minutes: number): Promise<void> {
    for (let i = 0; i < minutes; i += 1) {
      now += MINUTE_MS;
      await lastHour.keep();
    }
  }

  it('calls are counted by operation, and those refused before they reached one in the sum alone', async () => {
    answer(90, 'getMe', 200);
    answer(6, 'getStats', 200);
    answer(4, 'getStats', 500);
    answer(7, undefined, 429);
    answer(2, undefined, 401);
    answer(1, undefined, 503);
    // Pages and probes.
    answer(50, undefined, 200);
    const { since, api, operations } = await lastHour.latest();
    assert.equal(since, 1_000_000);
    assert.deepEqual({ ...api, p99: undefined }, { requests: 110, refused: 7, failed: 5, p99: undefined });
    assert.deepEqual(
      [...operations].map(([id, { requests, failed }]) => [id, requests, failed]),
      [
        ['getMe', 90, 0],
        ['getStats', 10, 4],
      ],
    );
  });

  it('the percentile lies within the bucket of the slowest hundredth, as Prometheus estimates it', async () => {
    answer(98, 'getMe', 200, 0.003);
    answer(2, 'getMe', 200, 0.03);
    // Of the hundred, the 99th is the first of two between 20 and 50 ms.
    assert.equal((await lastHour.latest()).api.p99?.toFixed(4), '0.0350');
    assert.equal((await lastHour.latest()).operations.get('getStats')?.p99, undefined);
    answer(10, 'getStats', 200, 7);
    assert.equal((await lastHour.latest()).operations.get('getStats')?.p99, 1, 'the highest bound');
  });

  it('what is older than an hour no longer counts', async () => {
    answer(5, 'getMe', 200);
    await pass(30);
    answer(3, 'getMe', 200);
    assert.equal((await lastHour.latest()).api.requests, 8);
    await pass(30);
    assert.equal((await lastHour.latest()).api.requests, 3);
    assert.equal((await lastHour.latest()).since, 1_000_000 + MINUTE_MS);
    await pass(31);
    assert.equal((await lastHour.latest()).api.requests, 0);
  });

  it('a component is up since the start, and lost since it was first seen so', async () => {
    await pass(2);
    assert.deepEqual([...lastHour.components], [['redis', { state: 'up', since: 1_000_000 }]]);
    isRedisUp = false;
    await pass(3);
    assert.deepEqual(lastHour.components.get('redis'), { state: 'lost', since: 1_000_000 + 3 * MINUTE_MS });
    isRedisUp = true;
    now += 1_000;
    await lastHour.latest();
    assert.deepEqual(lastHour.components.get('redis'), { state: 'up', since: now });
  });
});
