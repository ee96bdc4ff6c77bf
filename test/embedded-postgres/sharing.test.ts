import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readServerState } from '../../src/embedded-postgres/server.js';
import { eventually } from '../support/eventually.js';
import { serverProcesses, signalServers } from '../support/programs/server-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { killUsers, User } from './users.js';

describe('the embedded PostgreSQL of several processes', function () {
  this.timeout(60_000);
  let dataDir: string;
  /** All visits so far: none may be lost. */
  let visits = 0;

  before(async () => {
    dataDir = await temporaryFolder();
  });
  afterEach(() => {
    killUsers();
    signalServers(dataDir, 'SIGKILL');
  });

  const start = (serves: boolean): User => new User({ dataDir, serves });
  const isStopped = (): boolean => serverProcesses(dataDir).length === 0;

  it('a first start that was killed half-way is repaired by the next one', async () => {
    const first = start(true);
    await eventually('a cluster is being created', async () =>
      (await readdir(dataDir)).some((name) => name.includes('.new-')),
    );
    await first.kill();
    signalServers(dataDir, 'SIGKILL');
    await assert.rejects(access(join(dataDir, 'postgresql')), 'it was too late');
    const second = start(true);
    assert.equal((await second.visit()).visits, (visits += 1));
    await second.leave();
    assert.deepEqual(await readdir(dataDir), ['postgresql']);
  });

  it('commands that start at the same moment take turns where no process serves, and nothing is lost', async () => {
    const counts = await Promise.all(
      [1, 2].map(async () => {
        const user = start(false);
        const visit = await user.visit();
        await user.leave();
        return visit;
      }),
    );
    assert.deepEqual(counts.map((it) => it.visits).sort(), [visits + 1, visits + 2]);
    assert.equal(new Set(counts.map(({ started }) => started)).size, 2);
    assert.deepEqual([isStopped(), (await readdir(dataDir)).sort()], [true, ['postgresql']]);
    visits += 2;
  });

  it('a command uses the PostgreSQL of a process that serves, and a second process that serves is refused', async () => {
    const server = start(true);
    const { started } = await server.visit();
    const [command, second] = [start(false), start(true)];
    assert.deepEqual(await command.visit(), { started, visits: visits + 2 });
    const { message } = await second.next('failure');
    assert.match(message, /^Another process uses the PostgreSQL in .+\(process \d+\)\. Stop it first, or set DATA_DIR/);
    await command.leave();
    assert.deepEqual(await server.visit(true), { started, visits: visits + 3 });
    await server.leave();
    assert.equal(isStopped(), true);
    visits += 3;
  });

  it('the embedded PostgreSQL ends with a process that is killed, and the next one finds all data', async () => {
    for (const serves of [true, false]) {
      const user = start(serves);
      assert.equal((await user.visit()).visits, (visits += 1));
      await user.kill();
    }
    const next = start(true);
    assert.equal((await next.visit()).visits, (visits += 1));
    await next.leave();
    assert.equal(isStopped(), true);
  });

  it('the process that serves is notified when its PostgreSQL is killed, and the next one finds all data', async () => {
    const user = start(true);
    await user.visit();
    signalServers(dataDir, 'SIGKILL');
    const { message } = await user.next('lost');
    assert.equal(message, `The embedded PostgreSQL in ${dataDir} ended unexpectedly.`);
    await user.leave();
    const next = start(false);
    assert.equal((await next.visit()).visits, (visits += 2));
    await next.leave();
  });

  it('the lock file of a killed server names no server, even if another process has its number now', async () => {
    const user = start(true);
    await user.visit();
    const cluster = join(dataDir, 'postgresql');
    const lockFile = join(cluster, 'postmaster.pid');
    assert.equal((await readServerState(cluster))?.isReady, true);

    const copy = join(await temporaryFolder(), 'postgresql');
    await mkdir(copy);
    const [, ...rest] = (await readFile(lockFile, 'utf8')).split('\n');
    if (process.platform === 'linux') {
      await copyFile(lockFile, join(copy, 'postmaster.pid'));
      assert.equal(await readServerState(copy), undefined, 'the server of the folder that was copied');
      // A server that was killed, and whose parent does not collect it.
      const program = join(copy, 'postgres');
      await symlink('/bin/sleep', program);
      const parent = spawn('sh', ['-c', '"$0" 600 & echo $!; exec tail -f /dev/null', program]);
      try {
        const pid = Number(((await once(parent.stdout, 'data')) as [Buffer])[0].toString());
        const statusOf = (process: number) => readFile(`/proc/${process}/stat`, 'utf8');
        await eventually('its parent is no shell', async () => (await statusOf(parent.pid ?? 0)).includes('(tail)'));
        await eventually('it has begun', async () => (await statusOf(pid)).includes('(postgres)'));
        process.kill(pid, 'SIGKILL');
        await eventually('it is a zombie', async () => (await statusOf(pid)).includes('(postgres) Z'));
        await writeFile(join(copy, 'postmaster.pid'), [pid, ...rest].join('\n'));
        assert.equal(await readServerState(copy), undefined, 'a zombie');
      } finally {
        parent.kill('SIGKILL');
      }
    }
    await writeFile(join(copy, 'postmaster.pid'), [process.pid, ...rest].join('\n'));
    assert.equal(await readServerState(copy), undefined, 'another program');
    await user.leave();
    await writeFile(lockFile, [process.pid, ...rest].join('\n'));
    const next = start(false);
    assert.equal((await next.visit()).visits, (visits += 2));
    await next.leave();
  });
});
