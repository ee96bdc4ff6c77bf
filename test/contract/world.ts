import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { prepareDemo } from '../../src/commands/server/demo.js';
import type { OperationId } from '../../src/contract.js';
import { fileOf, parseManifest } from '../../src/copies/manifest.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { setPlan } from '../../src/limits/plans.js';
import { ROOT } from '../support/guides.js';
import { newKey } from '../support/keys/new-key.js';
import { createTestDatabase } from '../support/postgres.js';
import { runCommand } from '../support/programs/command.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startService, type TestService } from '../support/service.js';
import type { Endpoint, Target } from './exchanges.js';
import { SPOILED, startSpoiler, type Spoiler, type SpoiledCode } from './client/spoiled-requests.js';

/** A sound service, and others that are damaged. */
export interface World extends Target {
  stop(): Promise<void>;
}

/** Short time-outs, but long enough for a request that is sent at once. */
const IMPATIENCE = { headersTimeoutMs: 60, requestTimeoutMs: 120, checkIntervalMs: 20 };

/** Starts services that give every answer of the contract, each on a database of its own. */
export async function startWorld(): Promise<World> {
  const [folder, emptyFolder] = [await temporaryFolder(), await temporaryFolder()];
  const settings = { COPIES_DIR: folder };
  const service = await startService({ settings });
  // More than a page of changes, and the titles in the examples of the contract.
  await prepareDemo(service.db, fileURLToPath(ROOT).replace(/\/$/, ''));
  const publish = ['export', '--publish', folder, '--base-url', 'https://catalog.example.com'];
  const { code, stderr } = await runCommand(publish, { DATABASE_URL: service.databaseUrl });
  assert.equal(code, 0, stderr);
  const manifest = parseManifest(await readFile(`${folder}/manifest.json`, 'utf8'));

  const exhausted = { url: service.url, key: await createKeyOfSmallestPlan(service.db) };
  await service.get('/api/v1/me', { headers: { authorization: `Bearer ${exhausted.key}` } });

  const { key: revokedKey, prefix } = await newKey(service.db);
  await revokeKey(service.db, prefix);

  // No key may fail, so that the first failure of the next minute is over the limit as well.
  const strict = await startService({ settings, failurePolicy: { limit: 0, windowSeconds: 60 } });
  const guessing = { url: strict.url, key: generateApiKey().key };

  const withoutCatalogue = await startService({ settings: { COPIES_DIR: emptyFolder } });
  for (const table of ['titles', 'people', 'collections', 'catalog_counts']) {
    await withoutCatalogue.db.schema.renameTable(table, `${table}_lost`);
  }
  const withoutKeys = await startService({ settings });
  await withoutKeys.db.schema.renameTable('api_keys', 'api_keys_lost');

  const damaged: Readonly<Record<OperationId, TestService>> = {
    getStats: withoutCatalogue,
    getChanges: withoutCatalogue,
    getTitle: withoutCatalogue,
    getMe: withoutKeys,
  };

  const impatient = await startService({ settings, serverLimits: IMPATIENCE });
  const spoilers = new Map<string, Spoiler & Endpoint>();
  for (const code of Object.keys(SPOILED) as SpoiledCode[]) {
    const { url, key } = code === 'request_timeout' ? impatient : service;
    spoilers.set(code, { ...(await startSpoiler(url, code)), key });
  }

  const database = await createTestDatabase();
  const withoutDatabase = await startService({ settings, databaseUrl: database.url });
  await database.drop();

  return {
    url: service.url,
    key: service.key,
    titleId: 'blade-runner-1982',
    copyFile: fileOf(manifest, 'titles').name,
    revokedKey,
    exhausted,
    guessing,
    damaged: (operationId) => (operationId in damaged ? damaged[operationId as OperationId] : withoutKeys),
    empty: withoutCatalogue,
    down: withoutDatabase,
    spoiled: (code) => spoilers.get(code) ?? service,
    async stop() {
      for (const spoiler of spoilers.values()) await spoiler.stop();
      const services = [service, strict, withoutCatalogue, withoutKeys, impatient, withoutDatabase];
      for (const each of services) await each.stop();
    },
  };
}

/** The plan allows one request a day, so that the limit stays used up. */
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
