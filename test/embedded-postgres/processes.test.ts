import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { access, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { postgresAccount } from '../../src/embedded-postgres/programs.js';
import { eventually } from '../support/eventually.js';
import { runProgram, startProgram, startServer } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { serverProcesses, signalServers } from '../support/programs/server-processes.js';
import { send } from '../support/request.js';
import { temporaryFolder } from '../support/temporary-folder.js';

describe('the embedded PostgreSQL of several processes', () => {
  let environment: { DATA_DIR: string };
  /** The keys that were created so far: none may be lost. */
  const keys: string[] = [];

  before(async () => {
    environment = { DATA_DIR: await temporaryFolder() };
  });

  /** Creates a key, as `make key` does. @param run - runs the command in a process of its own or in this one */
  async function createKey(run: typeof runProgram | typeof runCommand = runCommand): Promise<void> {
    const { code, stdout, stderr } = await run(['keys', 'create', '--demo', '--json'], environment);
    assert.equal(code, 0, stderr);
    keys.push((JSON.parse(stdout) as { key: string }).key);
  }

  async function assertKeysWork(url: string): Promise<void> {
    for (const key of keys)
      assert.equal((await send(url, '/api/v1/me', { headers: { 'x-api-key': key } })).status, 200);
  }

  const isStopped = (): boolean => serverProcesses(environment.DATA_DIR).length === 0;

  it('a first start that was killed half-way is repaired by the next one', async () => {
    const { child, ended } = startProgram(['keys', 'list'], environment);
    await eventually('a cluster is being created', async () =>
      (await readdir(environment.DATA_DIR)).some((name) => name.includes('.new-')),
    );
    child.kill('SIGKILL');
    await ended;
    signalServers(environment.DATA_DIR, 'SIGKILL');
    await assert.rejects(access(join(environment.DATA_DIR, 'postgresql')), 'it was too late');
    await createKey(runProgram);
    assert.deepEqual([isStopped(), (await readdir(environment.DATA_DIR)).sort()], [true, ['postgresql', 'server.log']]);
  });

  it('a command uses the PostgreSQL of the server, and a second server is refused', async () => {
    const server = await startServer(environment);
    await createKey();
    await assertKeysWork(server.url);
    await assert.rejects(startServer(environment), {
      message:
        `the server ended: catalog: The embedded PostgreSQL cannot run in ${environment.DATA_DIR}: another process of the ` +
        'service is already running there. Set DATA_DIR to another directory, or DATABASE_URL to a PostgreSQL of your own.\n',
    });
    await createKey();
    await assertKeysWork(server.url);
    server.child.kill('SIGKILL');
    await server.ended;
    await eventually('PostgreSQL ends with the server that started it', isStopped);
  });

  it('Ctrl-C in the terminal reaches the server alone, which ends its PostgreSQL although clients are connected', async () => {
    const server = await startServer(environment, [], { detached: true });
    const { pid = assert.fail() } = server.child;
    const groups = execFileSync('ps', ['-o', 'pgid=', '-p', serverProcesses(environment.DATA_DIR).join()], {
      encoding: 'utf8',
    });
    assert.ok(!groups.trim().split(/\s+/).includes(String(pid)), 'a terminal signals the group of its program');
    const socket = await realpath(join(environment.DATA_DIR, 'postgresql'));
    const client = new pg.Client({ host: socket, port: 5432, user: 'catalog', database: 'catalog' });
    client.on('error', () => undefined);
    await client.connect();
    await client.query('begin; select from titles');
    process.kill(-pid, 'SIGINT');
    await eventually('the server ends', () => server.child.exitCode !== null);
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr, isStopped()], [0, '', true]);
    const log = await readFile(join(environment.DATA_DIR, 'server.log'), 'utf8');
    assert.match(log, /database system is shut down\n$/);
    await client.end();
  });

  it('a server whose PostgreSQL is killed ends with an error, and the next one finds all data', async () => {
    const server = await startServer(environment);
    await createKey();
    await assertKeysWork(server.url);
    signalServers(environment.DATA_DIR, 'SIGKILL');
    const { code, stderr } = await server.ended;
    const message = `catalog: The embedded PostgreSQL in ${environment.DATA_DIR} ended unexpectedly.\n`;
    assert.deepEqual([code, stderr], [1, message]);
  });

  it('commands that start at the same moment take turns, and a lock file whose number another process has is stale', async () => {
    const cluster = join(environment.DATA_DIR, 'postgresql');
    const lockFile = join(cluster, 'postmaster.pid');
    const [, ...rest] = (await readFile(lockFile, 'utf8')).split('\n');
    // PostgreSQL itself recognises its parents, and processes of other accounts.
    const other = spawn('sleep', ['600'], { ...(await postgresAccount(cluster)) });
    await writeFile(lockFile, [other.pid, ...rest].join('\n'));
    await Promise.all([createKey(), createKey()]);
    other.kill();
    assert.equal(isStopped(), true);
    const server = await startServer(environment);
    await assertKeysWork(server.url);
    assert.equal(keys.length, 6);
    assert.equal((await server.stop()).code, 0);
  });
});
