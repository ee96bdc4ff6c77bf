import type { Knex } from 'knex';
import { createSyntheticTitles } from '../../support/catalog/synthetic-titles.js';
import { openTestDatabase } from '../../support/database.js';
import { startRedis } from '../../support/redis/redis.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { createCases, type Case, type CaseName } from './cases.js';
import type { Stores } from './servers.js';

/** A PostgreSQL with a catalogue, a Redis, and requests for a server on them. */
export interface Surroundings {
  readonly db: Knex;
  readonly stores: Stores;
  readonly cases: Readonly<Record<CaseName, Case>>;
  readonly close: () => Promise<void>;
}

/** Prepares them. They stop at the latest when this process exits. @param titles - the size of the catalogue */
export async function prepareSurroundings(titles: number): Promise<Surroundings> {
  const [database, redis, folder] = await Promise.all([openTestDatabase(), startRedis(), temporaryFolder()]);
  const { db, url } = database;
  const close = async (): Promise<void> => {
    await redis.stop();
    await database.close();
  };
  try {
    await createSyntheticTitles(url, titles);
    // As in a catalogue that has been in use for a while.
    await db.raw('vacuum (analyze) titles');
    await db.raw('checkpoint');
    return { db, stores: { databaseUrl: url, redisUrl: redis.url, folder }, cases: await createCases(db), close };
  } catch (error) {
    await close();
    throw error;
  }
}
