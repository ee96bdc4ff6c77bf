import type { Fault } from '../../fault.js';

const COMBINED = 'test/metrics/combined-metrics.test.ts';
const WATCHED = 'src/platform/process/workers/watched-worker.ts';
const SUPERVISOR = 'src/platform/process/workers/supervisor.ts';
const METRICS = 'src/platform/telemetry/combined-metrics.ts';

/** Faults in what several processes of one server do together, and in what each leaves to its clients. */
export const WORKERS_FAULTS: readonly Fault[] = [
  {
    name: 'hanging-worker-kept',
    promise: 'A worker that hangs is killed and replaced.',
    edits: [
      {
        file: WATCHED,
        from: 'if (++this.#missing <= this.#mostMissing) return;',
        to: 'if (this.#missing === 0) return;',
      },
    ],
    suites: ['test/workers/hanging.test.ts'],
  },
  {
    name: 'dead-worker-not-replaced',
    promise: 'A worker that dies is replaced.',
    edits: [{ file: SUPERVISOR, from: 'if (this.#ending.aborted) return;', to: 'if (youngDeaths === 0) return;' }],
    suites: ['test/workers/serving.test.ts'],
  },
  {
    name: 'further-worker-ends-the-server',
    promise: 'A server serves although a further worker cannot start.',
    edits: [
      {
        file: SUPERVISOR,
        from: 'Promise.race([listening, ended])',
        to: 'Promise.race([listening, ended.then(() => Promise.reject(new Error()))])',
      },
    ],
    suites: ['test/workers/faults.test.ts'],
  },
  {
    name: 'no-drain-while-workers-start',
    promise: 'A server that is told to end while its further workers start drains: the first one has clients.',
    edits: [{ file: SUPERVISOR, from: '    this.options.onServing();\n', to: '' }],
    suites: ['test/workers/faults.test.ts'],
  },
  {
    name: 'end-waits-for-workers-that-start',
    promise: 'A server that is told to end does not wait until its further workers have started.',
    edits: [
      {
        file: SUPERVISOR,
        from: "await Promise.race([started, once(this.#ending, 'abort')]);",
        to: 'await started;',
      },
    ],
    suites: ['test/workers/faults.test.ts'],
  },
  {
    name: 'start-as-bounded-as-a-request',
    promise: 'A database that is slow for a moment does not make a start fail.',
    edits: [
      {
        file: 'src/platform/postgres/connections/connect.ts',
        from: '{ ...options, ...START_BOUNDS, address, poolSize: 1 }',
        to: '{ ...options, address, poolSize: 1 }',
      },
    ],
    suites: ['test/platform/postgres/connect.test.ts'],
  },
  {
    name: 'workers-replaced-without-a-pause',
    promise: 'Workers that die again and again are replaced after growing pauses.',
    edits: [{ file: SUPERVISOR, from: 'if (youngDeaths <= 1) return 0;', to: 'if (youngDeaths >= 0) return 0;' }],
    suites: ['test/workers/faults.test.ts'],
  },
  {
    name: 'order-to-end-missed',
    promise: 'A worker that starts while its server is told to end does so.',
    edits: [{ file: WATCHED, from: '    if (this.#stop) this.#order(this.#stop);\n', to: '' }],
    suites: ['test/workers/ending.test.ts'],
  },
  {
    name: 'counts-end-with-their-worker',
    promise: 'A counter never shrinks: what an ended worker has counted stays.',
    edits: [
      {
        file: METRICS,
        from: "combine([this.#ofGone, member.lastMetrics.filter(({ type }) => type !== 'gauge')])",
        to: 'combine([this.#ofGone])',
      },
    ],
    suites: ['test/metrics/workers.test.ts'],
  },
  {
    name: 'gauges-outlive-their-worker',
    promise: 'What a worker holds at the moment ends with it.',
    edits: [{ file: METRICS, from: ".filter(({ type }) => type !== 'gauge')", to: '' }],
    suites: [COMBINED],
  },
  {
    name: 'metrics-wait-for-a-hanging-worker',
    promise: 'The metrics come in time while a worker hangs.',
    edits: [{ file: METRICS, from: 'withTimeout(answered, ANSWER_TIMEOUT_MS)', to: 'withTimeout(answered, 120_000)' }],
    suites: [COMBINED],
  },
  {
    name: 'metrics-of-every-path',
    promise: 'What clients send makes no new series of metrics.',
    edits: [
      {
        file: 'src/http/telemetry/record-requests.ts',
        from: 'metrics.end(operation?.id, status,',
        to: 'metrics.end(operation?.id ?? target.path, status,',
      },
    ],
    suites: ['test/metrics/requests.test.ts'],
  },
  {
    name: 'metrics-at-every-path',
    promise: 'The address of the metrics answers to nothing but /metrics.',
    edits: [
      {
        file: 'src/http/telemetry/metrics-server.ts',
        from: "request.url?.split('?', 1)[0] !== '/metrics'",
        to: 'request.url === undefined',
      },
    ],
    suites: ['test/metrics/address.test.ts'],
  },
  {
    name: 'all-descriptors-for-clients',
    promise: 'Clients leave a server the files that it needs itself.',
    edits: [
      {
        file: 'src/platform/process/file-descriptors.ts',
        from: 'RESERVED + pooled * DESCRIPTORS_OF_POOLED_CONNECTION',
        to: '(RESERVED + pooled * DESCRIPTORS_OF_POOLED_CONNECTION) * 0',
      },
    ],
    suites: ['test/outages/open-files.test.ts'],
  },
  {
    name: 'slow-redis-takes-the-deadline',
    promise: 'A slow Redis leaves a request time for its answer.',
    edits: [
      {
        file: 'src/admission/admit-from-cache.ts',
        from: 'const REDIS_BUDGET_MS = 400;',
        to: 'const REDIS_BUDGET_MS = 60_000;',
      },
    ],
    suites: ['test/admission/slow-redis.test.ts'],
  },
  {
    name: 'frozen-redis-awaited',
    promise: 'No request waits long for a Redis that does not answer.',
    edits: [
      {
        file: 'src/platform/redis/link.ts',
        from: 'const COMMAND_TIMEOUT_MS = 250;',
        to: 'const COMMAND_TIMEOUT_MS = 5_000;',
      },
    ],
    suites: ['test/outages/redis.test.ts'],
  },
];
