import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { SUPERUSER } from '../../src/embedded-postgres/cluster/cluster-creation.js';
import { readServerState, SOCKET_PORT } from '../../src/embedded-postgres/cluster/server-state.js';
import { DATABASE } from '../../src/embedded-postgres/lease-client.js';
import { eventually } from '../support/eventually.js';
import { serverProcesses, signalServers } from '../support/programs/server-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { killUsers, User } from './users.js';

describe('the embedded PostgreSQL, shared by processes', function () {
  this.timeout(60_000);
  let dataDir: string;

  before(async () => {
    dataDir = await temporaryFolder();
  });
  afterEach(() => {
    killUsers();
    signalServers(dataDir, 'SIGKILL');
  });

  const serverRuns = (folder = dataDir) => serverProcesses(folder).length > 0;

  it('is started by the first and stopped by the last, and keeps data and address', async () => {
    const first = await User.start({ dataDir });
    const started = await first.look();
    const second = await User.start({ dataDir });
    assert.deepEqual(await second.look(), { ...started, visits: started.visits + 1 });
    await first.leave();
    assert.deepEqual(await second.look(), { ...started, visits: started.visits + 2 });
    await second.leave();
    assert.equal(serverRuns(), false);
    assert.deepEqual(
      [first.events, second.events],
      [['postgres_started', 'postgres_left_running'], ['postgres_stopped']],
    );

    const third = await User.start({ dataDir });
    const again = await third.look();
    assert.deepEqual([again.visits, again.host], [started.visits + 3, started.host]);
    assert.notEqual(again.started, started.started);
    await third.leave();
    assert.deepEqual((await readdir(dataDir)).sort(), ['pg_hba.conf', 'postgresql', 'postgresql.log']);
  });

  it('is one server for processes that start at once, and stops when they end at once', async () => {
    const fresh = await temporaryFolder();
    const users = Array.from({ length: 4 }, () => new User({ dataDir: fresh }));
    await Promise.all(users.map((user) => user.ready()));
    const first = await users[0]?.look();
    const sights = await Promise.all(users.slice(1).map((user) => user.look()));
    assert.deepEqual(
      sights.map(({ started, host }) => ({ started, host })),
      Array.from({ length: 3 }, () => ({ started: first?.started, host: first?.host })),
    );
    await Promise.all(users.map((user) => user.leave()));
    assert.equal(serverRuns(fresh), false);
    const events = users.flatMap((user) => user.events);
    assert.equal(events.filter((event) => event === 'postgres_started').length, 1);
    assert.equal(events.filter((event) => event === 'postgres_stopped').length, 1);
  });

  it('outlives a user that is killed, until the next one has taken it over', async () => {
    const first = await User.start({ dataDir });
    const { started } = await first.look();
    await first.kill();
    assert.equal(serverRuns(), true);
    const second = await User.start({ dataDir });
    assert.equal((await second.look()).started, started);
    await second.leave();
    assert.equal(serverRuns(), false);
  });

  it('keeps running after the last lease while a plain connection uses it', async () => {
    const first = await User.start({ dataDir });
    const { host, started } = await first.look();
    const plain = new pg.Client({ host, port: SOCKET_PORT, user: SUPERUSER, database: DATABASE });
    await plain.connect();
    try {
      await first.leave();
      assert.deepEqual(first.events.slice(-1), ['postgres_left_running']);
      await plain.query('select 1');
    } finally {
      await plain.end();
    }
    const second = await User.start({ dataDir });
    assert.equal((await second.look()).started, started);
    await second.leave();
    assert.equal(serverRuns(), false);
  });

  it('is not stopped by Ctrl-C in the terminal that started it', async () => {
    const first = await User.start({ dataDir });
    const { started } = await first.look();
    const second = await User.start({ dataDir });
    await first.interruptGroup();
    assert.equal((await second.look()).started, started);
    assert.deepEqual(second.events, []);
    await second.leave();
  });

  it('is brought back for all its users when it is killed', async () => {
    const users = [await User.start({ dataDir }), await User.start({ dataDir })];
    const before = await users[0]?.look();
    assert.ok(before);
    signalServers(dataDir, 'SIGKILL');
    for (const user of users) {
      await eventually('the lease is back', () => user.events.includes('postgres_back'));
    }
    const sights = [await users[0]?.look(), await users[1]?.look()];
    assert.notEqual(sights[0]?.started, before.started);
    assert.equal(sights[0]?.started, sights[1]?.started);
    assert.deepEqual([sights[0]?.visits, sights[1]?.visits], [before.visits + 1, before.visits + 2]);
    for (const user of users) await user.leave();
    assert.equal(serverRuns(), false);
  });

  it('repairs a first start that was killed half-way', async () => {
    const fresh = await temporaryFolder();
    const first = new User({ dataDir: fresh });
    await eventually('a cluster is being made', async () =>
      (await readdir(fresh)).some((name) => name.includes('.new-')),
    );
    await first.kill();
    signalServers(fresh, 'SIGKILL');
    await assert.rejects(access(join(fresh, 'postgresql')), 'it was too late');
    const second = await User.start({ dataDir: fresh });
    assert.equal((await second.look()).visits, 1);
    await second.leave();
    assert.deepEqual((await readdir(fresh)).sort(), ['pg_hba.conf', 'postgresql', 'postgresql.log']);
  });

  it('is not mistaken for another process that has its number, or another server', async () => {
    const user = await User.start({ dataDir });
    const lockFile = join(dataDir, 'postgresql', 'postmaster.pid');
    const state = await readServerState(join(dataDir, 'postgresql'));
    assert.equal(state.phase, 'ready');

    const copy = join(await temporaryFolder(), 'postgresql');
    await mkdir(copy);
    const [, ...rest] = (await readFile(lockFile, 'utf8')).split('\n');
    if (process.platform === 'linux') {
      await copyFile(lockFile, join(copy, 'postmaster.pid'));
      assert.deepEqual(await readServerState(copy), { phase: 'stopped', stale: true });
      // A server that was killed, and whose parent does not collect it.
      const program = join(copy, 'postgres');
      await symlink('/bin/sleep', program);
      const parent = spawn('sh', ['-c', '"$0" 600 & echo $!; exec tail -f /dev/null', program]);
      try {
        const pid = Number(((await once(parent.stdout, 'data')) as [Buffer])[0].toString());
        const statusOf = (process: number) => readFile(`/proc/${process}/stat`, 'utf8');
        await eventually('its parent is no shell', async () => (await statusOf(parent.pid ?? 0)).includes('(tail)'));
        process.kill(pid, 'SIGKILL');
        await eventually('it is a zombie', async () => (await statusOf(pid)).includes('(postgres) Z'));
        await writeFile(join(copy, 'postmaster.pid'), [pid, ...rest].join('\n'));
        assert.deepEqual(await readServerState(copy), { phase: 'stopped', stale: true });
      } finally {
        parent.kill('SIGKILL');
      }
    }
    await writeFile(join(copy, 'postmaster.pid'), [process.pid, ...rest].join('\n'));
    assert.deepEqual(await readServerState(copy), { phase: 'stopped', stale: true });
    await user.leave();
    assert.deepEqual(await readServerState(join(dataDir, 'postgresql')), { phase: 'stopped', stale: false });
  });
});
