import type { Knex } from 'knex';
import { createSyntheticTitles } from '../../support/catalog/synthetic-titles.js';
import { openTestDatabase } from '../../support/database.js';
import { startRedis } from '../../support/redis.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { prepareIngredients, type Ingredients } from './cases.js';
import type { Stores } from './servers.js';

/** A PostgreSQL with a catalogue, a Redis, and what requests to their server are made from. */
export interface Surroundings {
  readonly db: Knex;
  readonly stores: Stores;
  readonly ingredients: Ingredients;
  close(): Promise<void>;
}

/** Makes them. They go away with this process at the latest. @param titles - how many the catalogue has */
export async function prepareSurroundings(titles: number): Promise<Surroundings> {
  const [database, redis, folder] = await Promise.all([openTestDatabase(), startRedis(), temporaryFolder()]);
  const close = async (): Promise<void> => {
    await redis.stop();
    await database.close();
  };
  try {
    await createSyntheticTitles(database.url, titles);
    // As a catalogue is after a while, rather than a moment after it was loaded.
    await database.db.raw('vacuum (analyze) titles');
    await database.db.raw('checkpoint');
    const ingredients = await prepareIngredients(database.db);
    return { db: database.db, stores: { databaseUrl: database.url, redisUrl: redis.url, folder }, ingredients, close };
  } catch (error) {
    await close();
    throw error;
  }
}
