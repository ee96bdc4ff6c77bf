import type { Knex } from 'knex';
import { isProviderUp } from '../../../accounts/check-provider.js';
import { readBounds } from '../../../catalog/feed.js';
import { readWriters } from '../../../catalog/writers.js';
import { openPublishedFolder, type PublishedFolder } from '../../../copies/published.js';
import { isDatabaseUnavailable } from '../../../platform/postgres/errors.js';
import { readMigrations } from '../../../platform/postgres/migrations.js';
import type { ComponentState, Outage } from '../../../platform/telemetry/health.js';
import { fromSeconds, type Micros } from '../../../platform/time/micros.js';
import { readAllUsageOverTime } from '../../../usage/read-usage.js';
import type { OperatorParts } from '../context.js';

/** Half of the feed's window, as in the alert, in milliseconds. */
const OLD_COPY_AFTER_MS = 15 * 86_400_000;

/** The state of the service, as the first page shows it. */
export interface Status extends Pick<OperatorParts, 'jobs' | 'build' | 'nodeVersion'> {
  readonly components: readonly Component[];
  /** Undefined without Redis. */
  readonly redis: ComponentState | undefined;
  /** Undefined while the database does not answer. */
  readonly facts: DatabaseFacts | undefined;
  /** When a standby was promoted, in milliseconds since 1970, if the feed has not been restarted since. */
  readonly promotedAt: number | undefined;
  /** Undefined without `COPIES_DIR`. */
  readonly newestCopy: NewestCopy | undefined;
}

/** What the status is read from. */
export type StatusParts = Pick<
  OperatorParts,
  'config' | 'db' | 'health' | 'checkDatabase' | 'jobs' | 'fence' | 'build' | 'nodeVersion'
>;

/** Makes a function that reads the status. It rejects only for faults of the service itself. */
export function statusLoader({
  config,
  db,
  health,
  checkDatabase,
  fence,
  ...shown
}: StatusParts): () => Promise<Status> {
  const { oidcIssuer, copiesDir } = config;
  const readProvider = oidcIssuer === undefined ? undefined : providerReader(oidcIssuer);
  const copies = copiesDir === undefined ? undefined : openPublishedFolder(copiesDir);
  return async () => {
    const [facts, provider, published] = await Promise.all([
      readDatabaseFacts(db),
      readProvider?.(),
      copies && readNewestCopy(copies),
      // Otherwise a loss shows here only once a check has found it.
      checkDatabase(),
    ]);
    const { feedStart = 0n } = facts?.feed ?? {};
    const { promotedAt } = fence;
    return {
      ...shown,
      facts,
      components: [
        ...Array.from(health.components, ([dependency, current]) => ({ ...health.outageOf(dependency), current })),
        ...(provider ? [{ ...PROVIDER_OUTAGE, current: provider }] : []),
      ],
      redis: health.components.get('redis'),
      promotedAt: promotedAt !== undefined && feedStart < BigInt(promotedAt) * 1000n ? promotedAt : undefined,
      newestCopy: published && judgeCopy(published, feedStart),
    };
  };
}

/** A component that the service works with. */
export interface Component extends Omit<Outage, 'forCallers'> {
  readonly current: Omit<ComponentState, 'lossCount'>;
}

/** What follows from the loss of the identity provider. */
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

/** The newest published copy: when it was made, and what is wrong with it; or why there is none. */
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
