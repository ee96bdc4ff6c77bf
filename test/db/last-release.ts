import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ROOT } from '../support/guides.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const run = promisify(execFile);

const CHECKOUT = fileURLToPath(ROOT);

/** All that a version needs to be built and run, but its packages. */
const PARTS = ['src', 'db', 'generated', 'openapi.yaml', 'package.json', 'tsconfig.json'];

/** Packages that an earlier version loads only for commands that no test of it runs. */
const ON_DEMAND = ['cli-progress'];

/** The version before this one, built. */
export interface LastRelease {
  /** Its tag, or its commit while there is no tag. */
  readonly name: string;
  readonly folder: string;
  readonly program: readonly string[];
}

/**
 * Builds the version before this one from the history of the checkout, with the checkout's compiler and packages.
 *
 * @returns what this machine lacks for it, as text, where it cannot be built
 */
export async function buildLastRelease(): Promise<LastRelease | string> {
  const name = await findLastRelease();
  if (name === undefined) return 'the Git history of the version before';
  const folder = await temporaryFolder();
  const archive = join(folder, 'release.tar');
  await git('archive', `--output=${archive}`, name, ...PARTS);
  await run('tar', ['-xf', archive], { cwd: folder });
  const packages = join(CHECKOUT, 'node_modules');
  const unfit = await findUnfitPackage(folder, packages);
  if (unfit !== undefined) return `${unfit} for ${name}`;
  await symlink(packages, join(folder, 'node_modules'));
  const sources = ['src/**/*.ts', 'src/**/*.tsx'];
  await run(join(packages, '.bin/esbuild'), [...sources, '--outdir=.build', '--log-level=warning'], { cwd: folder });
  return { name, folder, program: [process.execPath, join(folder, '.build/cli.js')] };
}

/**
 * Finds the last release: the newest tag before this commit. Until there is one, the last commit with another schema
 * takes its place, or the one with the first migrations while there are no others.
 *
 * @returns undefined where the history is not there, or not far enough
 */
async function findLastRelease(): Promise<string | undefined> {
  const tag = await git('describe', '--tags', '--abbrev=0', '--match=v[0-9]*', 'HEAD^').catch(() => undefined);
  if (tag !== undefined) return tag;
  try {
    const [first, newest] = await Promise.all([findAddition('001_*.sql'), findAddition('*.sql')]);
    return newest === first ? first : await git('rev-parse', '--short', '--verify', '--quiet', `${newest}^`);
  } catch {
    return undefined;
  }
}

/** @returns the commit that last added a migration with such a name */
function findAddition(name: string): Promise<string> {
  return git('log', '-1', '--no-renames', '--diff-filter=A', '--format=%h', '--', `db/migrations/${name}`);
}

/** @returns a package that a version needs, where this checkout has none of the same major version */
async function findUnfitPackage(folder: string, packages: string): Promise<string | undefined> {
  const { dependencies } = await readPackage<{ dependencies: Record<string, string> }>(folder);
  for (const [name, version] of Object.entries(dependencies)) {
    if (ON_DEMAND.includes(name)) continue;
    const installed = await readPackage<{ version: string }>(join(packages, name)).catch(() => undefined);
    if (installed?.version.split('.')[0] !== version.split('.')[0]) return `${name} ${version}`;
  }
  return undefined;
}

async function readPackage<T>(folder: string): Promise<T> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as T;
}

async function git(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('git', args, { cwd: CHECKOUT });
  return stdout.trim();
}
