import { createReadStream } from 'node:fs';
import type { Knex } from 'knex';
import { readCounts } from '../../catalog/counts.js';
import { importCatalogue } from '../../catalog/import/index.js';
import { createDeveloper, listDevelopers } from '../../developers/developers.js';
import { createKey } from '../../keys/keys.js';
import type { CreatedKey } from '../../keys/new-key.js';

const DEMO_PROJECT = 'Demo project';
const DEMO_PLAN = 'free';

/**
 * Imports the demo catalogue into an empty database, and creates a demo developer when there are no developers. Does
 * not change a database in use.
 *
 * @returns the key of the demo developer if this call created it
 */
export async function prepareDemo(db: Knex, packageRoot: string): Promise<string | undefined> {
  const counts = await readCounts(db);
  if (counts.titles + counts.people + counts.collections === 0) {
    for (const kind of ['titles', 'people', 'collections'] as const) {
      await importCatalogue(db, createReadStream(`${packageRoot}/db/demo/${kind}.csv`), {
        kind,
        format: 'csv',
        strict: true,
      });
    }
  }
  if ((await listDevelopers(db)).length > 0) return undefined;
  return (await createDemoKey(db)).key;
}

/** Creates a key for the demo developer, and the developer too if there is none. */
export async function createDemoKey(db: Knex): Promise<CreatedKey> {
  const developer =
    (await listDevelopers(db)).find(({ projectName }) => projectName === DEMO_PROJECT) ??
    (await createDeveloper(db, { projectName: DEMO_PROJECT, attributionRequired: false }));
  return createKey(db, { developerId: developer.id, planId: DEMO_PLAN, label: 'demo' });
}
