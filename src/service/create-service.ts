import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { removeExpired } from '../accounts/expired.js';
import { admitFromDatabase } from '../admission/admission.js';
import { ProcessLimiter } from '../admission/charge/process-limiter.js';
import { FailedAttempts, type FailurePolicy } from '../admission/failed-attempts.js';
import { DatabaseLookups } from '../admission/lookups.js';
import { openSharedAdmission, type SharedAdmission } from '../admission/shared-admission.js';
import { createApp } from '../app.js';
import { systemClock, type Micros } from '../catalog/timestamps.js';
import type { Config } from '../config/settings.js';
import { limitConnections } from '../http/connection/connection-limit.js';
import { logBacklog } from '../http/connection/backlog.js';
import {
  close,
  createHttpServer,
  DEFAULT_SERVER_LIMITS,
  listen,
  urlOf,
  type ServerLimits,
} from '../http/connection/server.js';
import { LastUsed } from '../keys/last-used.js';
import { createMetrics, openMetrics } from './metrics.js';
import { connectDatabase, type ConnectedDatabase } from '../platform/database/connect.js';
import { ConnectionBudget } from '../platform/postgres/connection-budget.js';
import { DatabaseCheck } from '../platform/database/database-check.js';
import { openDatabase, poolOf } from '../platform/postgres/database.js';
import { isDatabaseUnavailable } from '../platform/postgres/errors.js';
import { connectionsWithin } from '../platform/process/file-descriptors.js';
import { Health } from '../platform/telemetry/health.js';
import type { WriteLine } from '../platform/telemetry/log.js';
import type { Metrics } from '../platform/telemetry/metrics.js';
import { OpenParts } from '../platform/process/open-parts.js';
import { recurring } from '../platform/process/recurring.js';
import { readFrom, ReplicaReader } from '../platform/postgres/replica.js';

/** How often the times at which keys were last used are written down, in milliseconds. */
const LAST_USED_FLUSH_INTERVAL_MS = 10_000;

/** Bound on a connection from the pool and on a statement, in milliseconds; less than the bound on a request. */
const DATABASE_TIMEOUT_MS = 800;

/**
 * The same for a replica, in milliseconds: short, so that the primary still has its time within the bound on a request
 * when the replica does not answer.
 */
const REPLICA_TIMEOUT_MS = 300;

/** How often the database is asked whether it is there, so that its loss is told also where nobody probes, in milliseconds. */
const DATABASE_CHECK_INTERVAL_MS = 2_000;

/** How often the connections are counted that the database has left, in milliseconds. */
const CONNECTION_BUDGET_INTERVAL_MS = 30_000;

/** How often expired links and sessions are removed, in milliseconds. They are void without that. */
const EXPIRY_INTERVAL_MS = 600_000;

/** How long requests in flight may take to finish when the service stops, in milliseconds. */
const SHUTDOWN_GRACE_MS = 5_000;

/** What a server process is made from. */
export interface ServiceOptions {
  readonly config: Config;
  readonly log: Logger;
  /** For the lines of requests. */
  readonly requestLog: WriteLine;
  /** How many lines of the log were dropped. */
  readonly droppedLines: () => number;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  readonly pid: number;
  /** How many files this process may have open; Infinity for any number. */
  readonly openFiles: number;
  /** Bring the schema of a database named by DATABASE_URL up to date first. */
  readonly migrate: boolean;
  /** Runs once the database is there and before anyone is served. */
  readonly prepare?: (database: ConnectedDatabase) => void | Promise<void>;
  readonly overrides?: ServiceOverrides;
}

/** What tests put in place of parts of the service; everything else is as it is in production. A program has none. */
export interface ServiceOverrides {
  /** The clock of this process, in microseconds since 1970. */
  readonly now?: () => Micros;
  readonly failurePolicy?: FailurePolicy;
  readonly serverLimits?: Partial<ServerLimits>;
  /** Connects Redis, and listens to what the database announces. */
  readonly openAdmission?: typeof openSharedAdmission;
  /** How often the times at which keys were last used are written down, in milliseconds. */
  readonly lastUsedFlushIntervalMs?: number;
}

