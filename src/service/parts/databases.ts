import type { Knex } from 'knex';
import type { Config } from '../../config/settings.js';
import { recurring } from '../../platform/async/recurring.js';
import { connectDatabase, type ConnectedDatabase } from '../../platform/postgres/connect.js';
import { databaseCheck, openDatabase, poolOf } from '../../platform/postgres/database.js';
import { lagOf, readFrom, readFromReplica, type Read } from '../../platform/postgres/replica.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import type { Health } from '../../platform/telemetry/health.js';
import type { ServiceOptions } from '../options.js';

/** The interval of database checks, in milliseconds. They report a loss even without probes. */
const CHECK_INTERVAL_MS = 2_000;

/** The interval of checks of the replica, in milliseconds, and so how long no query uses it after a failure. */
const REPLICA_CHECK_INTERVAL_MS = 5_000;

/** The largest bound on a statement of a job, in milliseconds: a shutdown waits for one and a half of it. */
const MOST_JOB_MS = 5_000;

const PROMOTED = 'a standby was promoted: restart the feed (catalog feed restart) unless replication was synchronous';

/** The primary, and the replica if there is one. */
export interface Databases extends ConnectedDatabase {
  /** Reads from the replica while it answers. */
  readonly read: Read;
  /** By the server that they lead to. */
  readonly pools: Readonly<Record<string, Knex>>;
  /** Checks the primary and reports the result to health. */
  readonly check: () => Promise<void>;
  /** How far the replica is behind, in seconds; undefined if that cannot be measured. Absent without a replica. */
  readonly replicaLag?: () => Promise<number | undefined>;
  /** How many events of changes by this server could not be recorded. */
  readonly eventsLost: () => number;
}

/** Opens the databases, and begins to check the primary. */
export async function openDatabases(options: ServiceOptions, health: Health, opened: CloseStack): Promise<Databases> {
  const { config, log, packageRoot, migrate, onDatabaseLost, overrides } = options;
  const { databaseMs, replicaMs } = timeBounds(config);
  let lost = 0;
  const eventsLost = (): number => lost;
  const primary = await connectDatabase({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    packageRoot,
    applicationName: 'catalog serve',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: databaseMs,
    statementTimeoutMs: databaseMs,
    migrate,
    onLost: onDatabaseLost,
    onWarning: (warning) => {
      lost += 1;
      log.warn(warning);
    },
  });
  opened.add(primary, (it) => it.close());
  overrides?.prepare?.(primary);
  const { db, fence } = primary;
  fence.onRaised(() => log.warn({ timeline: fence.newest?.number }, PROMOTED));
  const check = databaseCheck(db, health, databaseMs);
  opened.add(recurring(check, CHECK_INTERVAL_MS), (it) => it.stop());
  const common = { ...primary, check, eventsLost };
  if (config.databaseReadUrl === undefined) return { ...common, read: readFrom(db), pools: { primary: db } };
  const replica = openDatabase({
    address: config.databaseReadUrl,
    applicationName: 'catalog serve (replica)',
    poolSize: config.databasePoolSize,
    acquireTimeoutMs: replicaMs,
    statementTimeoutMs: replicaMs,
    accept: (state) => fence.acceptReplica(state),
  });
  opened.add(replica, (it) => it.destroy());
  fence.onRaised(() => poolOf(replica).renew());
  const read = readFromReplica(db, replica, (state, error) => health.note('replica', state, error));
  // The state of the replica is true from the start, also for a server without requests.
  await read.check();
  opened.add(recurring(read.check, REPLICA_CHECK_INTERVAL_MS), (it) => it.stop());
  return { ...common, read, pools: { primary: db, replica }, replicaLag: lagOf(db, replica) };
}

/**
 * Divides the time of a request, so that it gets its own answer rather than the deadline's. By default a request has
 * 900 ms: 800 for the database, 300 for the replica, 250 for Redis. The primary can then still answer in time when the
 * replica does not, and the database when Redis does not.
 *
 * @returns the bounds on a wait for each, in milliseconds, and that on a statement of a job, by default 2,000
 */
export function timeBounds({ requestTimeoutMs }: Config) {
  return {
    databaseMs: Math.round((requestTimeoutMs * 8) / 9),
    replicaMs: Math.round(requestTimeoutMs / 3),
    redisMs: Math.round((requestTimeoutMs * 5) / 18),
    jobMs: Math.min(MOST_JOB_MS, Math.round((requestTimeoutMs * 20) / 9)),
  };
}
