import type { Fault } from '../../fault.js';

const SUITE = 'test/workers/workers.test.ts';
const WORKERS = 'src/platform/process/workers.ts';

/** Faults in what several processes of one server do together, and in what each leaves to its clients. */
export const WORKERS_FAULTS: readonly Fault[] = [
  {
    name: 'dead-worker-not-replaced',
    promise: 'A worker that ends is replaced.',
    edits: [{ file: WORKERS, from: 'if (!this.#replaces) return;', to: 'if (youngEnds === 0) return;' }],
    suites: [SUITE],
  },
  {
    name: 'primary-exits-without-its-workers',
    promise: 'A server waits at its end until its workers have finished their requests.',
    edits: [{ file: WORKERS, from: 'await Promise.all([...this.#running].map(({ ended }) => ended));', to: '' }],
    suites: ['test/cli/drain.test.ts'],
  },
  {
    name: 'workers-cut-when-the-primary-is-killed',
    promise: 'Workers whose primary was killed finish their requests.',
    edits: [{ file: WORKERS, from: '    worker.exitedAfterDisconnect = true;\n', to: '' }],
    suites: [SUITE],
  },
  {
    name: 'starting-worker-kept',
    promise: 'A server that stops does not wait for a worker which is still starting.',
    edits: [{ file: WORKERS, from: "else worker.process.kill('SIGKILL');", to: '' }],
    suites: [SUITE],
  },
  {
    name: 'start-as-bounded-as-a-request',
    promise: 'A database that is slow for a moment does not make a start fail.',
    edits: [
      {
        file: 'src/platform/postgres/connect.ts',
        from: '{ ...options, ...START_BOUNDS, address, poolSize: 1 }',
        to: '{ ...options, address, poolSize: 1 }',
      },
    ],
    suites: ['test/platform/postgres/connect.test.ts'],
  },
  {
    name: 'workers-replaced-without-a-pause',
    promise: 'Workers that keep ending young are replaced after growing pauses.',
    edits: [{ file: WORKERS, from: 'Math.round(backoff(young, PAUSES))', to: '0' }],
    suites: [SUITE],
  },
  {
    name: 'metrics-of-the-primary-alone',
    promise: '/metrics counts the requests of all workers.',
    edits: [{ file: 'src/platform/telemetry/metrics.ts', from: ' + (await workers.clusterMetrics())', to: '' }],
    suites: [SUITE],
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
