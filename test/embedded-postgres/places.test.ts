import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, chmod, cp, lstat, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { postgresAccount, runningAsRoot } from '../../src/embedded-postgres/account.js';
import { findNativePackage, prepareBinaries } from '../../src/embedded-postgres/binaries.js';
import { openDataDirectory } from '../../src/embedded-postgres/data-directory.js';
import { openEmbeddedPostgres } from '../../src/embedded-postgres/index.js';
import { skipWithout } from '../support/programs/skip.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const isRoot = runningAsRoot();

describe('the places of the embedded PostgreSQL', function () {
  this.timeout(60_000);

  it('the data are in .data of the checkout, or in DATA_DIR', async () => {
    const packageRoot = await openFolder();
    const pathOf = async (dataDir?: string) =>
      (await openDataDirectory({ packageRoot, dataDir, systemDirectory: join(packageRoot, 'system') })).path;
    assert.equal(await pathOf(), join(packageRoot, '.data'));
    assert.equal(await pathOf(join(packageRoot, 'a', 'b')), join(packageRoot, 'a', 'b'));
    assert.deepEqual((await readdir(packageRoot)).sort(), ['.data', 'a']);
  });

  it('a data directory that cannot be made is named in the error, with what to do', async () => {
    const folder = await openFolder();
    const file = join(folder, 'file');
    await writeFile(file, '');
    for (const dataDir of [join(file, 'data'), file]) {
      await assert.rejects(openDataDirectory({ packageRoot: folder, dataDir }), (error: Error) => {
        return (
          error.name === 'OperatorError' && error.message.startsWith(`The data directory ${dataDir} cannot be used`)
        );
      });
    }
  });

  describe('as root', () => {
    before(function () {
      if (!isRoot) skipWithout('the rights of root', this);
    });

    it('the data are outside a checkout that only root may enter, and stay there', async () => {
      const closed = await temporaryFolder();
      const packageRoot = join(closed, 'checkout');
      await mkdir(packageRoot);
      const options = { packageRoot, systemDirectory: join(await openFolder(), 'made'), dataDir: undefined };
      const { path, account } = await openDataDirectory(options);
      const name = createHash('sha256').update(packageRoot).digest('hex').slice(0, 12);
      assert.deepEqual([path, account], [join(options.systemDirectory, name), await postgresAccount()]);
      assert.deepEqual([await readdir(packageRoot), (await stat(closed)).mode & 0o777], [[], 0o700]);
      // The way becomes free.
      await chmod(closed, 0o755);
      assert.equal((await openDataDirectory(options)).path, path);
    });

    it('a data directory that only root may enter is opened to PostgreSQL, and one inside such a folder is refused', async () => {
      const dataDir = await temporaryFolder();
      const behind = join(await temporaryFolder(), 'data');
      assert.equal((await openDataDirectory({ packageRoot: dataDir, dataDir })).path, dataDir);
      assert.equal((await stat(dataDir)).mode & 0o777, 0o711);
      const { uid } = await postgresAccount();
      await assert.rejects(openDataDirectory({ packageRoot: dataDir, dataDir: behind }), {
        name: 'OperatorError',
        message:
          `The data directory ${behind} cannot be used: PostgreSQL does not run as root, and the user it runs as (uid ${uid}) ` +
          'cannot enter one of its parent directories. Set DATA_DIR to a directory that every user can reach.',
      });
    });

    it('programs that the account of PostgreSQL cannot read are copied once, and again when the copy is damaged', async () => {
      const source = await copyOfPackage();
      await chmod(join(source.directory, '..'), 0o700);
      await chmod(join(source.directory, 'share'), 0o700);
      await chmod(join(source.directory, 'bin', 'initdb'), 0o700);
      const systemDirectory = join(await openFolder(), 'made');
      const account = await postgresAccount();
      const prepare = () => prepareBinaries(source, account, systemDirectory);
      const copy = join(systemDirectory, `postgresql-${source.version}`);
      const binaries = await prepare();
      assert.equal(binaries.initdb, join(copy, 'bin', 'initdb'));
      const { ino } = await stat(copy);
      assert.deepEqual(await prepare(), binaries);
      assert.equal((await stat(copy)).ino, ino);

      await rm(join(copy, 'share'), { recursive: true });
      assert.deepEqual(await prepare(), binaries);
      await access(join(copy, 'share'));
      assert.deepEqual(await readdir(systemDirectory), [basename(copy)]);
    });
  });

  it('links and exec bits that an installation without scripts left out are restored', async () => {
    const source = await copyOfPackage();
    const library = join(source.directory, 'lib');
    const links: string[] = [];
    for (const name of await readdir(library)) {
      if (!(await lstat(join(library, name))).isSymbolicLink()) continue;
      links.push(name);
      await rm(join(library, name));
    }
    await chmod(join(source.directory, 'bin', 'postgres'), 0o644);
    const account = isRoot ? await postgresAccount() : undefined;
    const { postgres } = await prepareBinaries(source, account, join(source.directory, 'unused'));
    assert.equal(postgres, join(source.directory, 'bin', 'postgres'));
    assert.ok(links.length === 0 || (await lstat(join(library, links[0] ?? ''))).isSymbolicLink());
  });

  it('data of another version and a wrong configuration are named in the error', async () => {
    const dataDir = join(await openFolder(), `a folder with 'quotes" and $HOME`);
    const cluster = join(dataDir, 'postgresql');
    const open = () => openEmbeddedPostgres({ packageRoot: dataDir, dataDir });
    await mkdir(dataDir);
    await (await open()).close();

    const configuration = join(cluster, 'postgresql.conf');
    await writeFile(configuration, "work_mem = 'lots'\n");
    await assert.rejects(open(), (error: Error) => {
      assert.match(error.message, /^PostgreSQL does not start in .*: .*invalid value for parameter "work_mem": "lots"/);
      assert.ok(error.message.endsWith(`Its log is ${join(cluster, 'server.log')}`));
      return error.name === 'OperatorError';
    });

    await writeFile(join(cluster, 'PG_VERSION'), '9\n');
    await assert.rejects(open(), {
      name: 'OperatorError',
      message:
        `The data in ${cluster} was created by PostgreSQL 9, but this is PostgreSQL 18. Dump it with the version that created it ` +
        'and restore it here, or set DATA_DIR to another directory.',
    });
  });
});

async function openFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await chmod(folder, 0o755);
  return folder;
}

/** The platform's package in a folder of its own, to be damaged. */
async function copyOfPackage(): Promise<{ directory: string; version: string }> {
  const { directory: original, version } = await findNativePackage();
  const folder = join(await openFolder(), 'package');
  const directory = join(folder, 'native');
  await mkdir(folder);
  await cp(original, directory, { recursive: true, verbatimSymlinks: true });
  // Also where the packages were installed under a strict umask: the account must be able to enter.
  execFileSync('chmod', ['-R', 'a+rX', folder]);
  return { directory, version };
}
