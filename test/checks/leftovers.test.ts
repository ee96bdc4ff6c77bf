import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.js';
import { isAlive, sharedMemoryOf, serverProcesses } from '../support/programs/server-processes.js';
import { skipWithout } from '../support/programs/skip.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

const RUN = `
  import { startPostgres } from './test/support/postgres.ts';
  console.log((await startPostgres()).folder);
  setInterval(() => undefined, 1_000);
`;

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
