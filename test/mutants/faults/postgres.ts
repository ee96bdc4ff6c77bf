import type { Fault } from '../fault.js';

/** Faults in how PostgreSQL is asked. */
export const POSTGRES_FAULTS: readonly Fault[] = [
  {
    name: 'reads-remember',
    promise: 'A request sees what was committed before it came.',
    edits: [{ file: 'src/platform/async/batch-loader.ts', from: 'cache: false,', to: 'cache: true,' }],
    suites: ['test/platform/postgres/batch.test.ts'],
  },
  {
    name: 'reads-joined-late',
    promise: 'No query answers a request that came after it was sent.',
    edits: [
      {
        file: 'src/platform/postgres/batch.ts',
        from: '  return async (db, key) => load(db, [key]);',
        to: `  const sent = new Map<string, Promise<Value>>();
  return (db, key) => {
    const reading = sent.get(identify(key)) ?? load(db, [key]).finally(() => sent.delete(identify(key)));
    sent.set(identify(key), reading);
    return reading;
  };`,
      },
    ],
    suites: ['test/platform/postgres/batch.test.ts'],
  },
  {
    name: 'batches-unbounded',
    promise: 'A bounded number of requests share one query.',
    edits: [
      {
        file: 'src/platform/async/batch-loader.ts',
        from: '    maxBatchSize,',
        to: '    maxBatchSize: maxBatchSize * 1_000,',
      },
    ],
    suites: ['test/platform/postgres/batch.test.ts'],
  },
  {
    name: 'one-request-fails-its-batch',
    promise:
      'A request that the database refuses fails no other one, nor does the error of one get into the log of another.',
    edits: [
      {
        file: 'src/platform/postgres/batch.ts',
        from: 'if (keys.length === 1 || isDatabaseUnavailable(failure)) throw failure;',
        to: 'if (keys.length > 0 || isDatabaseUnavailable(failure)) throw failure;',
      },
    ],
    suites: ['test/platform/postgres/batch.test.ts'],
  },
  {
    name: 'outdated-statement-fails',
    promise: 'No request fails because a migration has changed the columns of a prepared statement.',
    edits: [
      {
        file: 'src/platform/postgres/pool.ts',
        from: '      if (!isOutdated) throw error;',
        to: '      if (query.name !== undefined) throw error;',
      },
    ],
    suites: ['test/platform/postgres/statement.test.ts'],
  },
  {
    name: 'answer-awaited-for-good',
    promise: 'A query takes a bounded time, also where the server is frozen.',
    edits: [
      {
        file: 'src/platform/postgres/connection.ts',
        from: 'return await (answerTimeoutMs > 0',
        to: 'return await (answerTimeoutMs < 0',
      },
    ],
    suites: ['test/platform/postgres/pool.test.ts'],
  },
  {
    name: 'silent-connection-kept',
    promise: 'A connection whose query was given up serves nobody else.',
    edits: [
      {
        file: 'src/platform/postgres/connection.ts',
        from: 'if (error instanceof DatabaseTimeout || ENDED_SQLSTATE.test(sqlState(error))) this.destroy();',
        to: 'if (ENDED_SQLSTATE.test(sqlState(error))) this.destroy();',
      },
    ],
    suites: ['test/platform/postgres/pool.test.ts'],
  },
  {
    name: 'connections-of-before-kept',
    promise: 'Once the primary takes no writes, its open connections are not used either.',
    edits: [
      {
        file: 'src/platform/postgres/pool.ts',
        from: 'connection.createdAt >= this.#renewedAt',
        to: 'connection.createdAt >= 0',
      },
    ],
    suites: ['test/replica/failover.test.ts'],
  },
  {
    name: 'old-primary-overwrites-the-epoch',
    promise: 'A command on an old primary does not hide from others that another server was promoted.',
    edits: [{ file: 'src/admission/epoch.ts', from: 'if ahead > 0 or (', to: 'if (' }],
    suites: ['test/replica/fencing.test.ts'],
  },
  {
    name: 'caller-of-an-old-primary-admitted',
    promise: 'A caller that was read from an old primary is not admitted once the epoch names a newer timeline.',
    edits: [
      {
        file: 'src/admission/admission.ts',
        from: 'noteEpoch(epoch, charge.epoch);\n    fence.confirm(timeline);',
        to: 'noteEpoch(epoch, charge.epoch);',
      },
    ],
    suites: ['test/replica/fencing.test.ts'],
  },
  {
    name: 'epoch-outlives-a-failover',
    promise: 'No key is accepted under an epoch that was read before Redis failed over.',
    edits: [
      {
        file: 'src/admission/open-admission.ts',
        from: "    cache.reset();\n    if (state === 'up')",
        to: "    if (state === 'up')",
      },
    ],
    suites: ['test/shared/redis-sentinel.test.ts'],
  },
];
