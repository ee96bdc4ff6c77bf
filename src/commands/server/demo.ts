import { createReadStream, existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Knex } from 'knex';
import { createSignInLink, LINK_LIFETIME_MINUTES, signInLinkUrl } from '../../accounts/sign-in-links.js';
import { readCatalogCounts } from '../../catalog/counts.js';
import { publishCopy } from '../../catalog/export/publish.js';
import { importCatalogue } from '../../catalog/import/index.js';
import type { Config } from '../../config/settings.js';
import { openCopyFolder } from '../../copies/copy-folder.js';
import { createDeveloper, listDevelopers, type Developer } from '../../developers/developers.js';
import { OperatorError } from '../../errors.js';
import { withLocalName } from '../../http/connection/server.js';
import { createKey, type CreatedKey } from '../../keys/keys.js';
import type { CommandContext } from '../context.js';

const DEMO_PROJECT = 'Demo project';
const DEMO_PLAN = 'free';

/** How far back the example of /changes reaches, in seconds. */
const SINCE_AGO = 7 * 86_400;

/** Over how many days the changes of the demo are spread: a little less than the feed reaches back. */
const SPREAD_DAYS = 29;

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
    await spreadChanges(db);
  }
  const isUnused = (await listDevelopers(db)).length === 0;
  const key = isUnused ? (await createDemoKey(db)).key : undefined;
  const developer = await findDemoDeveloper(db);
  return { key, signInToken: developer && (await createSignInLink(db, developer.id)) };
}

/** @throws OperatorError without a demo developer */
export async function requireDemoDeveloper(db: Knex): Promise<Developer> {
  const developer = await findDemoDeveloper(db);
  if (developer !== undefined) return developer;
  throw new OperatorError('There is no demo developer.', { advice: 'Create one with "catalog serve --demo".' });
}

/**
 * Stamps the titles of the demo as if they had changed one after another over {@link SPREAD_DAYS}, so that the feed looks
 * as it does in use. The newest title keeps its stamp. Triggers set stamps, and only a superuser can switch them off, as
 * the role of the embedded PostgreSQL can. Call it before anybody reads the feed: a mirror would not see a title move.
 */
async function spreadChanges(db: Knex): Promise<void> {
  await db.transaction(async (transaction) => {
    await transaction.raw('select catalog_lock_writers()');
    const { rows } = await transaction.raw<{ rows: [{ is_superuser: string }] }>('show is_superuser');
    if (rows[0].is_superuser !== 'on') return;
    await transaction.raw('set local session_replication_role = replica');
    // A multiple of 10 microseconds before the newest stamp, so that none ends in 0 either; each within a step of its own.
    await transaction.raw(
      `update titles set created_at = moved.stamp, updated_at = moved.stamp
         from (select svc_id, newest - (place * step + hash % step) * interval '10 microseconds' as stamp
                 from (select svc_id, newest, hash, step, row_number() over (order by hash) as place
                         from (select svc_id, updated_at, abs(hashtextextended(svc_id, 0)) as hash,
                                      max(updated_at) over () as newest, ?::bigint / (count(*) over () + 1) as step
                                 from titles) hashed
                        where updated_at < newest) placed) moved
        where titles.svc_id = moved.svc_id`,
      [SPREAD_DAYS * 8_640_000_000],
    );
    await transaction.raw('update catalog_counts set newest_stamp = (select max(updated_at) from titles)');
  });
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

/**
 * Publishes a copy of the catalogue for mirrors.
 *
 * @param folder - only for the demo: it is emptied, since the copies of another start may name another port
 */
export async function publishDemoCopy(
  db: Knex,
  folder: string,
  { copySigningKey: signingKey }: Config,
  baseUrl: string,
  signal: AbortSignal,
): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const copies = await openCopyFolder(folder, baseUrl);
  try {
    await publishCopy(db, { folder: copies, baseUrl, signingKey, signal });
  } finally {
    await copies.close();
  }
}

/** How somebody starts this program again: by targets of the Makefile, in a checkout. */
function commandsOf({ packageRoot, command }: Pick<CommandContext, 'packageRoot' | 'command'>) {
  return existsSync('Makefile') && resolve(packageRoot) === resolve('.')
    ? { key: 'make key', link: 'make link' }
    : { key: `${command} keys create --demo`, link: `${command} developers sign-in-link --demo` };
}

/** Returns the first steps for a person who has just started the service. @param listening - the server's URL */
export function welcome(
  listening: string,
  { publicUrl = withLocalName(listening), site }: Pick<Config, 'publicUrl' | 'site'>,
  { key, signInToken }: Demo,
  context: Pick<CommandContext, 'packageRoot' | 'command'>,
): string {
  const url = withLocalName(listening);
  const commands = commandsOf(context);
  const since = Math.floor(Date.now() / 1000) - SINCE_AGO;
  const call = (path: string): string =>
    `  curl -H "Authorization: Bearer ${key ?? '$CATALOG_API_KEY'}" '${url}/api/v1${path}'`;
  const lines = [
    `\nCatalog Lookup Service on ${url}`,
    key === undefined
      ? `\nThe demo key was printed when it was created (another: ${commands.key}).`
      : `\nYour demo key, shown only now (another: ${commands.key}):\n  ${key}`,
    key === undefined ? '\nWith CATALOG_API_KEY set to a key, try:' : '\nTry it:',
    ...['/stats', `/changes?since=${since}`, '/titles/blade-runner-1982'].map(call),
  ];
  if (site) lines.push(`\nPages in the browser: ${publicUrl}`);
  if (site && signInToken !== undefined) {
    const within = `once, within ${LINK_LIFETIME_MINUTES} minutes; another: ${commands.link}`;
    lines.push(
      `Sign in to the settings as the demo developer (${within}):`,
      `  ${signInLinkUrl(publicUrl, signInToken)}`,
    );
  }
  return [...lines, '\nThe log follows. Ctrl-C stops the service.', ''].join('\n');
}
