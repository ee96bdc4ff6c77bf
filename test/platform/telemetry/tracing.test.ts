import assert from 'node:assert/strict';
import { Tracing, type TracingOptions } from '../../../src/platform/telemetry/tracing.js';
import { eventually } from '../../support/eventually.js';
import { startOtlpReceiver, type OtlpReceiver } from '../../support/telemetry/otlp-receiver.js';

/** The most spans that wait for the receiver. */
const MAX_WAITING = 4_096;

/** How long the end of a process waits for the receiver, in milliseconds, and as much again for a busy machine. */
const CLOSE_BOUND_MS = 4_000;

describe('tracing', () => {
  let receiver: OtlpReceiver;
  let changes: string[];
  const open: Tracing[] = [];

  beforeEach(async () => {
    receiver = await startOtlpReceiver();
    changes = [];
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((tracing) => tracing.close()));
    receiver.close();
  });

  function openTracing(options: Partial<TracingOptions> = {}): Tracing {
    const tracing = new Tracing({
      endpoint: `${receiver.url}/`,
      headers: {},
      serviceName: 'catalog',
      serviceVersion: '1.0.0',
      sampler: 'always_on',
      ratio: 1,
      onChange: (state) => void changes.push(state),
      ...options,
    });
    open.push(tracing);
    return tracing;
  }

  const PARENT = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' } as const;

  for (const [sampler, ratio, alone, inRecorded, inUnrecorded] of [
    ['always_on', 0, true, true, true],
    ['always_off', 1, false, false, false],
    ['traceidratio', 1, true, true, true],
    ['traceidratio', 0, false, false, false],
    ['parentbased_always_on', 0, true, true, false],
    ['parentbased_always_off', 1, false, true, false],
    ['parentbased_traceidratio', 1, true, true, false],
    ['parentbased_traceidratio', 0, false, true, false],
  ] as const) {
    it(`${sampler} with ${ratio} records the requests that it should`, () => {
      const tracing = openTracing({ sampler, ratio });
      const isRecorded = (isSampled?: boolean): boolean =>
        tracing.beginRequest('GET', isSampled === undefined ? undefined : { ...PARENT, isSampled }).traceId !==
        undefined;
      assert.deepEqual([isRecorded(), isRecorded(true), isRecorded(false)], [alone, inRecorded, inUnrecorded]);
    });
  }

  it('traceidratio records its part of the requests', () => {
    const tracing = openTracing({ sampler: 'traceidratio', ratio: 0.25 });
    const ids = Array.from({ length: 4_000 }, () => tracing.beginRequest('GET', undefined).traceId);
    const recorded = ids.filter((id) => id !== undefined).length;
    assert.ok(recorded > 800 && recorded < 1_200, String(recorded));
  });

  it('spans that a receiver refuses are counted, and its loss and its return are reported once', async () => {
    const tracing = openTracing();
    receiver.status = 400;
    for (const lost of [1, 2]) {
      tracing.beginRequest('GET', undefined).end();
      await eventually('the span is lost', () => tracing.lost === lost);
    }
    receiver.status = 200;
    const span = tracing.beginRequest('GET', undefined);
    const { traceId = '' } = span;
    span.end();
    await receiver.trace(traceId);
    await eventually('the return is reported', () => changes.length === 2);
    assert.deepEqual([changes, tracing.lost], [['lost', 'up'], 2]);
  });

  it('a receiver that never answers costs neither memory without bound nor time at the end', async () => {
    const tracing = openTracing();
    receiver.status = undefined;
    for (let i = 0; i < MAX_WAITING + 1_000; i += 1) tracing.beginRequest('GET', undefined).end();
    assert.equal(tracing.lost, 1_000);
    const startedAt = performance.now();
    await tracing.close();
    assert.ok(performance.now() - startedAt < CLOSE_BOUND_MS);
  });

  it('the end waits for the spans that are still to be sent, also when there are several batches', async () => {
    const tracing = openTracing();
    for (let i = 0; i < 2_000; i += 1) tracing.beginRequest('GET', undefined).end();
    await tracing.close();
    assert.deepEqual([receiver.spans.length, tracing.lost, changes], [2_000, 0, []]);
  });
});