/** A server that listens. */
export interface RunningService {
  /** Where it can be reached from this machine. */
  readonly url: string;
  /** Where its metrics are to be had; undefined for nowhere. */
  readonly metricsUrl: string | undefined;
  /** Migrations that were applied at the start. */
  readonly applied: readonly string[];
  /**
   * Stops listening, finishes what is in flight, writes down what is kept in memory, and stops what was started. Takes a
   * bounded time and never rejects: what went wrong is logged.
   *
   * @param drains - whether it first goes on serving for DRAIN_SECONDS, while it tells balancers and clients to go
   */
  stop(drains?: boolean): Promise<void>;
}

/** A server that is this process alone. */
export interface ServiceProcess extends RunningService {
  readonly metrics: Metrics;
}

/**
 * Starts the service: database, application, HTTP server.
 *
 * @throws OperatorError when the database or the address cannot be had; nothing is left running then
 */
export async function createService(options: ServiceOptions): Promise<ServiceProcess> {
  const opened = new OpenParts((error) => {
    options.log.warn({ err: error }, 'a part of the service could not be closed');
  });
  try {
    return await open(options, opened);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Opens the database of the service. The caller closes it. @throws OperatorError when it cannot be had */
export function connect({ config, log, packageRoot, pid, migrate }: ServiceOptions): Promise<ConnectedDatabase> {
  return connectDatabase({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    packageRoot,
    pid,
    applicationName: 'catalog serve',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: DATABASE_TIMEOUT_MS,
    statementTimeoutMs: DATABASE_TIMEOUT_MS,
    migrate,
    onEvent: (event, detail) => {
      log.info(detail, event);
    },
  });
}

async function open(options: ServiceOptions, opened: OpenParts): Promise<ServiceProcess> {
  const { config, log, requestLog, droppedLines, packageRoot, openFiles, overrides = {} } = options;
  const database = opened.add(await connect(options), (it) => it.close());
  await options.prepare?.(database);
  const { db } = database;
  const pools = config.databaseReadUrl === undefined ? 1 : 2;
  const maxConnections = connectionsWithin(openFiles, config.databasePoolSize * pools);
  const health = new Health(log, [
    'database',
    ...(config.redis === undefined ? [] : (['redis', 'announcements'] as const)),
    ...(config.databaseReadUrl === undefined ? [] : (['replica'] as const)),
  ]);
  const databaseCheck = new DatabaseCheck(db, health);
  const lastUsed = opened.add(new LastUsed(), flush);
  const replica = openReplica(config, health, db);
  if (replica) opened.add(replica.pool, (pool) => pool.destroy());
  // Lookups leave half of the connections to the requests whose key has been found.
  const lookups = new DatabaseLookups(db, Math.floor(config.databasePoolSize / 2));
  const shared = await share(options, lookups, health, database);
  if (shared) opened.add(shared, (it) => it.close());
  const limiter = new ProcessLimiter();
  const failedAttempts = new FailedAttempts(shared?.redis, overrides.failurePolicy);
  const { metrics, requestMetrics } = await createMetrics({
    packageRoot,
    pools: { primary: db, ...(replica && { replica: replica.pool }) },
    health,
    decisions: shared?.limiter.decisions ?? { process: limiter.decisions },
    failedAttempts,
    cache: shared?.cache,
    droppedLines,
  });
  const budget = budgetOf(config, db, log);
  await budget.check();
  let stopping: Promise<void> | undefined;
  const app = await createApp({
    contract: await readFile(`${packageRoot}/openapi.yaml`, 'utf8'),
    db,
    read: replica?.reader.read ?? readFrom(db),
    admit: shared?.admit ?? admitFromDatabase(lookups, limiter),
    failedAttempts,
    trustedProxies: config.trustedProxies,
    lastUsed,
    health,
    databaseCheck,
    warnings: () => budget.warnings,
    log,
    requestLog,
    requestMetrics,
    now: overrides.now ?? systemClock,
    isStopping: () => stopping !== undefined,
  });
  const serverLimits = { ...DEFAULT_SERVER_LIMITS, ...overrides.serverLimits };
  const server = createHttpServer(app.callback(), serverLimits, {
    onRejected({ requestId, problem }) {
      requestMetrics.reject(problem.status);
      log.info({ request_id: requestId, status: problem.status, code: problem.code }, 'request rejected');
    },
    onBacklog: (state) => {
      logBacklog(log, state);
    },
  });
  limitConnections(server, maxConnections, log);
  const metricsServer = await openMetrics(config.metricsAddress, metrics, log);
  if (metricsServer) opened.add(metricsServer, (it) => it.close());
  const port = await listen(server, config.host, config.port);
  opened.add(server, (it) => close(it, SHUTDOWN_GRACE_MS));

  async function flush(): Promise<void> {
    try {
      await lastUsed.flush(db);
    } catch (error) {
      // That the database is lost is told once.
      if (!isDatabaseUnavailable(error))
        log.warn({ err: error }, 'could not write down when keys were last used; trying again later');
    }
  }
  const flushTimer = setInterval(() => void flush(), overrides.lastUsedFlushIntervalMs ?? LAST_USED_FLUSH_INTERVAL_MS);
  opened.add(flushTimer, clearInterval);
  opened.add(
    setInterval(() => void databaseCheck.run(), DATABASE_CHECK_INTERVAL_MS),
    clearInterval,
  );
  opened.add(
    setInterval(() => void budget.check(), CONNECTION_BUDGET_INTERVAL_MS),
    clearInterval,
  );
  opened.add(
    recurring(() => removeExpiredRows(db, log), EXPIRY_INTERVAL_MS),
    (it) => it.stop(),
  );

  async function stop(drains: boolean): Promise<void> {
    const drainSeconds = drains ? config.drainSeconds : 0;
    log.info({ drain_seconds: drainSeconds }, 'stopping');
    if (drainSeconds > 0) await delay(drainSeconds * 1_000);
    await opened.close();
    log.info('stopped');
  }
  return {
    url: urlOf(config.host, port),
    metricsUrl: metricsServer?.url,
    metrics,
    applied: database.applied,
    stop: (drains = false) => (stopping ??= stop(drains)),
  };
}

async function removeExpiredRows(db: Knex, log: Logger): Promise<void> {
  try {
    await removeExpired(db);
  } catch (error) {
    if (!isDatabaseUnavailable(error))
      log.warn({ err: error }, 'could not remove expired sessions; trying again later');
  }
}

/** A process may have one connection more than its pool, on which it hears of changes. */
function budgetOf({ databasePoolSize, workers, redis }: Config, db: Knex, log: Logger): ConnectionBudget {
  const held = (): number => {
    const { used, idle } = poolOf(db).state;
    return used + idle + (redis === undefined ? 0 : 1);
  };
  return new ConnectionBudget(db, { ofProcess: databasePoolSize + 1, processes: workers, held }, log);
}

function openReplica(config: Config, health: Health, primary: Knex): { pool: Knex; reader: ReplicaReader } | undefined {
  if (config.databaseReadUrl === undefined) return undefined;
  const pool = openDatabase({
    address: config.databaseReadUrl,
    applicationName: 'catalog serve (replica)',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: REPLICA_TIMEOUT_MS,
    statementTimeoutMs: REPLICA_TIMEOUT_MS,
    mayBeReadOnly: true,
  });
  const reader = new ReplicaReader(primary, pool, (state, error) => {
    health.note('replica', state, error);
  });
  return { pool, reader };
}

/** @returns undefined where there is no Redis to share */
async function share(
  { config: { redis }, overrides }: ServiceOptions,
  lookups: DatabaseLookups,
  health: Health,
  { connectAlone }: ConnectedDatabase,
): Promise<SharedAdmission | undefined> {
  if (redis === undefined) return undefined;
  return (overrides?.openAdmission ?? openSharedAdmission)({
    address: redis,
    lookups,
    connectAlone,
    onChange: (dependency, state, error) => {
      health.note(dependency, state, error);
    },
  });
}
