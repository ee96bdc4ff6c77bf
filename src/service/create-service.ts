import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { callerLoader } from '../admission/callers.js';
import { announceIn, beginChange } from '../admission/invalidate-callers.js';
import { FailedAddresses } from '../limits/failed-addresses.js';
import { FailedAttempts, type FailurePolicy } from '../limits/failed-attempts.js';
import { openLocalAdmission, openSharedAdmission, type OpenedAdmission } from '../admission/open-admission.js';
import { operations } from '../api/index.js';
import { createApp } from '../app.js';
import { systemClock, toMilliseconds, type Micros } from '../platform/time/micros.js';
import { redisAddressOf, webhookOf } from '../config/config.js';
import type { Config } from '../config/settings.js';
import type { OperatorError } from '../errors.js';
import { limitConnections } from '../http/connection/connection-limit.js';
import {
  close,
  createHttpServer,
  DEFAULT_SERVER_LIMITS,
  listen,
  urlOf,
  type ServerLimits,
} from '../http/connection/server.js';
import { LastUsed } from '../keys/last-used.js';
import { flushRecords, startBackgroundWork } from './background.js';
import { openInternalServer, type LoadOperatorPages } from './internal-server.js';
import { createMetrics } from './metrics.js';
import { Notices } from './notices.js';
import { connectDatabase, type ConnectedDatabase } from '../platform/postgres/connect.js';
import { databaseCheck, openDatabase, poolOf } from '../platform/postgres/database.js';
import { connectionsWithin } from '../platform/process/file-descriptors.js';
import { Health } from '../platform/telemetry/health.js';
import { CloseStack } from '../platform/process/close-stack.js';
import { recurring } from '../platform/async/recurring.js';
import { openPublishedFolder } from '../copies/published.js';
import { SteadyClock } from '../platform/time/steady-clock.js';
import { readFrom, readFromReplica, type Read } from '../platform/postgres/replica.js';
import { UsageCounter } from '../usage/usage-counter.js';
import type * as Site from './site.js';

/** How much longer than its request a lookup of a key waits for its turn, in milliseconds. */
const LOOKUP_MARGIN_MS = 100;

/** The interval of database checks, in milliseconds. They report a loss even without probes. */
const DATABASE_CHECK_INTERVAL_MS = 2_000;

/** How long requests may take to finish when the service stops, in milliseconds. */
const SHUTDOWN_GRACE_MS = 5_000;

/** The longest pause between two requests of a busy client, in milliseconds. */
const NEXT_REQUEST_MS = 500;

export interface ServiceOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly droppedLines: () => number;
  /** The folder of this package's package.json. */
  readonly packageRoot: string;
  /** The version of Node.js that runs this process. */
  readonly nodeVersion: string;
  /** Whether to bring the schema of DATABASE_URL up to date first. */
  readonly migrate: boolean;
  /** Called when the embedded PostgreSQL ends by itself. */
  readonly onDatabaseLost?: (reason: OperatorError) => void;
  /** Called when the database is open, before the service takes requests. */
  readonly prepare?: (database: ConnectedDatabase) => void | Promise<void>;
  /** The pages for people; undefined for a server without. */
  readonly site?: typeof Site | undefined;
  /** Loads the pages for the operator; undefined for a server without. */
  readonly loadOperatorPages?: LoadOperatorPages | undefined;
  readonly overrides?: ServiceOverrides;
}

/** The parts of the service that tests replace. */
export interface ServiceOverrides {
  /** The clock of this process, in microseconds since 1970. */
  readonly now?: () => Micros;
  readonly failurePolicy?: FailurePolicy;
  readonly serverLimits?: Partial<ServerLimits>;
  /** The interval at which the last use and the usage of keys are saved, in milliseconds. */
  readonly flushIntervalMs?: number;
  /** The interval at which notices are recorded and sent, in milliseconds. */
  readonly noticeIntervalMs?: number;
}

export interface RunningService {
  readonly url: string;
  /** The URL of its metrics; undefined without metrics. */
  readonly metricsUrl: string | undefined;
  /** The migrations that this start has applied. */
  readonly applied: readonly string[];
  /**
   * Stops listening, finishes the current requests, saves what is in memory, and stops what was started. Takes a
   * bounded time and never rejects: failures are logged.
   *
   * @param drains - whether the server first keeps serving for DRAIN_SECONDS, while balancers and clients leave
   */
  stop(drains?: boolean): Promise<void>;
}

