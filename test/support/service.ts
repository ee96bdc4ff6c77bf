import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Knex } from 'knex';
import type pino from 'pino';
import { createApp } from '../../src/app.js';
import { systemClock, type Micros } from '../../src/catalog/timestamps.js';
import { createDeveloper } from '../../src/developers/developers.js';
import type { AuthenticationParts } from '../../src/http/authenticate.js';
import { RequestMetrics } from '../../src/http/metrics.js';
import { close, createHttpServer, DEFAULT_SERVER_LIMITS, listen, type ServerLimits } from '../../src/http/server.js';
import { createKey, type KeyRecord } from '../../src/keys/keys.js';
import { admitFromDatabase } from '../../src/keys/admission.js';
import { LastUsed } from '../../src/keys/last-used.js';
import { DatabaseLookups } from '../../src/keys/lookups.js';
import {
  openSharedAdmission,
  type SharedAdmission,
  type SharedAdmissionParts,
} from '../../src/keys/shared-admission.js';
import { FailedAttempts, type FailurePolicy } from '../../src/limits/failed-attempts.js';
import { PlanLimiter } from '../../src/limits/plan-limiter.js';
import { DatabaseCheck } from '../../src/platform/database-check.js';
import { openConnection, openDatabase } from '../../src/platform/database.js';
import { Health } from '../../src/platform/health.js';
import { Metrics } from '../../src/platform/metrics.js';
import { readFrom } from '../../src/platform/replica.js';
import { createLog, type Logs } from '../../src/platform/log.js';
import { createTestDatabase } from './postgres.js';
import { send, type Reply, type RequestOptions } from './request.js';

/** The real application on a free port, on a database of its own. */
export interface TestService {
  readonly url: string;
  readonly databaseUrl: string;
  /** For arranging and for looking: the tests' own connections. */
  readonly db: Knex;
  readonly lastUsed: LastUsed;
  /** A key of a developer of its own, on a plan that no test uses up. */
  readonly key: string;
  /** What was lost and came back of Redis and the announcements of the database, in order. */
  readonly changes: string[];
  /** Makes a key of a developer of its own, on the same plan as {@link key}. */
  newKey(): Promise<KeyRecord & { readonly key: string }>;
  /** Every line that was logged. */
  readonly logged: readonly string[];
  /** The text of every query that the application sent. */
  readonly queries: readonly string[];
  /** The same, each with its parameters' values. */
  readonly statements: readonly Statement[];
  /** GET with the key, unless told otherwise. */
  get(path: string, options?: RequestOptions): Promise<Reply>;
  stop(): Promise<void>;
}

/** A query as it is sent. */
export interface Statement {
  readonly sql: string;
  readonly bindings: readonly unknown[];
}

export interface TestServiceOptions {
  /** A database that is there already; it is not dropped at the end. */
  readonly databaseUrl?: string;
  /** Limits in this Redis and a cache of callers; without it limits in memory and no cache. */
  readonly redisUrl?: string;
  /** How to connect that Redis, where it is not as usual. */
  readonly openAdmission?: (parts: SharedAdmissionParts) => Promise<SharedAdmission>;
  /** As in production by default. */
  readonly failurePolicy?: FailurePolicy;
  readonly trustedProxies?: number;
  readonly now?: () => Micros;
  readonly serverLimits?: Partial<ServerLimits>;
  readonly isStopping?: () => boolean;
}

/** More than any test asks for. */
const UNLIMITED = 2_000_000_000;

const DATABASE_TIMEOUT_MS = 800;

