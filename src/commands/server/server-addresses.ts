import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Config } from '../../config/settings.js';
import { writeFileAtomic } from '../../platform/files/write-file-atomic.js';

/** In the data directory. */
const FILE = 'addresses.json';

/** Where a running server is reached. Its settings do not say it where it chose a port itself. */
interface ServerAddresses {
  /** The origin of the API and of the pages for people. */
  readonly url: string;
  /** The origin of the operator pages; undefined for a server without. */
  readonly operatorUrl: string | undefined;
}

type Place = Pick<Config, 'databaseUrl' | 'dataDir'>;

/** @returns the data directory of the embedded PostgreSQL; undefined with DATABASE_URL */
export function embeddedDataDir({ databaseUrl, dataDir }: Place, packageRoot: string): string | undefined {
  return databaseUrl === undefined ? resolve(dataDir ?? join(packageRoot, '.data')) : undefined;
}

/** Keeps the addresses of the only server on an embedded PostgreSQL, for commands that print links to it. */
export async function keepAddresses(place: Place, packageRoot: string, addresses: ServerAddresses): Promise<void> {
  const folder = embeddedDataDir(place, packageRoot);
  if (folder !== undefined)
    await writeFileAtomic(join(folder, FILE), JSON.stringify(addresses), join(folder, `${FILE}.partial`));
}

/** @returns the addresses of the last server on the embedded PostgreSQL; undefined before the first */
export async function readAddresses(place: Place, packageRoot: string): Promise<ServerAddresses | undefined> {
  const folder = embeddedDataDir(place, packageRoot);
  const text = folder && (await readFile(join(folder, FILE), 'utf8').catch(() => undefined));
  return text === undefined ? undefined : (JSON.parse(text) as ServerAddresses);
}
