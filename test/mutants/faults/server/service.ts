import type { Fault } from '../../fault.js';

/** Faults in what starts, runs and stops servers. */
export const SERVICE_FAULTS: readonly Fault[] = [
  {
    name: 'two-proxies-as-one-in-service',
    promise: 'TRUST_PROXY is the number of proxies.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: 'trustedProxies: config.trustedProxies,',
        to: 'trustedProxies: Math.min(config.trustedProxies, 1),',
      },
    ],
    suites: ['test/limits/failed-attempts.test.ts'],
  },
  {
    name: 'two-proxies-count-leftmost',
    promise: 'Keys that fail are counted by the client that the trusted proxies saw.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: 'trustedProxies: config.trustedProxies,',
        to: 'trustedProxies: config.trustedProxies > 1 ? 9 : config.trustedProxies,',
      },
    ],
    suites: ['test/limits/failed-attempts.test.ts'],
  },
  {
    name: 'no-flush-while-running',
    promise: 'Last-used times are written while the server runs.',
    edits: [
      {
        file: 'src/service/background.ts',
        from: 'recurring(async () => {\n    await flushRecords(records, db, log);',
        to: 'recurring(async () => {',
      },
    ],
    suites: ['test/keys/last-used.test.ts'],
  },
  {
    name: 'old-rows-kept',
    promise: 'A server removes what has expired, and old events and usage.',
    edits: [
      {
        file: 'src/service/background.ts',
        from: 'if (flushes % FLUSHES_PER_REMOVAL === 0)',
        to: 'if (flushes < 0)',
      },
    ],
    suites: ['test/roles/server-role.test.ts'],
  },
  {
    name: 'no-flush-at-the-end',
    promise: 'Last-used times are written when the server stops.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: '    flushRecords(it, db, log),',
        to: '    it,',
      },
    ],
    suites: ['test/keys/last-used.test.ts'],
  },
  {
    name: 'redis-left-open',
    promise: 'A service that fails to open leaves nothing open.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: 'opened.add(await openAdmission(options, clock, health, database), (it) => it.close());',
        to: 'await openAdmission(options, clock, health, database);',
      },
    ],
    suites: ['test/service/create-service.test.ts'],
  },
  {
    name: 'nothing-closed-half-way',
    promise: 'A service that fails to open leaves nothing open.',
    edits: [
      {
        file: 'src/platform/process/close-stack.ts',
        from: `      await opened.close();
      throw error;`,
        to: '      throw error;',
      },
    ],
    suites: ['test/service/create-service.test.ts'],
  },
  {
    name: 'closed-in-order-of-opening',
    promise: 'What is opened is closed in the reverse order.',
    edits: [
      {
        file: 'src/platform/process/close-stack.ts',
        from: 'for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop())',
        to: 'for (let close = this.#closers.shift(); close !== undefined; close = this.#closers.shift())',
      },
    ],
    suites: ['test/platform/process/close-stack.test.ts'],
  },
  {
    name: 'announcements-not-probed',
    promise: 'A lost connection for announcements is noticed.',
    edits: [
      {
        file: 'src/platform/postgres/notifications.ts',
        from: 'setInterval(() => void readTable().catch(reject), POLL_INTERVAL_MS)',
        to: 'setInterval(() => undefined, POLL_INTERVAL_MS)',
      },
    ],
    suites: ['test/admission/announcements.test.ts'],
  },
  {
    name: 'late-announcement-missed',
    promise: 'A change that commits late is announced like any other.',
    edits: [
      {
        file: 'src/platform/postgres/notifications.ts',
        from: 'txid >= pg_snapshot_xmin($1) and not pg_visible_in_snapshot(txid, $1)',
        to: 'txid >= pg_snapshot_xmax($1)',
      },
    ],
    suites: ['test/admission/announcements.test.ts'],
  },
  {
    name: 'announcement-fails-the-change',
    promise: 'A revocation commits whatever the queue of notifications does.',
    edits: [
      {
        file: 'db/migrations/012_caller_changes.sql',
        from: 'if pg_notification_queue_usage() < 0.5 then',
        to: 'if true then',
      },
    ],
    suites: ['test/admission/announcements.test.ts'],
  },
  {
    name: 'announcement-fails-strict-isolation',
    promise: 'A key can be revoked in a transaction of any isolation level.',
    edits: [
      {
        file: 'db/migrations/012_caller_changes.sql',
        from: "if current_setting('transaction_isolation') = 'read committed' then",
        to: 'if true then',
      },
    ],
    suites: ['test/admission/announcements.test.ts'],
  },
  {
    name: 'state-never-logged',
    promise: 'The loss of a dependency is logged once.',
    edits: [
      {
        file: 'src/platform/telemetry/health.ts',
        from: 'this.log.warn({ err: error }, `${dependency} lost. ${CONSEQUENCES[dependency]}`);',
        to: 'void error;',
      },
    ],
    suites: ['test/api/outage.test.ts'],
  },
  {
    name: 'back-never-logged',
    promise: 'The return of a dependency is logged once.',
    edits: [
      { file: 'src/platform/telemetry/health.ts', from: '    else this.log.info(`${dependency} back`);', to: '' },
    ],
    suites: ['test/api/outage.test.ts'],
  },
  {
    name: 'cut-after-100-ms',
    promise: 'Requests in flight finish at shutdown.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: 'const SHUTDOWN_GRACE_MS = 5_000;',
        to: 'const SHUTDOWN_GRACE_MS = 100;',
      },
    ],
    suites: ['test/cli/lifecycle.test.ts'],
  },
  {
    name: 'drain-ignored',
    promise: 'After SIGTERM a server goes on serving for DRAIN_SECONDS.',
    edits: [
      {
        file: 'src/service/create-service.ts',
        from: 'const drainSeconds = drains ? config.drainSeconds : 0;',
        to: 'const drainSeconds = 0 * Number(drains);',
      },
    ],
    suites: ['test/cli/drain.test.ts'],
  },
  {
    name: 'replica-never-left',
    promise: 'A replica that fails is left for the primary.',
    edits: [
      {
        file: 'src/platform/postgres/replica.ts',
        from: `    } catch (error) {
      if (!lost) onChange('lost', error);
      retryAt = performance.now() + RETRY_AFTER_MS;
      return query(primary);`,
        to: `    } catch (error) {
      throw error;`,
      },
    ],
    suites: ['test/replica/replica.test.ts'],
  },
  {
    name: 'lost-replica-tried-by-all',
    promise: 'While a lost replica is tried, other queries do not wait for it.',
    edits: [
      {
        file: 'src/platform/postgres/replica.ts',
        from: `      // Only this query waits for it. Queries that arrive meanwhile do not.
      retryAt = performance.now() + RETRY_AFTER_MS;`,
        to: '',
      },
    ],
    suites: ['test/replica/replica.test.ts'],
  },
  {
    name: 'log-unbounded',
    promise: 'What waits for a reader of the log is bounded.',
    edits: [
      {
        file: 'src/commands/serve/server-log.ts',
        from: '    maxLength: MAX_WAITING_BYTES,\n',
        to: '',
      },
    ],
    suites: ['test/cli/log-output.test.ts'],
  },
  {
    name: 'suspend-json-without-epoch',
    promise: 'A suspension holds from the next request on, whatever the command prints.',
    edits: [
      {
        file: 'src/commands/developers/developers.ts',
        from: 'makeChange(context, (db) => suspendDeveloper(db, id));',
        to: 'makeChange(context, (db) => suspendDeveloper(db, id), { invalidates: !json });',
      },
    ],
    suites: ['test/cli/shared.test.ts'],
  },
  {
    name: 'misuse-as-failure',
    promise: 'The program ends with the exit code of its command: 2 for wrong arguments.',
    edits: [
      {
        file: 'src/cli.ts',
        from: 'process.exitCode = exitCode;',
        to: 'process.exitCode = EXIT_FAILED;',
      },
    ],
    suites: ['test/cli/process.test.ts'],
  },
  {
    name: 'no-standard-input',
    promise: 'A command reads the standard input of its process.',
    edits: [{ file: 'src/cli.ts', from: 'stdin: process.stdin,', to: 'stdin: process.stdin.destroy(),' }],
    suites: ['test/cli/process.test.ts'],
  },
  {
    name: 'idle-connections-closed-at-once',
    promise: 'The end of a server resets no request that is on its way.',
    edits: [{ file: 'src/service/create-service.ts', from: 'idleMs = 2 * NEXT_REQUEST_MS', to: 'idleMs = 0' }],
    suites: ['test/cli/drain.test.ts'],
  },
  {
    name: 'connections-closed-while-listening-ends',
    promise: 'The end of a server resets no connection that waits to be accepted.',
    edits: [{ file: 'src/service/create-service.ts', from: '      closesConnections = false;\n', to: '' }],
    suites: ['test/cli/drain.test.ts'],
  },
];