/**
 * Starts the service: database, application, HTTP server.
 *
 * @throws OperatorError when the database or the address is not available; then nothing is left running
 */
export function createService(options: ServiceOptions): Promise<RunningService> {
  return CloseStack.open(
    (opened) => open(options, opened),
    (err) => options.log.warn({ err }, 'a part of the service could not be closed'),
  );
}

async function open(options: ServiceOptions, opened: CloseStack): Promise<RunningService> {
  const { config, log, droppedLines, packageRoot, site, overrides = {} } = options;
  const database = opened.add(await openDatabaseOf(options), (it) => it.close());
  await options.prepare?.(database);
  const { db } = database;
  const pools = config.databaseReadUrl === undefined ? 1 : 2;
  const maxConnections = connectionsWithin(config.databasePoolSize * pools);
  const webhook = webhookOf(config);
  const notices = webhook && new Notices(webhook, log);
  const health = new Health(log, [
    'database',
    ...(config.redisUrl === undefined ? [] : (['redis', 'announcements'] as const)),
    ...(config.databaseReadUrl === undefined ? [] : (['replica'] as const)),
  ]);
  const checkDatabase = databaseCheck(db, health, timeBounds(config).databaseMs);
  const now = overrides.now ?? systemClock;
  const clock = new SteadyClock(overrides.now && (() => toMilliseconds(now())));
  const records = opened.add({ lastUsed: new LastUsed(clock), usage: new UsageCounter() }, (it) =>
    flushRecords(it, db, log),
  );
  const replica = openReplica(config, health, database);
  if (replica) opened.add(replica.pool, (pool) => pool.destroy());
  const admission = opened.add(await openAdmission(options, clock, health, database), (it) => it.close());
  const failedAddresses = new FailedAddresses(admission.redis);
  const failedAttempts = new FailedAttempts(
    admission.redis,
    overrides.failurePolicy,
    'failures',
    config.operatorPages ? failedAddresses : undefined,
  );
  const copies = config.copiesDir === undefined ? undefined : openPublishedFolder(config.copiesDir);
  const { metrics, requestMetrics } = await createMetrics({
    packageRoot,
    operationIds: Object.keys(operations),
    pools: { primary: db, ...(replica && { replica: replica.pool }) },
    health,
    decisions: admission.limiter.decisions,
    failedAttempts,
    cache: admission.cache,
    notificationQueueUsage: admission.notificationQueueUsage,
    droppedLines,
    usage: records.usage,
    notices: notices?.counts,
    copies,
  });
  // They close after the server, since they may wait for the database.
  opened.add(recurring(checkDatabase, DATABASE_CHECK_INTERVAL_MS), (it) => it.stop());
  startBackgroundWork(records, db, log, opened, overrides.flushIntervalMs);
  if (notices) opened.add(notices.start(db, admission.limiter, overrides.noticeIntervalMs), (it) => it.stop());
  let stopping: Promise<void> | undefined;
  let closesConnections = false;
  let idleMs = 0;
  let url = '';
  const publicUrl = (): string => config.publicUrl ?? url;
  const app = await createApp({
    contract: {
      yaml: await readFile(`${packageRoot}/openapi.yaml`, 'utf8'),
      json: await readFile(`${packageRoot}/generated/openapi.json`, 'utf8'),
      leakedKeys: await readFile(`${packageRoot}/generated/openapi-leaked-keys.json`, 'utf8'),
      copies: copies && (await readFile(`${packageRoot}/generated/openapi-copies.json`, 'utf8')),
    },
    requestTimeoutMs: config.requestTimeoutMs,
    publicUrl: config.publicUrl,
    securityContact: config.securityContact,
    copies,
    db,
    read: replica?.read ?? readFrom(db),
    admit: admission.admit,
    failedAttempts,
    failedReports: new FailedAttempts(admission.redis, overrides.failurePolicy, 'report-failures'),
    beginChange: () => beginChange(announceIn(admission.redis), database.fence),
    limiter: admission.limiter,
    trustedProxies: config.trustedProxies,
    ...records,
    health,
    checkDatabase,
    log,
    requestMetrics,
    now,
    isStopping: () => stopping !== undefined,
    closesConnections: () => closesConnections,
    site: site && {
      create: site.createSite,
      options: {
        files: await site.readStaticFiles(packageRoot),
        guides: await site.readGuides(packageRoot),
        publicUrl,
        operatorContact: config.operatorContact,
        ...site.createSignIn(config, admission.redis, log, clock),
      },
    },
  });
  const serverLimits = { ...DEFAULT_SERVER_LIMITS, ...overrides.serverLimits };
  const server = createHttpServer(app.callback(), serverLimits, ({ requestId, problem }) => {
    requestMetrics.reject(problem.status);
    log.info({ request_id: requestId, status: problem.status, code: problem.code }, 'request rejected');
  });
  limitConnections(server, maxConnections, log);
  const metricsUrl = await openInternalServer(
    {
      config,
      log,
      packageRoot,
      nodeVersion: options.nodeVersion,
      database,
      redis: admission.redis,
      failedAddresses,
      metrics,
      health,
      publicUrl,
      loadPages: options.loadOperatorPages,
    },
    opened,
  );
  url = urlOf(config.host, await listen(server, config.host, config.port));
  opened.add(server, (it) => close(it, SHUTDOWN_GRACE_MS, idleMs));

  async function stop(drains: boolean): Promise<void> {
    const drainSeconds = drains ? config.drainSeconds : 0;
    log.info({ drain_seconds: drainSeconds }, 'stopping');
    if (drainSeconds > 0) {
      closesConnections = true;
      await delay(drainSeconds * 1_000);
      // The system resets connections that wait to be accepted when the server stops listening. Around that moment,
      // clients keep their connections and so make no new ones.
      closesConnections = false;
      await delay(NEXT_REQUEST_MS);
    }
    if (drains) {
      idleMs = 2 * NEXT_REQUEST_MS;
      setTimeout(() => (closesConnections = true), NEXT_REQUEST_MS).unref();
    } else {
      closesConnections = true;
    }
    await opened.close();
    log.info('stopped');
  }
  return {
    url,
    metricsUrl,
    applied: database.applied,
    stop: (drains = false) => (stopping ??= stop(drains)),
  };
}

