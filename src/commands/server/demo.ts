import { createReadStream } from 'node:fs';
import type { Knex } from 'knex';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../accounts/sign-in-links.js';
import { readCatalogCounts } from '../../catalog/counts.js';
import { importCatalogue } from '../../catalog/import/index.js';
import type { Config } from '../../config/settings.js';
import { createDeveloper, listDevelopers, type Developer } from '../../developers/developers.js';
import { withLocalName } from '../../http/connection/server.js';
import { createKey, type CreatedKey } from '../../keys/keys.js';

const DEMO_PROJECT = 'Demo project';
const DEMO_PLAN = 'free';

/** How far back the example of /changes reaches, in seconds. */
const SINCE_AGO = 3_600;

export interface Demo {
  /** The key of the demo developer, if this call created it. */
  readonly key: string | undefined;
  /** The token of a sign-in link for the demo developer; undefined without a demo developer. */
  readonly signInToken: string | undefined;
}

/**
 * Imports the demo catalogue into an empty database, and creates a demo developer if there are no developers. A
 * catalogue and keys in use stay as they are.
 *
 * @param signal - interrupts the import
 */
export async function prepareDemo(db: Knex, packageRoot: string, signal?: AbortSignal): Promise<Demo> {
  const counts = await readCatalogCounts(db);
  if (counts.titles + counts.people + counts.collections === 0) {
    for (const kind of ['titles', 'people', 'collections'] as const) {
      await importCatalogue(db, createReadStream(`${packageRoot}/db/demo/${kind}.csv`), {
        kind,
        format: 'csv',
        maxRejected: 0,
        ...(signal && { signal }),
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

/** Returns the first steps for a person who has just started the service. @param listening - the server's URL */
export function welcome(
  listening: string,
  { publicUrl = withLocalName(listening), site }: Pick<Config, 'publicUrl' | 'site'>,
  { key, signInToken }: Demo,
): string {
  const url = withLocalName(listening);
  const pages = [
    `\nPages in the browser: ${publicUrl}`,
    ...(signInToken === undefined
      ? []
      : [
          `Sign in to the settings as the demo developer (once, within ${LINK_LIFETIME_MINUTES} minutes):`,
          `  ${signInLinkUrl(publicUrl, signInToken)}`,
        ]),
  ];
  return [`\nCatalog Lookup Service on ${url}`, ...firstCalls(url, key), ...(site ? pages : []), ''].join('\n');
}

/** @param key - undefined for a key that was printed before */
function firstCalls(url: string, key: string | undefined): string[] {
  const since = String(Math.floor(Date.now() / 1000) - SINCE_AGO);
  const authorization =
    key === undefined ? '"Authorization: Bearer $CATALOG_API_KEY"' : `'Authorization: Bearer ${key}'`;
  const call = (path: string): string => `  curl -H ${authorization} '${url}/api/v1${path}'`;
  const toCreate = 'to create another: catalog keys create --demo, or make key';
  return [
    key === undefined
      ? `\nThe demo key was printed when it was created (${toCreate}).`
      : `\nYour demo key, shown only now (${toCreate}):\n  ${key}`,
    key === undefined ? '\nWith CATALOG_API_KEY set to a key, try:' : '\nTry it:',
    call('/stats'),
    call(`/changes?since=${since}`),
    call('/titles/blade-runner-1982'),
  ];
}
