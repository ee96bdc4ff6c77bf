import type { Knex } from 'knex';
import { isProviderUp } from '../../../accounts/check-provider.js';
import { readBounds } from '../../../catalog/feed.js';
import { readWriters } from '../../../catalog/writers.js';
import { openPublishedFolder, type PublishedFolder } from '../../../copies/published.js';
import { isDatabaseUnavailable } from '../../../platform/postgres/errors.js';
import { readMigrations } from '../../../platform/postgres/migrations.js';
import type { ComponentState, FailedChanges, Outage } from '../../../platform/telemetry/health.js';
import { fromSeconds, type Micros } from '../../../platform/time/micros.js';
import { readAllUsageOverTime } from '../../../usage/read-usage.js';
import type { OperatorParts } from '../context.js';

/** Half of the feed's window, as in the alert, in milliseconds. */
const OLD_COPY_AFTER_MS = 15 * 86_400_000;

/** As in the alerts: more losses within this time, in milliseconds, are those of a component that comes and goes. */
const FLAPPING = { losses: 5, withinMs: 900_000 } as const;

/** How far behind the replica is a fault, in seconds, as in the alert. */
const BEHIND_SECONDS = 60;

/** The state of the service, as the first page shows it. */
export interface Status extends Pick<OperatorParts, 'jobs' | 'build' | 'nodeVersion'> {
  readonly components: readonly Component[];
  /** Whether the servers share the counts of limits. */
  readonly hasRedis: boolean;
  /** Undefined while the database does not answer. */
  readonly facts: DatabaseFacts | undefined;
  /** When a standby was promoted, in milliseconds since 1970, if the feed has not been restarted since. */
  readonly promotedAt: number | undefined;
  /** Undefined without `COPIES_DIR`. */
  readonly newestCopy: NewestCopy | undefined;
  readonly failedChanges: FailedChanges;
}

/** The sources of the status. */
export type StatusParts = Pick<
  OperatorParts,
  'config' | 'db' | 'health' | 'checkDatabase' | 'replicaLag' | 'jobs' | 'fence' | 'build' | 'nodeVersion'
>;

/** Makes a function that reads the status. It rejects only for faults of the service itself. */
export function statusLoader({
  config,
  db,
  health,
  checkDatabase,
  replicaLag,
  fence,
  ...shown
}: StatusParts): () => Promise<Status> {
  const { oidcIssuer, copiesDir } = config;
  const readProvider = oidcIssuer === undefined ? undefined : providerReader(oidcIssuer);
  const copies = copiesDir === undefined ? undefined : openPublishedFolder(copiesDir);
  return async () => {
    const [facts, provider, published, lag] = await Promise.all([
      readDatabaseFacts(db),
      readProvider?.(),
      copies && readNewestCopy(copies),
      replicaLag?.(),
      // Otherwise a loss shows here only once a check has found it.
      checkDatabase(),
    ]);
    const { feedStart = 0n } = facts?.feed ?? {};
    const { promotedAt } = fence;
    return {
      ...shown,
      facts,
      components: [
        ...Array.from(health.components, ([dependency, current]) =>
          judge(current, health.outageOf(dependency), dependency === 'replica' ? lag : undefined),
        ),
        ...(provider ? [judge(provider, PROVIDER_OUTAGE)] : []),
      ],
      failedChanges: health.failedChanges,
      hasRedis: health.components.has('redis'),
      promotedAt: promotedAt !== undefined && feedStart < BigInt(promotedAt) * 1000n ? promotedAt : undefined,
      newestCopy: published && judgeCopy(published, feedStart),
    };
  };
}

/** A component that the service works with. */
export interface Component {
  readonly name: string;
  readonly current: Omit<ComponentState, 'lossCount'>;
  /** How far a replica is behind, in seconds; 0 for any other component, and if it is not known. */
  readonly lag: number;
  /** What is wrong with it, and what to do. */
  readonly fault: Fault | undefined;
}

