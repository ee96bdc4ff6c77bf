// Packs what `make build` has built into one file, whose name has the version and the commit. Its package.json lists no
// packages, because the program contains them: npm would install them again.

import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = '.build/package';
const [destination = '.'] = process.argv.slice(2);

/** @returns what `npm pack` reports */
function pack(...args) {
  console.error(`npm pack ${args.join(' ')}`);
  const [report] = JSON.parse(execFileSync('npm', ['pack', '--json', '--ignore-scripts', ...args]));
  return report;
}

rmSync(FOLDER, { recursive: true, force: true });
for (const { path } of pack('--dry-run').files) cpSync(path, join(FOLDER, path));
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
for (const field of ['scripts', 'dependencies', 'overrides', 'devDependencies', 'allowScripts']) delete manifest[field];
writeFileSync(join(FOLDER, 'package.json'), JSON.stringify(manifest, null, 2));

const { filename } = pack('--pack-destination', destination, `./${FOLDER}`);
const commit = readFileSync('.build/commit', 'utf8').trim();
const name = filename.replace(/(?=\.tgz$)/, commit && `-${commit}`);
renameSync(join(destination, filename), join(destination, name));
console.log(name);
