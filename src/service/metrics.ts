import type { Knex } from 'knex';
import { readBounds } from '../catalog/feed.js';
import type { PublishedFolder } from '../copies/published.js';
import { operations } from '../api/index.js';
import { RequestMetrics } from '../http/telemetry/record-requests.js';
import { poolOf } from '../platform/postgres/database.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { readBuild, type Build } from '../platform/process/package-root.js';
import { fromSeconds } from '../platform/time/micros.js';
import type { Databases } from './parts/databases.js';
import type { Notices } from './parts/notices.js';
import type { OpenedParts } from './open-parts.js';
import type { ServiceOptions } from './options.js';

/**
 * Creates the metrics of the service. Requests are counted when they end. All other numbers are read at each scrape.
 *
 * No label has a value that a client or a developer chose.
 */
export async function createMetrics({ packageRoot, droppedLines }: ServiceOptions, parts: OpenedParts) {
  const metrics = new Metrics();
  const requestMetrics = new RequestMetrics(metrics, parts.health, Object.keys(operations));
  addState(metrics, await readBuild(packageRoot), droppedLines, parts);
  addAdmission(metrics, parts);
  addDatabases(metrics, parts.databases);
  addJobs(metrics, parts.records);
  if (parts.notices) addNotices(metrics, parts.notices);
  if (parts.copies !== undefined) addCopies(metrics, parts.copies, parts.databases.db);
  metrics.addProcess();
  return { metrics, requestMetrics };
}

function addState(metrics: Metrics, build: Build, droppedLines: () => number, { health }: OpenedParts): void {
  metrics.readGauge({
    name: 'catalog_build_info',
    help: 'Always 1; the labels are the version and the commit that it was built from.',
    labels: ['version', 'commit'],
    read: () => [{ labels: { ...build }, value: 1 }],
  });
  metrics.readGauge({
    name: 'catalog_component_up',
    help: 'Whether a dependency is reachable: 1 or 0.',
    labels: ['component'],
    read: () =>
      [...health.components].map(([component, { state }]) => ({
        labels: { component },
        value: state === 'up' ? 1 : 0,
      })),
  });
  metrics.readCounter({
    name: 'catalog_component_losses_total',
    help: 'How often a dependency was lost, or became too slow to use.',
    labels: ['component'],
    read: () =>
      Array.from(health.components, ([component, { lossCount }]) => ({ labels: { component }, value: lossCount })),
  });
  metrics.readCounter({
    name: 'catalog_log_lines_dropped_total',
    help: 'Lines of the log that could not be written.',
    read: droppedLines,
  });
}

function addAdmission(
  metrics: Metrics,
  { admission: { limiter, failedKeys, cache, redis }, failedKeys: failedAttempts }: OpenedParts,
): void {
  metrics.readCounter({
    name: 'catalog_rate_limit_decisions_total',
    help: 'Requests with a valid key, by whether their plan allowed them, and where they were counted.',
    labels: ['outcome', 'counted_in'],
    read: () =>
      entries(limiter.decisions, (counted_in, { charged, refused }) => [
        { labels: { outcome: 'served', counted_in }, value: charged },
        { labels: { outcome: 'refused', counted_in }, value: refused },
      ]).flat(),
  });
  metrics.readCounter({
    name: 'catalog_failed_keys_total',
    help: 'Requests with a key that is not accepted: unknown, revoked, expired, or of a suspended developer.',
    labels: ['reason'],
    read: () => entries(failedKeys, (reason, value) => ({ labels: { reason }, value })),
  });
  metrics.readCounter({
    name: 'catalog_failed_keys_over_limit_total',
    help: 'Failed keys answered with 429, after too many from the same address.',
    read: () => failedAttempts.overLimit,
  });
  if (cache === undefined || redis === undefined) return;
  metrics.readGauge({
    name: 'catalog_redis_shard_up',
    help: 'Whether a shard of Redis is reachable: 1 or 0. It has the id of its master; without a cluster, it is "redis".',
    labels: ['node'],
    read: () => redis.shards.map(({ name, state }) => ({ labels: { node: name }, value: Number(state === 'up') })),
  });
  metrics.readCounter({
    name: 'catalog_caller_cache_lookups_total',
    help: 'Lookups of keys in the cache; stale is a record whose version could not be confirmed.',
    labels: ['result'],
    read: () => entries(cache.lookupCounts, (result, value) => ({ labels: { result }, value })),
  });
  metrics.readGauge({
    name: 'catalog_caller_cache_records',
    help: 'Cached callers, including those whose version has ended.',
    read: () => cache.size,
  });
  metrics.readGauge({
    name: 'catalog_caller_cache_open',
    help: 'Whether the cache may be used: 1, or 0 while announcements of changes cannot be read.',
    read: () => Number(cache.isOpen),
  });
}

