import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Knex } from 'knex';
import type pino from 'pino';
import { type Logger } from 'pino';
import { createApp } from '../../src/app.js';
import { systemClock, type Micros } from '../../src/catalog/timestamps.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { close, createHttpServer, DEFAULT_SERVER_LIMITS, listen, type ServerLimits } from '../../src/http/server.js';
import { createKey } from '../../src/keys/keys.js';
import { LastUsed } from '../../src/keys/last-used.js';
import { PlanLimiter } from '../../src/limits/plan-limiter.js';
import { openDatabase } from '../../src/platform/database.js';
import { readFrom } from '../../src/platform/replica.js';
import { createLog } from '../../src/platform/log.js';
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
  readonly now?: () => Micros;
  readonly serverLimits?: Partial<ServerLimits>;
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
  const server = await serveApp(pool, lastUsed, logTo(logged), options);
  const port = await listen(server, '127.0.0.1', 0);
  const url = `http://127.0.0.1:${String(port)}`;
  const key = await createUnlimitedKey(db);
  return {
    url,
    databaseUrl,
    db,
    lastUsed,
    key,
    logged,
    queries,
    statements,
    get: (path, { headers, ...rest } = {}) =>
      send(url, path, { headers: headers ?? { authorization: `Bearer ${key}` }, ...rest }),
    async stop() {
      await close(server, 1_000);
      await pool.destroy();
      await db.destroy();
      await database?.drop();
    },
  };
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

function logTo(lines: string[]): Logger {
  return createLog('info', { write: (line: string) => void lines.push(line) } satisfies pino.DestinationStream);
}

async function serveApp(db: Knex, lastUsed: LastUsed, log: Logger, options: TestServiceOptions): Promise<Server> {
  const app = await createApp({
    contract: await readFile(new URL('../../openapi.yaml', import.meta.url), 'utf8'),
    db,
    read: readFrom(db),
    limiter: new PlanLimiter(),
    lastUsed,
    log,
    now: options.now ?? systemClock,
    isStopping: () => false,
  });
  return createHttpServer(app.callback(), { ...DEFAULT_SERVER_LIMITS, ...options.serverLimits }, ({ requestId }) => {
    log.info({ request_id: requestId }, 'request rejected');
  });
}

async function createUnlimitedKey(db: Knex): Promise<string> {
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
  return (await createKey(db, { developerId: developer.id, planId: 'test' })).key;
}
