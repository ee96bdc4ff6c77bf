import { createReadStream } from 'node:fs';
import type { Knex } from 'knex';
import { createSignInLink } from '../../accounts/sign-in-links.js';
import { readCatalogCounts } from '../../catalog/counts.js';
import { importCatalogue } from '../../catalog/import/index.js';
import { createDeveloper, listDevelopers, type Developer } from '../../developers/developers.js';
import { createKey, type CreatedKey } from '../../keys/keys.js';

const DEMO_PROJECT = 'Demo project';
const DEMO_PLAN = 'free';

export interface Demo {
  /** The key of the demo developer, if this call created it. */
  readonly key: string | undefined;
  /** The token of a sign-in link for the demo developer; undefined without a demo developer. */
  readonly signInToken: string | undefined;
}

/**
 * Imports the demo catalogue into an empty database, and creates a demo developer if there are no developers. A
 * catalogue and keys in use are left alone.
 */
export async function prepareDemo(db: Knex, packageRoot: string): Promise<Demo> {
  const counts = await readCatalogCounts(db);
  if (counts.titles + counts.people + counts.collections === 0) {
    for (const kind of ['titles', 'people', 'collections'] as const) {
      await importCatalogue(db, createReadStream(`${packageRoot}/db/demo/${kind}.csv`), {
        kind,
        format: 'csv',
        strict: true,
      });
    }
  }
  const isUnused = (await listDevelopers(db)).length === 0;
  const key = isUnused ? (await createDemoKey(db)).key : undefined;
  const developer = await findDemoDeveloper(db);
  return { key, signInToken: developer && (await createSignInLink(db, developer.id)) };
}

async function findDemoDeveloper(db: Knex): Promise<Developer | undefined> {
  return (await listDevelopers(db)).find(({ projectName }) => projectName === DEMO_PROJECT);
}

/** Creates a key for the demo developer, and the developer if there is none. */
export async function createDemoKey(db: Knex): Promise<CreatedKey> {
  const developer =
    (await findDemoDeveloper(db)) ??
    (await createDeveloper(db, { projectName: DEMO_PROJECT, attributionRequired: false }));
  return createKey(db, { developerId: developer.id, planId: DEMO_PLAN, label: 'demo' });
}
