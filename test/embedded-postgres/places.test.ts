import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, chmod, cp, lstat, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { findNativePackage, prepareBinaries } from '../../src/embedded-postgres/binaries.js';
import { postgresAccount, runningAsRoot } from '../../src/embedded-postgres/command.js';
import { chooseDataDirectory } from '../../src/embedded-postgres/cluster/data-directory.js';
import { OperatorError } from '../../src/errors.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { skipWithout } from '../support/programs/skip.js';
import { acquire, releaseAll } from './users.js';

const isRoot = runningAsRoot();

describe('the places of the embedded PostgreSQL', function () {
  this.timeout(60_000);

  afterEach(releaseAll);

  describe('the data directory', () => {
    it('is .data in the checkout, or as configured', async () => {
      const packageRoot = await temporaryFolder();
      await chmod(packageRoot, 0o755);
      const systemDirectory = join(packageRoot, 'system');
      const choice = { packageRoot, isRoot, systemDirectory };
      const chosen = await chooseDataDirectory({ ...choice, configured: undefined });
      assert.equal(chosen.path, join(packageRoot, '.data'));
      const configured = join(packageRoot, 'a', 'b');
      assert.equal((await chooseDataDirectory({ ...choice, configured })).path, configured);
      assert.deepEqual((await readdir(packageRoot)).sort(), ['.data', 'a']);
    });

    it('gives an error that names it and says what to do when it cannot be made', async () => {
      const folder = await temporaryFolder();
      const file = join(folder, 'file');
      await writeFile(file, '');
      // Linux takes no new folder in /proc, and says of it that it does not exist.
      for (const configured of [join(file, 'data'), file, '/proc/data']) {
        await assert.rejects(
          chooseDataDirectory({ packageRoot: folder, configured, isRoot: false, systemDirectory: folder }),
          (error) =>
            error instanceof OperatorError && error.message.startsWith(`The data directory ${configured} cannot be`),
        );
      }
    });
  });

  describe('as root', function () {
    before(function () {
      if (!isRoot) skipWithout('the rights of root', this);
    });

    it('lie elsewhere when only root may enter the checkout', async () => {
      const closed = await temporaryFolder();
      const packageRoot = join(closed, 'checkout');
      await mkdir(packageRoot);
      const systemDirectory = await temporaryFolder();
      await chmod(systemDirectory, 0o755);
      const options = { packageRoot, systemDirectory, dataDir: undefined };
      const postgres = await acquire(options);
      await postgres.release();
      const name = createHash('sha256').update(packageRoot).digest('hex').slice(0, 12);
      assert.equal(postgres.dataDir, join(systemDirectory, name));
      assert.deepEqual([await readdir(packageRoot), (await stat(closed)).mode & 0o777], [[], 0o700]);
      assert.equal((await stat(join(postgres.dataDir, 'postgresql'))).uid, (await postgresAccount()).uid);

      // The data stays in use when the way becomes free.
      await chmod(closed, 0o755);
      const again = await acquire(options);
      await again.release();
      assert.equal(again.dataDir, postgres.dataDir);
    });

    it('may be a configured folder of root alone, which is opened for passing through', async () => {
      const dataDir = await temporaryFolder();
      const postgres = await acquire({ packageRoot: dataDir, dataDir });
      await postgres.release();
      assert.equal((await stat(dataDir)).mode & 0o777, 0o711);
      assert.equal((await stat(join(dataDir, 'postgresql'))).mode & 0o777, 0o700);
    });

    it('may not be a configured folder behind one of root alone', async () => {
      const closed = await temporaryFolder();
      const dataDir = join(closed, 'data');
      const { uid } = await postgresAccount();
      await assert.rejects(acquire({ packageRoot: closed, dataDir }), {
        name: 'OperatorError',
        message:
          `DATA_DIR ${dataDir} cannot be used: PostgreSQL does not run as root, and the user it runs as (uid ${uid}) ` +
          `cannot enter ${closed}. Set DATA_DIR to a directory that every user can reach, or allow passing through ` +
          `with: chmod o+x ${closed}`,
      });
      assert.deepEqual(await readdir(closed), []);
    });

    it('copy the programs that PostgreSQL’s user cannot reach, once', async () => {
      const { native, version } = await copyOfPackage();
      await chmod(join(native, '..'), 0o700);
      await chmod(join(native, 'share'), 0o700);
      await chmod(join(native, 'bin', 'initdb'), 0o700);
      const systemDirectory = join(await openFolder(), 'made');
      const account = await postgresAccount();
      const prepare = () => prepareBinaries({ directory: native, version }, account, systemDirectory);
      const copy = join(systemDirectory, `postgresql-${version}`);
      const binaries = await prepare();
      assert.equal(binaries.initdb, join(copy, 'bin', 'initdb'));
      assert.deepEqual(await readdir(systemDirectory), [basename(copy)]);
      const { ino } = await stat(copy);
      assert.deepEqual(await prepare(), binaries);
      assert.equal((await stat(copy)).ino, ino);

      await rm(join(copy, 'share'), { recursive: true });
      assert.deepEqual(await prepare(), binaries);
      await access(join(copy, 'share'));
      assert.deepEqual(await readdir(systemDirectory), [basename(copy)]);
    });
  });

  it('are put right where an installation without scripts left out links and exec bits', async () => {
    const { native, version } = await copyOfPackage();
    const library = join(native, 'lib');
    const links: string[] = [];
    for (const name of await readdir(library)) {
      if (!(await lstat(join(library, name))).isSymbolicLink()) continue;
      links.push(name);
      await rm(join(library, name));
    }
    await chmod(join(native, 'bin', 'postgres'), 0o644);
    const account = isRoot ? await postgresAccount() : undefined;
    const binaries = await prepareBinaries({ directory: native, version }, account, join(native, 'unused'));
    assert.equal(binaries.initdb, join(native, 'bin', 'initdb'));
    assert.ok(links.length === 0 || (await lstat(join(library, links[0] ?? ''))).isSymbolicLink());
  });

  describe('the errors', () => {
    let dataDir: string;
    let cluster: string;
    const acquireHere = () => acquire({ packageRoot: dataDir, dataDir });
    before(async () => {
      dataDir = join(await openFolder(), 'a folder with spaces');
      cluster = join(dataDir, 'postgresql');
      await (await acquireHere()).release();
    });

    it('name the version of data that is another one', async () => {
      await writeFile(join(cluster, 'PG_VERSION'), '9\n');
      await assert.rejects(acquireHere(), {
        name: 'OperatorError',
        message:
          `The data in ${cluster} is of PostgreSQL 9, and this is PostgreSQL 18. Dump it with the version it was made ` +
          'with and import it here, or set DATA_DIR to another folder.',
      });
      await writeFile(join(cluster, 'PG_VERSION'), '18\n');
    });

    it('quote the log of a server that does not start', async () => {
      const configuration = join(cluster, 'postgresql.conf');
      await writeFile(configuration, "work_mem = 'lots'\n");
      await assert.rejects(acquireHere(), (error) => {
        assert.ok(error instanceof OperatorError);
        assert.match(
          error.message,
          /^PostgreSQL does not start in .*: .*invalid value for parameter "work_mem": "lots"/,
        );
        assert.ok(error.message.endsWith(`Its log is ${join(dataDir, 'postgresql.log')}`));
        return true;
      });
      await writeFile(configuration, '');
    });

    it('refuse a path that pg_ctl would hand to the shell', async () => {
      const path = join(dataDir, '$HOME');
      await assert.rejects(acquire({ packageRoot: dataDir, dataDir: path }), {
        name: 'OperatorError',
        message:
          `PostgreSQL cannot be started with this path: ${path}/postgresql.log. Use folders whose names have no quotes, ` +
          'dollar signs, backticks, backslashes or line ends.',
      });
    });
  });
});

async function openFolder(): Promise<string> {
  const folder = await temporaryFolder();
  await chmod(folder, 0o755);
  return folder;
}

/** The platform's package in a folder of its own, to be damaged. */
async function copyOfPackage(): Promise<{ native: string; version: string }> {
  const { directory, version } = await findNativePackage();
  const folder = join(await openFolder(), 'package');
  const native = join(folder, 'native');
  await mkdir(folder);
  await cp(directory, native, { recursive: true, verbatimSymlinks: true });
  // Also where the packages were installed under a strict umask: the account must be able to enter.
  execFileSync('chmod', ['-R', 'a+rX', folder]);
  return { native, version };
}
