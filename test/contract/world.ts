import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { prepareDemo } from '../../src/commands/demo/prepare-demo.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { ROOT } from '../support/guides.js';
import { createTestDatabase } from '../support/postgres.js';
import { startService, type TestService } from '../support/service.js';
import type { Endpoint, OwnedConditions, Target } from './document/exchanges.js';
import { SPOILED, startSpoiler, type Spoiler, type SpoiledCode } from './drift/spoiled-requests.js';

/** A service that works, and others that do not. */
export interface World extends Target {
  readonly service: TestService;
  readonly owned: OwnedConditions;
  stop(): Promise<void>;
}

/** Soon over, so that no test waits long; not so soon that a request which is sent at once comes too late. */
const IMPATIENCE = { headersTimeoutMs: 60, requestTimeoutMs: 120, checkIntervalMs: 20 };

/** Starts services in every condition that the contract has an answer for, each on a database of its own. */
export async function startWorld(): Promise<World> {
  const service = await startService();
  // More than a page of changes, and what the examples of the contract name.
  await prepareDemo(service.db, fileURLToPath(ROOT).replace(/\/$/, ''));
  const exhausted = { url: service.url, key: await createKeyOfSmallestPlan(service.db) };
  await service.get('/api/v1/me', { headers: { authorization: `Bearer ${exhausted.key}` } });

  // Not one may fail, so that the first of the next minute is one too many as well.
  const strict = await startService({ failurePolicy: { limit: 0, windowSeconds: 60 } });
  const guessing = { url: strict.url, key: generateApiKey().key };

  const withoutCatalogue = await startService();
  for (const table of ['titles', 'people', 'collections', 'catalog_counts']) {
    await withoutCatalogue.db.schema.renameTable(table, `${table}_lost`);
  }
  const withoutPlans = await startService();
  await withoutPlans.db.schema.renameTable('plans', 'plans_lost');

  const impatient = await startService({ serverLimits: IMPATIENCE });
  const spoilers = new Map<string, Spoiler & Endpoint>();
  for (const code of Object.keys(SPOILED) as SpoiledCode[]) {
    const { url, key } = code === 'request_timeout' ? impatient : service;
    spoilers.set(code, { ...(await startSpoiler(url, code)), key });
  }

  const database = await createTestDatabase();
  const withoutDatabase = await startService({ databaseUrl: database.url });
  await database.drop();

  return {
    service,
    url: service.url,
    key: service.key,
    titleId: 'blade-runner-1982',
    owned: {
      exhausted,
      guessing,
      damaged: (operationId) => (operationId === 'getMe' ? withoutPlans : withoutCatalogue),
      down: withoutDatabase,
      spoiled: (code) => spoilers.get(code) ?? service,
    },
    async stop() {
      for (const spoiler of spoilers.values()) await spoiler.stop();
      const services = [service, strict, withoutCatalogue, withoutPlans, impatient, withoutDatabase];
      for (const each of services) await each.stop();
    },
  };
}

/** One request a day, so that the limit stays used up however long the tests take. */
async function createKeyOfSmallestPlan(db: Knex): Promise<string> {
  await setPlan(db, 'smallest', {
    name: 'Smallest',
    requestsPerMinute: 1,
    requestsPerDay: 1,
    commercialUse: false,
  });
  const developer = await createDeveloper(db, { projectName: 'Small project', attributionRequired: false });
  return (await createKey(db, { developerId: developer.id, planId: 'smallest' })).key;
}