/** The label is not named `job`: Prometheus has that name for the target. */
function addJobs(metrics: Metrics, { jobs, usage }: OpenedParts['records']): void {
  metrics.readCounter({
    name: 'catalog_job_failures_total',
    help: 'Rounds of a job beside the requests that failed.',
    labels: ['name'],
    read: () => Array.from(jobs.states, ([name, { failures }]) => ({ labels: { name }, value: failures })),
  });
  metrics.readGauge({
    name: 'catalog_job_last_success_timestamp_seconds',
    help: 'When a round of a job last succeeded, in Unix time. A job for all servers may run on any of them.',
    labels: ['name'],
    read: () =>
      Array.from(jobs.states, ([name, { succeededAt }]) => ({ labels: { name }, value: succeededAt / 1_000 })),
  });
  metrics.readGauge({
    name: 'catalog_usage_rows_waiting',
    help: 'Usage counts, one for each key, hour, operation and outcome, that are not saved yet.',
    read: () => usage.waiting,
  });
  metrics.readCounter({
    name: 'catalog_usage_requests_lost_total',
    help: 'Requests that are missing in the usage of keys, because too many counts waited to be saved.',
    read: () => usage.lost,
  });
}

function addNotices(metrics: Metrics, { counts }: Notices): void {
  metrics.readGauge({
    name: 'catalog_notices_pending',
    help: 'Notices to the operator that the receiver has not accepted yet.',
    read: () => counts.pending,
  });
  metrics.readCounter({
    name: 'catalog_notices_given_up_total',
    help: 'Notices that the receiver has not accepted within three days.',
    read: () => counts.givenUp,
  });
}

function addCopies(metrics: Metrics, copies: PublishedFolder, db: Knex): void {
  metrics.readGauge({
    name: 'catalog_newest_copy_timestamp_seconds',
    help: 'When the newest published copy was made, in Unix time; 0 without one.',
    async read() {
      const published = await copies.read().catch(() => undefined);
      return published === undefined ? 0 : Date.parse(published.newest.created_at) / 1_000;
    },
  });
  metrics.readGauge({
    name: 'catalog_newest_copy_refused',
    help: 'Whether the feed refuses the position of the newest published copy, as after a restart: 1 or 0.',
    read: () =>
      Promise.all([copies.read(), readBounds(db)]).then(([copy, { feedStart }]) =>
        copy === undefined ? [] : Number(fromSeconds(copy.newest.position) < feedStart),
      ),
  });
}

function addDatabases(metrics: Metrics, { pools, fence, eventsLost, replicaLag }: Databases): void {
  metrics.readCounter({
    name: 'catalog_events_lost_total',
    help: 'Events of changes of keys and developers, and notices of leaked keys, that could not be recorded.',
    read: eventsLost,
  });
  metrics.readGauge({
    name: 'catalog_database_timeline',
    help: 'The timeline of the database. It grows when a standby is promoted.',
    read: () => fence.newest?.number ?? [],
  });
  metrics.readGauge({
    name: 'catalog_replica_lag_seconds',
    help: 'How far the replica is behind the primary; 0 if it is up to date.',
    read: async () => (await replicaLag?.()) ?? [],
  });
  metrics.readGauge({
    name: 'catalog_database_connections',
    help: 'Connections of a pool, used or idle.',
    labels: ['pool', 'state'],
    read: () =>
      entries(pools, (pool, db) => {
        const { used, idle } = poolOf(db).state;
        return [
          { labels: { pool, state: 'used' }, value: used },
          { labels: { pool, state: 'idle' }, value: idle },
        ];
      }).flat(),
  });
  for (const [name, help, key] of [
    ['catalog_database_connections_max', 'Maximum number of connections of a pool.', 'max'],
    ['catalog_database_connections_pending_requests', 'Queries that wait for a connection of a pool.', 'waiting'],
  ] as const) {
    const read = () => entries(pools, (pool, db) => ({ labels: { pool }, value: poolOf(db).state[key] }));
    metrics.readGauge({ name, help, labels: ['pool'], read });
  }
}

function entries<Value, Result>(
  record: Readonly<Record<string, Value>>,
  convert: (name: string, value: Value) => Result,
): Result[] {
  return Object.entries(record).map(([name, value]) => convert(name, value));
}
