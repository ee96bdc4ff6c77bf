import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import type pino from 'pino';
import { readConfig } from '../../src/config/config.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { createLog } from '../../src/platform/telemetry/log.js';
import { createService } from '../../src/service/create-service.js';
import type { ServiceOverrides } from '../../src/service/options.js';
import * as operatorPages from '../../src/service/operator-pages.js';
import * as site from '../../src/service/site.js';
import { connectTo, openTestDatabase } from './database.js';
import { stateChangesIn } from './http/readiness.js';
import { newKey } from './keys/new-key.js';
import { PATIENT } from './program.js';
import { send, type Reply, type RequestOptions } from './request.js';

/** The service as `catalog serve` makes it, in this process: on a free port, on a database of its own. */
export interface TestService {
  readonly url: string;
  /** The origin that its pages and documents name. */
  readonly publicUrl: string;
  /** The origin of the metrics and the operator pages; undefined without the setting METRICS_ADDRESS. */
  readonly operatorUrl: string | undefined;
  readonly databaseUrl: string;
  /** For arranging and for looking: the tests' own connections. */
  readonly db: Knex;
  /** A key of a developer of its own, on a plan that no test uses up. */
  readonly key: string;
  /** Which components were lost and came back, in order, as the log has it: `redis lost`. */
  readonly changes: string[];
  /** Makes a key of a developer of its own, on the same plan as {@link key}. */
  newKey(): Promise<CreatedKey>;
  /** Every line that was logged. */
  readonly logged: readonly string[];
  /** The text of every query of the service. */
  readonly queries: readonly string[];
  /** The same, each with its parameters' values. */
  readonly statements: readonly Statement[];
  /** GET with the key, unless told otherwise. */
  get(path: string, options?: RequestOptions): Promise<Reply>;
  /** Further calls wait for the first one. */
  stop(): Promise<void>;
}

/** A query and the values of its parameters. */
export interface Statement {
  readonly sql: string;
  readonly bindings: readonly unknown[];
}

export interface TestServiceOptions extends ServiceOverrides {
  /** A database that is there already; it is not dropped at the end. */
  readonly databaseUrl?: string;
  /** Limits in this Redis and a cache of callers; without it limits in memory and no cache. */
  readonly redisUrl?: string | undefined;
  readonly trustedProxies?: number;
  /** Further settings, by the names of their environment variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

const PACKAGE_ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** In milliseconds, so long that no test counts such a statement. */
const HOUR_MS = 3_600_000;

/** Starts the service. Stop it in an `after` hook. */
export async function startService(options: TestServiceOptions = {}): Promise<TestService> {
  const { databaseUrl: givenUrl, redisUrl, trustedProxies, settings, ...overrides } = options;
  const database = givenUrl === undefined ? await openTestDatabase() : undefined;
  const databaseUrl = givenUrl ?? database?.url ?? '';
  const logged: string[] = [];
  const changes: string[] = [];
  const statements: Statement[] = [];
  const queries: string[] = [];
  const config = readConfig({
    PORT: '0',
    METRICS_ADDRESS: 'off',
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '8',
    REDIS_URL: redisUrl,
    TRUST_PROXY: trustedProxies?.toString(),
    ...PATIENT,
    ...settings,
  });
  const service = await createService({
    config,
    site: config.site ? site : undefined,
    operatorPages: config.operatorPages ? operatorPages : undefined,
    log: createLog('info', keepLines(logged, changes)),
    droppedLines: () => 0,
    packageRoot: PACKAGE_ROOT,
    command: 'node .build/cli.js',
    nodeVersion: process.versions.node,
    migrate: false,
    overrides: {
      jobIntervalMs: HOUR_MS,
      prepare(primary) {
        const watch = (db: Knex): Knex =>
          db.on('query', ({ sql, bindings }: Statement) => {
            queries.push(sql);
            statements.push({ sql, bindings });
          });
        watch(primary.db);
        const { openPool } = primary;
        Object.assign(primary, { openPool: (bounds: Parameters<typeof openPool>[0]) => watch(openPool(bounds)) });
      },
      ...overrides,
    },
  });
  const { url, metricsUrl } = service;
  const db = database?.db ?? connectTo(databaseUrl);
  const { key } = await newKey(db);
  let stopping: Promise<void> | undefined;
  return {
    url,
    publicUrl: config.publicUrl ?? url.replace('127.0.0.1', 'localhost'),
    operatorUrl: metricsUrl && new URL(metricsUrl).origin,
    databaseUrl,
    db,
    key,
    newKey: () => newKey(db),
    changes,
    logged,
    queries,
    statements,
    get: (path, { headers, ...rest } = {}) =>
      send(url, path, { headers: headers ?? { authorization: `Bearer ${key}` }, ...rest }),
    stop: () => (stopping ??= stop()),
  };

  async function stop(): Promise<void> {
    await service.stop();
    await (database?.close() ?? db.destroy());
  }
}

function keepLines(lines: string[], changes: string[]): pino.DestinationStream {
  return {
    write(text) {
      for (const line of text.trimEnd().split('\n')) {
        lines.push(line);
        const [change] = stateChangesIn(line);
        const [name] = change?.split(' ') ?? [];
        if (change !== undefined && changes.findLast((each) => each.startsWith(`${name} `)) !== change) {
          changes.push(change);
        }
      }
    },
  };
}
