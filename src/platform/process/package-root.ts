import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of this package's package.json. The build moves modules, so it is searched for upward. */
export const PACKAGE_ROOT = findPackageRoot(dirname(fileURLToPath(import.meta.url)));

function findPackageRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : findPackageRoot(dirname(folder));
}

/** Tells builds of one version apart. */
export interface Build {
  readonly version: string;
  /** With `-modified` if the checkout differed from it; empty for the sources themselves, and if built without Git. */
  readonly commit: string;
}

/** Reads the version and the commit of this program. @param root - the folder of its package.json */
export async function readBuild(root: string): Promise<Build> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  // `make build` writes it next to the bundled modules.
  const commit = await readFile(new URL('commit', import.meta.url), 'utf8').catch(() => '');
  return { version, commit: commit.trim() };
}
