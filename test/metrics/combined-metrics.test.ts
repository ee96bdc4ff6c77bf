import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { FailedAttempts } from '../../src/admission/failed-attempts.js';
import { CombinedMetrics, type MetricsMember } from '../../src/platform/telemetry/combined-metrics.js';
import { Metrics, type MetricsSnapshot } from '../../src/platform/telemetry/metrics.js';
import { Health } from '../../src/platform/telemetry/health.js';
import { createMetrics } from '../../src/service/metrics.js';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { eventually } from '../support/eventually.js';
import { ROOT } from '../support/guides.js';
import { parse } from '../support/http/exposition.js';

/** A process in small: it counts and measures, and falls silent or ends on request. */
class Member implements MetricsMember {
  readonly #metrics = new Metrics();
  readonly requests = this.#metrics.counter({ name: 'requests_total', help: 'Requests.', labels: ['status'] });
  readonly duration = this.#metrics.histogram({ name: 'duration_seconds', help: 'Duration.', labels: [] }, [1, 2]);
  end: () => void = () => undefined;
  readonly ended = new Promise<void>((resolve) => (this.end = resolve));
  lastMetrics: MetricsSnapshot = [];
  isSilent = false;
  inFlight = 0;
  isUp = true;

  constructor() {
    const read = (value: () => number) => () => [{ labels: {}, value: value() }];
    const gauge = { help: 'A gauge.', labels: [] };
    this.#metrics.readGauge({ ...gauge, name: 'in_flight', read: read(() => this.inFlight) });
    this.#metrics.readGauge({ ...gauge, name: 'up', aggregator: 'min', read: read(() => Number(this.isUp)) });
    this.#metrics.readGauge({ ...gauge, name: 'info', aggregator: 'first', read: read(() => 1) });
    this.#metrics.readGauge({ ...gauge, name: 'unknown', read: read(() => NaN) });
  }

  async askForMetrics(): Promise<void> {
    if (this.isSilent) await new Promise(() => undefined);
    // As it arrives in another process.
    this.lastMetrics = JSON.parse(JSON.stringify(await this.#metrics.snapshot())) as MetricsSnapshot;
  }
}

describe('metrics of several processes', () => {
  let combined: CombinedMetrics;
  let one: Member;
  let two: Member;

  beforeEach(() => {
    const own = new Metrics();
    own.readCounter({ name: 'own_total', help: 'Own.', labels: [], read: () => [{ labels: {}, value: 5 }] });
    combined = new CombinedMetrics(() => own.snapshot());
    one = new Member();
    two = new Member();
    combined.add(one);
    combined.add(two);
    one.requests.inc({ status: 200 }, 10);
    two.requests.inc({ status: 200 }, 5);
    two.requests.inc({ status: 404 }, 1);
    one.duration.observe(0.5);
    two.duration.observe(1.5);
    two.duration.observe(9);
    one.inFlight = 2;
    two.inFlight = 3;
  });

  async function read(): Promise<Record<string, number>> {
    return Object.fromEntries(parse(await combined.text()));
  }

  const COUNTS = {
    'requests_total{status="200"}': 15,
    'requests_total{status="404"}': 1,
    'duration_seconds_bucket{le="1"}': 1,
    'duration_seconds_bucket{le="2"}': 2,
    'duration_seconds_bucket{le="+Inf"}': 3,
    duration_seconds_sum: 11,
    duration_seconds_count: 3,
    own_total: 5,
  };

  it('are one, each metric in its own way', async () => {
    assert.deepEqual(await read(), { ...COUNTS, in_flight: 5, up: 1, info: 1 });
    two.isUp = false;
    assert.equal((await read()).up, 0);
    assert.deepEqual(combined.state, { answering: 2, silent: 0, gone: 0 });
  });

  it('keep the counts of one that is gone, and not its gauges', async () => {
    await read();
    two.isUp = false;
    two.end();
    await eventually('it is gone', () => combined.state.gone === 1);
    assert.deepEqual(await read(), { ...COUNTS, in_flight: 2, up: 1, info: 1 });

    const three = new Member();
    combined.add(three);
    three.requests.inc({ status: 200 }, 1);
    one.requests.inc({ status: 404 }, 1);
    assert.deepEqual(await read(), {
      ...COUNTS,
      'requests_total{status="200"}': 16,
      'requests_total{status="404"}': 2,
      in_flight: 2,
      up: 1,
      info: 1,
    });
    three.end();
    one.end();
    await eventually('all are gone', () => combined.state.gone === 3);
    assert.deepEqual(await read(), {
      ...COUNTS,
      'requests_total{status="200"}': 16,
      'requests_total{status="404"}': 2,
    });
    assert.deepEqual(combined.state, { answering: 0, silent: 0, gone: 3 });
  });

  it('stand with the last answer of one that is silent, and wait for it only so long', async () => {
    await read();
    two.isSilent = true;
    two.requests.inc({ status: 200 }, 100);
    two.inFlight = 7;
    assert.deepEqual(await read(), { ...COUNTS, in_flight: 5, up: 1, info: 1 });
    assert.deepEqual(combined.state, { answering: 1, silent: 1, gone: 0 });
    two.isSilent = false;
    assert.deepEqual(await read(), {
      ...COUNTS,
      'requests_total{status="200"}': 115,
      in_flight: 9,
      up: 1,
      info: 1,
    });
    assert.deepEqual(combined.state, { answering: 2, silent: 0, gone: 0 });
  });

  it('do not wait for one that ends meanwhile, and take what it says at the end', async () => {
    await read();
    two.requests.inc({ status: 200 }, 1);
    await two.askForMetrics();
    two.isSilent = true;
    const reading = read();
    two.end();
    assert.equal((await reading)['requests_total{status="200"}'], 16);
    assert.equal((await read())['requests_total{status="200"}'], 16);
    assert.deepEqual(combined.state, { answering: 1, silent: 0, gone: 1 });
  });

  it('show a component as down while one process has lost it', async () => {
    const log = pino({ enabled: false });
    const whole = new CombinedMetrics(() => Promise.resolve([]));
    const healths = [new Health(log, ['database', 'redis']), new Health(log, ['database', 'redis'])];
    for (const health of healths) {
      const { metrics } = await createMetrics({
        packageRoot: fileURLToPath(ROOT),
        operationIds: [],
        pools: {},
        health,
        decisions: {},
        failedAttempts: new FailedAttempts(),
        cache: undefined,
        notificationQueueUsage: undefined,
        droppedLines: () => 0,
        usage: new UsageCounter(),
      });
      const member = { lastMetrics: [] as MetricsSnapshot, ended: new Promise<void>(() => undefined) };
      whole.add(
        Object.assign(member, { askForMetrics: async () => void (member.lastMetrics = await metrics.snapshot()) }),
      );
    }
    const up = async (): Promise<unknown[]> => {
      const series = parse(await whole.text());
      return ['database', 'redis'].map((name) => series.get(`catalog_component_up{component="${name}"}`));
    };
    assert.deepEqual(await up(), [1, 1]);
    healths[1]?.note('redis', 'lost');
    assert.deepEqual(await up(), [1, 0]);
  });
});