function openDatabaseOf({ config, packageRoot, migrate, onDatabaseLost }: ServiceOptions): Promise<ConnectedDatabase> {
  const { databaseMs } = timeBounds(config);
  return connectDatabase({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    packageRoot,
    applicationName: 'catalog serve',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: databaseMs,
    statementTimeoutMs: databaseMs,
    migrate,
    onLost: onDatabaseLost,
  });
}

function openReplica(
  config: Config,
  health: Health,
  { db: primary, fence }: ConnectedDatabase,
): { pool: Knex; read: Read } | undefined {
  if (config.databaseReadUrl === undefined) return undefined;
  const { replicaMs } = timeBounds(config);
  const pool = openDatabase({
    address: config.databaseReadUrl,
    applicationName: 'catalog serve (replica)',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: replicaMs,
    statementTimeoutMs: replicaMs,
    accept: (state) => fence.acceptReplica(state),
  });
  fence.onRaised(() => poolOf(pool).renew());
  return { pool, read: readFromReplica(primary, pool, (state, error) => health.note('replica', state, error)) };
}

/** Opens admission: with a cache and limits for all servers where there is a Redis, otherwise for this process alone. */
async function openAdmission(
  { config, log }: ServiceOptions,
  clock: SteadyClock,
  health: Health,
  { db, fence, connectDedicated }: ConnectedDatabase,
): Promise<OpenedAdmission> {
  // Loading callers leaves half of the connections to requests whose caller is known.
  const connections = Math.floor(config.databasePoolSize / 2);
  const loadCaller = callerLoader(db, connections, clock, config.requestTimeoutMs + LOOKUP_MARGIN_MS);
  const address = redisAddressOf(config);
  if (address === undefined) return openLocalAdmission({ loadCaller, fence });
  return openSharedAdmission({
    loadCaller,
    fence,
    clock,
    address,
    timeoutMs: timeBounds(config).redisMs,
    connectDedicated,
    onChange: (dependency, state, error) => health.note(dependency, state, error),
    onSentinelLost: (err) => log.warn({ err }, 'a Sentinel cannot be reached'),
  });
}

/**
 * Divides the time of a request, so that it gets its own answer rather than the deadline's. By default a request has
 * 900 ms: 800 for the database, 300 for the replica, 250 for Redis. The primary can then still answer in time when the
 * replica does not, and the database when Redis does not.
 *
 * @returns the bounds on a wait for each, in milliseconds
 */
function timeBounds({ requestTimeoutMs }: Config) {
  return {
    databaseMs: Math.round((requestTimeoutMs * 8) / 9),
    replicaMs: Math.round(requestTimeoutMs / 3),
    redisMs: Math.round((requestTimeoutMs * 5) / 18),
  };
}