/** Starts the application. Stop it in an `after` hook. */
export async function startService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = options.databaseUrl === undefined ? await createTestDatabase() : undefined;
  const databaseUrl = options.databaseUrl ?? database?.url ?? '';
  const db = connect(databaseUrl, 0);
  const pool = connect(databaseUrl, DATABASE_TIMEOUT_MS);
  const logged: string[] = [];
  const queries: string[] = [];
  const statements: Statement[] = [];
  pool.on('query', ({ sql, bindings }: Statement) => {
    queries.push(sql);
    statements.push({ sql, bindings });
  });
  const lastUsed = new LastUsed();
  const changes: string[] = [];
  const lookups = new DatabaseLookups(pool, 4);
  const shared =
    options.redisUrl === undefined ? undefined : await share(options, options.redisUrl, databaseUrl, lookups, changes);
  const authentication: AuthenticationParts = {
    admit: shared?.admit ?? admitFromDatabase(lookups, new PlanLimiter()),
    failedAttempts: new FailedAttempts(shared?.redis, options.failurePolicy),
    trustedProxies: options.trustedProxies ?? 0,
  };
  const server = await serveApp(pool, authentication, lastUsed, logTo(logged), options);
  const port = await listen(server, '127.0.0.1', 0);
  const url = `http://127.0.0.1:${String(port)}`;
  const { key } = await createUnlimitedKey(db);
  return {
    url,
    databaseUrl,
    db,
    lastUsed,
    key,
    newKey: () => createUnlimitedKey(db),
    changes,
    logged,
    queries,
    statements,
    get: (path, { headers, ...rest } = {}) =>
      send(url, path, { headers: headers ?? { authorization: `Bearer ${key}` }, ...rest }),
    async stop() {
      await close(server, 1_000);
      await shared?.close();
      await pool.destroy();
      await db.destroy();
      await database?.drop();
    },
  };
}

function share(
  { openAdmission = openSharedAdmission }: TestServiceOptions,
  redisUrl: string,
  databaseUrl: string,
  lookups: DatabaseLookups,
  changes: string[],
): Promise<SharedAdmission> {
  const connectAlone = () =>
    openConnection({
      address: databaseUrl,
      applicationName: 'test',
      acquireTimeoutMs: DATABASE_TIMEOUT_MS,
      statementTimeoutMs: DATABASE_TIMEOUT_MS,
    });
  return openAdmission({
    redisUrl,
    lookups,
    connectAlone,
    onChange: (helper, state) => changes.push(`${helper} ${state}`),
  });
}

function connect(url: string, timeoutMs: number): Knex {
  return openDatabase({
    address: url,
    applicationName: 'test',
    poolSize: 8,
    acquireTimeoutMs: timeoutMs || 10_000,
    statementTimeoutMs: timeoutMs,
  });
}

function logTo(lines: string[]): Logs {
  const destination: pino.DestinationStream = {
    write: (text) => void lines.push(...text.trimEnd().split('\n')),
  };
  return createLog('info', destination);
}

async function serveApp(
  db: Knex,
  authentication: AuthenticationParts,
  lastUsed: LastUsed,
  { log, requestLog }: Logs,
  options: TestServiceOptions,
): Promise<Server> {
  const health = new Health(log, ['database']);
  const listener = await createApp({
    contract: await readFile(new URL('../../openapi.yaml', import.meta.url), 'utf8'),
    db,
    read: readFrom(db),
    authentication,
    lastUsed,
    health,
    databaseCheck: new DatabaseCheck(db, health),
    log,
    requestLog,
    requestMetrics: new RequestMetrics(new Metrics(), []),
    now: options.now ?? systemClock,
    isStopping: options.isStopping ?? (() => false),
  });
  return createHttpServer(listener, { ...DEFAULT_SERVER_LIMITS, ...options.serverLimits }, ({ requestId }) => {
    log.info({ request_id: requestId }, 'request rejected');
  });
}

async function createUnlimitedKey(db: Knex): Promise<KeyRecord & { readonly key: string }> {
  await db('plans')
    .insert({
      id: 'test',
      name: 'Test',
      requests_per_minute: UNLIMITED,
      requests_per_day: UNLIMITED,
      commercial_use: true,
    })
    .onConflict('id')
    .ignore();
  const developer = await createDeveloper(db, { projectName: 'Test project', attributionRequired: true });
  return createKey(db, { developerId: developer.id, planId: 'test' });
}
