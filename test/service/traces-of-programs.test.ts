import assert from 'node:assert/strict';
import { startOtlpReceiver, type OtlpReceiver } from '../support/telemetry/otlp-receiver.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

/** How long a server may take to end whose receiver never answers, in milliseconds: its own bound is 2 s. */
const END_BOUND_MS = 5_000;

describe('the program with a receiver of traces', () => {
  const world = testWorld();
  let receiver: OtlpReceiver;

  before(async () => {
    receiver = await startOtlpReceiver();
    world.defer(() => receiver.close());
  });

  it('a server whose receiver never answers serves as usual, and ends within a bound', async () => {
    const { key } = await world.newKey();
    receiver.status = undefined;
    const server = await world.startServer({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
    const headers = { 'x-api-key': key, traceparent: `00-${TRACE}-00f067aa0ba902b7-01` };
    assert.equal((await send(server.url, '/api/v1/me', { headers })).status, 200);
    const startedAt = performance.now();
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.ok(performance.now() - startedAt < END_BOUND_MS);
  });
});
