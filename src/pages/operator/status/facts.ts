import type { PublishedFolder } from '../../../copies/published.js';
import { readBounds, type FeedBounds } from '../../../catalog/feed.js';
import { readWriters, type Writers } from '../../../catalog/writers.js';
import { isDatabaseUnavailable } from '../../../platform/postgres/errors.js';
import { readMigrations } from '../../../platform/postgres/migrations.js';
import { ifAvailable, type RedisLink } from '../../../platform/redis/link.js';
import { readAllUsageOverTime, type UsageBucket } from '../../../usage/read-usage.js';
import type { Knex } from 'knex';

/** Facts about the database server, its schema and the feed. */
export interface DatabaseFacts {
  readonly version: string;
  readonly migrations: { readonly applied: readonly string[]; readonly pending: readonly string[] };
  readonly feed: FeedBounds;
  readonly writers: Writers;
}

/** @returns undefined while the database does not answer */
export function readDatabaseFacts(db: Knex): Promise<DatabaseFacts | undefined> {
  return unlessUnavailable(async () => {
    const [server, migrations, feed, writers] = await Promise.all([
      db.raw<{ rows: { server_version: string }[] }>('show server_version'),
      readMigrations(db),
      readBounds(db),
      readWriters(db),
    ]);
    const { files, applied } = migrations;
    return {
      version: server.rows[0]?.server_version ?? '',
      migrations: { applied, pending: files.filter((file) => !applied.includes(file)) },
      feed,
      writers,
    };
  });
}

/** @returns the requests of the last 24 hours by hour; undefined while the database does not answer */
export function readTraffic(db: Knex): Promise<readonly UsageBucket[] | undefined> {
  return unlessUnavailable(() => readAllUsageOverTime(db, '24h'));
}

async function unlessUnavailable<Value>(read: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isDatabaseUnavailable(error)) return undefined;
    throw error;
  }
}

/** @returns the name and the version of the Redis server; undefined without one, or while it does not answer */
export async function readRedisVersion(redis: RedisLink | undefined): Promise<string | undefined> {
  const info = redis && (await ifAvailable(redis.run((client) => client.info('server'))));
  const [, valkey] = /^valkey_version:(\S+)/m.exec(info ?? '') ?? [];
  const [, version] = /^redis_version:(\S+)/m.exec(info ?? '') ?? [];
  return valkey === undefined ? version : `Valkey ${valkey}`;
}

/** The newest published copy that this server serves. */
export type NewestCopy =
  | { readonly kind: 'none' }
  /** The folder cannot be read, or its manifest is damaged. */
  | { readonly kind: 'unreadable' }
  /** The time in milliseconds since 1970, and whether it is so long ago that mirrors soon cannot begin with the copy. */
  | { readonly kind: 'copy'; readonly createdAt: number; readonly isOld: boolean };

/** Half of the feed's window, as in the alert, in milliseconds. */
const OLD_AFTER_MS = 15 * 86_400_000;

/** @returns the newest copy in the folder of this server */
export async function readNewestCopy(copies: PublishedFolder): Promise<NewestCopy> {
  try {
    const published = await copies.read();
    if (published === undefined) return { kind: 'none' };
    const createdAt = Date.parse(published.newest.created_at);
    return { kind: 'copy', createdAt, isOld: Date.now() - createdAt > OLD_AFTER_MS };
  } catch {
    return { kind: 'unreadable' };
  }
}
