import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { readGuide, ROOT } from '../support/guides.js';
import { builtProgram } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const execute = promisify(execFile);

/** Bound on packing on a busy machine, in milliseconds: less than that of a hook. */
const PACK_TIMEOUT_MS = 240_000;

/** The package as `make package` makes it of the built checkout, laid out in an empty folder. */
export interface PackedPackage {
  /** The name of the packed file. */
  readonly fileName: string;
  /** The folder of its package.json. Outside the checkout, so that nothing is found there by accident. */
  readonly folder: string;
  /** Starts its program. */
  readonly program: readonly string[];
  /** Every file, by its path in the package, with its size in bytes. */
  readonly files: ReadonlyMap<string, number>;
}

/** Packs the checkout, which is built unless it is, and unpacks the package with the commands of the guide. */
export async function packCheckout(): Promise<PackedPackage> {
  const parent = await temporaryFolder();
  builtProgram();
  const { stdout } = await execute(process.execPath, ['.config/pack.mjs', parent], {
    cwd: fileURLToPath(ROOT),
    timeout: PACK_TIMEOUT_MS,
  });
  const folder = join(parent, 'opt/catalog');
  const guide = await readGuide('install');
  const [, commands = ''] = /```sh\n(\s*umask 022\n.+?)```/s.exec(guide) ?? [];
  await execute('sh', ['-ec', commands.replaceAll('/opt/catalog', folder)], { cwd: parent });
  const program = [process.execPath, join(folder, '.build/cli.js')];
  const names = await readdir(folder, { recursive: true });
  const stats = names.map((name) => [name, statSync(join(folder, name))] as const);
  const files = new Map(stats.flatMap(([name, stat]) => (stat.isFile() ? [[name, stat.size] as const] : [])));
  return { fileName: stdout.trim(), folder, program, files };
}

/**
 * Pastes the commands of the guide to mirroring, in order, beside the packed file.
 *
 * @param from - the service
 * @param into - the database of the mirror
 * @returns what the commands print
 */
export async function followMirroringGuide(
  { folder }: PackedPackage,
  { from, into, key }: { readonly from: string; readonly into: string; readonly key: string },
): Promise<string> {
  const database = new URL(into);
  const env = { ...process.env, PGPASSWORD: database.password };
  database.password = '';
  const blocks = (await readGuide('mirroring')).matchAll(/^```sh\n(.+?)```/gms);
  const commands = Array.from(blocks, ([, code = '']) => code)
    .join('')
    .replaceAll('https://catalog.example.com', from)
    .replaceAll('postgres://me@localhost/films', database.href)
    .replace(/^catalog mirror --from .*/m, '$& --once');
  // The key as if it were typed.
  const script = `exec 2>&1 <<< ${key}\n${commands}`;
  const { stdout } = await execute('bash', ['-O', 'expand_aliases', '-ec', script], {
    cwd: join(folder, '../..'),
    env,
  });
  return stdout;
}