/** A fault of a component, as the operator pages describe it. */
export interface Fault extends Pick<Outage, 'consequence' | 'advice' | 'guide'> {
  readonly label: 'Down' | 'Slow' | 'Comes and goes' | 'Behind';
}

function judge(current: Component['current'], { name, ...outage }: Omit<Outage, 'forCallers'>, lag = 0): Component {
  const { state, losses } = current;
  const recent = losses.filter((at) => at > Date.now() - FLAPPING.withinMs).length;
  let fault: Fault | undefined;
  if (state !== 'up') fault = { ...outage, label: state === 'slow' ? 'Slow' : 'Down' };
  else if (recent > FLAPPING.losses) {
    fault = {
      label: 'Comes and goes',
      consequence: `It was lost ${recent} times in the last 15 minutes.`,
      advice: 'Look for the reasons in the log.',
      guide: 'runbook#a-component-comes-and-goes',
    };
  } else if (lag > BEHIND_SECONDS) {
    fault = {
      label: 'Behind',
      consequence: `It is ${Math.round(lag)} s behind the primary, and so are mirrors.`,
      advice: 'Find out what holds up replay.',
      guide: 'runbook#the-read-replica-lags',
    };
  }
  return { name, current, lag, fault };
}

/** The effect of losing the identity provider. */
const PROVIDER_OUTAGE = {
  name: 'Identity provider',
  consequence: 'Nobody can sign in to the developer settings through it. Keys, sessions and passkeys keep working.',
  advice: 'Check the provider. Until it is back, create sign-in links.',
  guide: 'sign-in#when-the-provider-is-down',
};

function providerReader(issuer: string): () => Promise<Component['current']> {
  let known: Component['current'] | undefined;
  return async () => {
    const state = (await isProviderUp(issuer)) ? 'up' : 'lost';
    if (known?.state !== state) known = { state, since: Date.now(), losses: [] };
    return known;
  };
}

/** The database server, its schema, the feed, and the requests of the last 24 hours by hour. */
export type DatabaseFacts = NonNullable<Awaited<ReturnType<typeof readDatabaseFacts>>>;

/** @returns undefined while the database does not answer */
async function readDatabaseFacts(db: Knex) {
  try {
    const [server, { files, applied }, feed, writers, traffic] = await Promise.all([
      db.raw<{ rows: { server_version: string }[] }>('show server_version'),
      readMigrations(db),
      readBounds(db),
      readWriters(db),
      readAllUsageOverTime(db),
    ]);
    const pending = files.filter((file) => !applied.includes(file));
    return { version: server.rows[0]?.server_version, migrations: { applied, pending }, feed, writers, traffic };
  } catch (error) {
    if (isDatabaseUnavailable(error)) return undefined;
    throw error;
  }
}

/** The newest published copy: when it was made, and its fault; or why there is no copy. */
export type NewestCopy =
  | { readonly state: 'missing' | 'unreadable' }
  | { readonly state: 'good' | 'refused' | 'old'; readonly createdAt: string };

type ReadCopy = Exclude<NewestCopy, { createdAt: string }> | { readonly createdAt: string; readonly position: Micros };

async function readNewestCopy(copies: PublishedFolder): Promise<ReadCopy> {
  try {
    const published = await copies.read();
    if (published === undefined) return { state: 'missing' };
    const { created_at: createdAt, position } = published.newest;
    return { createdAt, position: fromSeconds(position) };
  } catch {
    return { state: 'unreadable' };
  }
}

/** A mirror cannot begin with a copy that is older than the feed's window, or from before a restart of the feed. */
function judgeCopy(copy: ReadCopy, feedStart: Micros): NewestCopy {
  if ('state' in copy) return copy;
  const { createdAt, position } = copy;
  if (position < feedStart) return { state: 'refused', createdAt };
  return { state: Date.now() - Date.parse(createdAt) > OLD_COPY_AFTER_MS ? 'old' : 'good', createdAt };
}
