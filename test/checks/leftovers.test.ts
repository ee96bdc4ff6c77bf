import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.js';
import { isAlive, sharedMemoryOf, serverProcesses } from '../support/programs/server-processes.js';
import { skipWithout } from '../support/programs/skip.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

const RUN = `
  import { startPostgres } from './test/support/postgres.ts';
  console.log((await startPostgres()).folder);
  setInterval(() => undefined, 1_000);
`;

/** A test that fails while its program runs: nobody listens there, so the follower tries again and again. */
const FAILING = `
  import { startProgram } from '${new URL('../support/program.ts', import.meta.url).href}';
  it('fails', () => {
    const since = String(Math.floor(Date.now() / 1000) - 60);
    const args = ['follow', '--base-url', 'http://127.0.0.1:9', '--since', since, '--state', __filename + '.json'];
    console.log('pid', startProgram(args, { CATALOG_API_KEY: 'svc_x' }).child.pid);
    throw new Error('on purpose');
  });
`;

/** Bound on a run of that test, in milliseconds: a run that waited for the program would not end. */
const RUN_TIMEOUT_MS = 20_000;

/** Linux lists the shared memory of all processes. The first field of a line is the key. */
const LIST = '/proc/sysvipc/shm';

/** PostgreSQL writes a key without its sign, and Linux lists it with it. */
function isThere(key: string): boolean {
  const listed = String(BigInt.asIntN(32, BigInt(key)));
  return readFileSync(LIST, 'utf8')
    .split('\n')
    .some((line) => line.trim().split(/ +/)[0] === listed);
}

describe('a test run that is interrupted while its PostgreSQL runs', () => {
  before(function () {
    if (!existsSync(LIST)) skipWithout(LIST, this);
    if (spawnSync('ipcrm', ['--version']).error !== undefined) skipWithout('ipcrm', this);
  });

  it('leaves no folder, no process and no shared memory', async () => {
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', RUN], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const ended = once(child, 'exit');
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const folder = line.toString().trim();
      const keys = sharedMemoryOf(folder);
      assert.equal(keys.length, 1);
      const servers = serverProcesses(folder);
      assert.ok(keys.every(isThere) && servers.length > 0);

      child.kill('SIGINT');
      assert.deepEqual(await ended, [130, null]);
      assert.ok(!existsSync(folder));
      assert.ok(!keys.some(isThere));
      await eventually('all servers are gone', () => !servers.some(isAlive));
    } finally {
      // Where the interruption failed.
      child.kill('SIGTERM');
    }
  });
});

describe('a test run in which a test fails', () => {
  it('ends, and so do the programs that the test has left', async () => {
    const file = join(await temporaryFolder(), 'failing.test.ts');
    await writeFile(file, FAILING);
    const mocha = join(root, 'node_modules/mocha/bin/mocha.js');
    const outcome = await new Promise<{ code: unknown; stdout: string }>((resolve) => {
      execFile(process.execPath, [mocha, file], { cwd: root, timeout: RUN_TIMEOUT_MS }, (error, stdout) => {
        resolve({ code: error?.code, stdout });
      });
    });
    assert.equal(outcome.code, 1, outcome.stdout);
    const pid = Number(/pid (\d+)/.exec(outcome.stdout)?.[1]);
    assert.ok(!isAlive(pid), outcome.stdout);
  });
});
