import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { eventually } from '../../support/eventually.js';
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from '../../support/telemetry/otlp-receiver.js';
import { send } from '../../support/request.js';
import { addTitles } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';
import type { TestService } from '../../support/service.js';

const CLIENT_SPAN = '00f067aa0ba902b7';
const TOKEN = 'token-of-the-receiver';

describe('the traces of requests', () => {
  const world = testWorld({ redis: true });
  let receiver: OtlpReceiver;
  let service: TestService;

  before(async () => {
    receiver = await startOtlpReceiver();
    world.defer(() => receiver.close());
    await addTitles(world.db, 3);
    service = await world.startService({
      settings: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${TOKEN}`,
        OTEL_SERVICE_NAME: 'catalog-test',
      },
    });
  });

  function newTrace(): string {
    return randomBytes(16).toString('hex');
  }

  function traceparent(traceId: string, flags = '01'): Record<string, string> {
    return { traceparent: `00-${traceId}-${CLIENT_SPAN}-${flags}` };
  }

  function spanNamed(spans: readonly ReceivedSpan[], name: string): ReceivedSpan {
    const found = spans.filter((span) => span.name === name);
    assert.equal(found.length, 1, `${name} among ${spans.map((span) => span.name).join()}`);
    return found[0] ?? assert.fail();
  }

  /** Requires that no span starts before the one that it is a part of, or ends after it. */
  function assertNested(spans: readonly ReceivedSpan[]): void {
    for (const { name, parentSpanId, startTimeUnixNano, endTimeUnixNano } of spans) {
      const parent = spans.find(({ spanId }) => spanId === parentSpanId);
      if (parent === undefined) continue;
      assert.ok(BigInt(startTimeUnixNano) >= BigInt(parent.startTimeUnixNano), `${name} starts before ${parent.name}`);
      assert.ok(BigInt(endTimeUnixNano) <= BigInt(parent.endTimeUnixNano), `${name} ends after ${parent.name}`);
    }
  }

  /** Sends a request that continues a trace of its own. @returns the spans that it has in that trace */
  async function spansOf(path: string, headers: Record<string, string>, method = 'GET') {
    const traceId = newTrace();
    const { status } = await send(service.url, path, { method, headers: { ...traceparent(traceId), ...headers } });
    const spans = await receiver.trace(traceId);
    const [root] = spans.filter(({ kind }) => kind === 2);
    assert.ok(root);
    return { status, spans, root };
  }

  it("a request is a span of its client's trace, with what it waited for as children", async () => {
    const { key, prefix } = await service.newKey();
    const headers = { 'x-api-key': key, 'x-request-id': 'traced' };
    const { spans, root } = await spansOf('/api/v1/titles/title-0001', headers);
    assert.deepEqual(
      [root.name, root.parentSpanId, root.status.code],
      ['GET /api/v1/titles/{title_id}', CLIENT_SPAN, 0],
    );
    assert.deepEqual(root.attributes, {
      'http.request.method': 'GET',
      'http.route': '/api/v1/titles/{title_id}',
      'http.response.status_code': 200,
      'url.scheme': 'http',
      'url.path': '/api/v1/titles/title-0001',
      'catalog.request_id': 'traced',
      'catalog.key_prefix': prefix,
    });
    const admission = spanNamed(spans, 'admission');
    const children: Readonly<Record<string, readonly [parent: string, system: string | undefined]>> = {
      admission: [root.spanId, undefined],
      'find caller': [admission.spanId, 'postgresql'],
      charge: [admission.spanId, 'redis'],
      'find titles': [root.spanId, 'postgresql'],
    };
    assert.equal(spans.length, 1 + Object.keys(children).length);
    for (const [name, [parent, system]] of Object.entries(children)) {
      const span = spanNamed(spans, name);
      assert.deepEqual([span.parentSpanId, span.attributes['db.system.name']], [parent, system], name);
      assert.equal(span.kind, system === undefined ? 1 : 3);
    }
    assertNested(spans);
    assert.equal(receiver.resource['service.name'], 'catalog-test');
    assert.match(String(receiver.resource['service.version']), /^\d+\.\d+\.\d+/);
    assert.equal(receiver.headers.authorization, `Bearer ${TOKEN}`);
  });

  it('requests that share a query and a charge each have a span for them in their own trace', async () => {
    const traces = Array.from({ length: 20 }, newTrace);
    await Promise.all(
      traces.map((id) => service.get('/api/v1/stats', { headers: { 'x-api-key': service.key, ...traceparent(id) } })),
    );
    for (const id of traces) {
      const spans = await receiver.trace(id);
      for (const name of ['charge', 'read counts']) spanNamed(spans, name);
      assertNested(spans);
    }
  });

  it('spans of requests that were refused, failed or reached no operation are named without text of the client', async () => {
    const requests = [
      ['/api/v1/nope', 'GET', 404],
      ['/somewhere/else', 'GET', 404],
      ['/livez', 'GET /livez', 200],
      ['/docs/guides/mirroring', 'GET /docs/guides/mirroring', 200],
      ['/api/v1/changes?since=1', 'GET /api/v1/changes', 400],
    ] as const;
    const results = await Promise.all(requests.map(([path]) => spansOf(path, { 'x-api-key': service.key })));
    for (const [i, [, name, status]] of requests.entries()) {
      const { root, status: answered } = results[i] ?? assert.fail();
      assert.deepEqual([answered, root.attributes['http.response.status_code'], root.name], [status, status, name]);
      assert.deepEqual([root.status.code, root.attributes['error.type']], [0, undefined], 'the client is at fault');
    }
    await world.db.raw('alter table catalog_counts rename to mislaid');
    try {
      const { spans, root } = await spansOf('/api/v1/stats', { 'x-api-key': service.key });
      assert.deepEqual([root.status, root.attributes['error.type']], [{ code: 2 }, '500']);
      const read = spanNamed(spans, 'read counts');
      assert.deepEqual([read.status, read.attributes['error.type']], [{ code: 2 }, 'error']);
    } finally {
      await world.db.raw('alter table mislaid rename to catalog_counts');
    }
  });

  it('a request without a trace begins one, which the log names', async () => {
    const before = service.logged.length;
    await service.get('/api/v1/me');
    const line = await eventually('the line of the request', () => service.logged[before]);
    const { trace_id: traceId } = JSON.parse(line) as { trace_id: string };
    assert.match(traceId, /^[0-9a-f]{32}$/);
    const [root] = (await receiver.trace(traceId)).filter(({ kind }) => kind === 2);
    assert.equal(root?.parentSpanId ?? '', '');
  });

  it('a trace that the client does not record is in the log, and no span of it is sent', async () => {
    const [unrecorded, recorded] = [newTrace(), newTrace()];
    const before = service.logged.length;
    for (const headers of [traceparent(unrecorded, '00'), traceparent(recorded)]) {
      await send(service.url, '/api/v1/me', { headers: { 'x-api-key': service.key, ...headers } });
    }
    await receiver.trace(recorded);
    assert.ok(!receiver.received.includes(unrecorded));
    assert.ok(service.logged[before]?.includes(`"trace_id":"${unrecorded}"`));
  });

  it('no span contains a part of a key, wherever the client put it', async () => {
    const { key } = await service.newKey();
    const secret = key.slice('svc_12345678_'.length);
    await world.db.raw('alter table catalog_counts rename to mislaid');
    try {
      const paths = [
        `/api/v1/stats?api_key=${key}`,
        `/api/v1/changes?since=${key}`,
        `/api/v1/titles/${key}`,
        `/${key}`,
        `/docs/guides/${secret}`,
        `/api/v1/titles/${secret}%00`,
      ];
      const headers = { 'x-api-key': key, 'user-agent': key, 'x-request-id': key, tracestate: `a=${key}` };
      await Promise.all(paths.map((path) => spansOf(path, headers)));
    } finally {
      await world.db.raw('alter table mislaid rename to catalog_counts');
    }
    for (let at = 0; at + 12 <= secret.length; at += 1) {
      assert.ok(!receiver.received.includes(secret.slice(at, at + 12)), `from the ${at}th character on`);
    }
    assert.ok(!receiver.received.includes(TOKEN));
    assert.ok(!service.logged.join('\n').includes(TOKEN));
  });

  it('the spans of the last requests are sent when a server stops', async () => {
    const stopping = await world.startService({ settings: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } });
    const traceId = newTrace();
    await stopping.get('/api/v1/me', { headers: { 'x-api-key': service.key, ...traceparent(traceId) } });
    await stopping.stop();
    assert.ok(receiver.received.includes(traceId));
  });
});
