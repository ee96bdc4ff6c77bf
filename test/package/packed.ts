import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { readGuide, ROOT } from '../support/guides.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const execute = promisify(execFile);

/** Bound on `npm pack`, in milliseconds. */
const PACK_TIMEOUT_MS = 120_000;

/** The package as `npm pack` makes it of the built checkout, laid out in an empty folder. */
export interface PackedPackage {
  /** The folder of its package.json. Outside the checkout, so that nothing is found there by accident. */
  readonly folder: string;
  /** Starts its program. */
  readonly program: readonly string[];
  /** Every file, by its path in the package, with its size in bytes. */
  readonly files: ReadonlyMap<string, number>;
}

/** What `npm pack --json` reports. */
interface PackReport {
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/** Packs the checkout without building it again, and unpacks the package with the commands of the guide. */
export async function packCheckout(): Promise<PackedPackage> {
  const parent = await temporaryFolder();
  const { stdout } = await execute('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', parent], {
    cwd: fileURLToPath(ROOT),
    timeout: PACK_TIMEOUT_MS,
    maxBuffer: 2 ** 26,
  });
  const [report] = JSON.parse(stdout) as [PackReport];
  const folder = join(parent, 'opt/catalog');
  const guide = await readGuide('operators/install');
  const [, commands = ''] = /```sh\n(\s*umask 022\n.+?)```/s.exec(guide) ?? [];
  await execute('sh', ['-ec', commands.replaceAll('/opt/catalog', folder)], { cwd: parent });
  const program = [process.execPath, join(folder, '.build/cli.js')];
  return { folder, program, files: new Map(report.files.map(({ path, size }) => [path, size])) };
}
