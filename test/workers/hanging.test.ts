import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.js';
import { startServer } from '../support/program.js';
import { areGone, linesOf, startSurroundings, workersOf, type Surroundings } from '../support/deployments/workers.js';

/** Ten seconds until it is noticed, and a start on a busy machine, in milliseconds. */
const REPLACEMENT_TIMEOUT_MS = 40_000;

describe('a worker that hangs', () => {
  let surroundings: Surroundings;
  let environment: Readonly<Record<string, string>>;

  before(async () => {
    surroundings = await startSurroundings();
    environment = { ...surroundings.environment, WORKERS: '2' };
  });

  after(() => surroundings.stop());

  it('is killed: while it should serve, and is replaced, and while it should stop', async () => {
    async function whileServing(): Promise<void> {
      const server = await startServer(environment);
      const [frozen = 0, other = 0] = workersOf(server);
      process.kill(frozen, 'SIGSTOP');
      const replaced = await eventually(
        'it is replaced',
        () => workersOf(server).length === 2 && !workersOf(server).includes(frozen) && workersOf(server),
        REPLACEMENT_TIMEOUT_MS,
      );
      assert.ok(replaced.includes(other));
      assert.deepEqual(
        linesOf(server, 'worker hangs: killed').map(({ pid }) => pid),
        [frozen],
      );
      assert.equal((await server.stop()).code, 0);
    }

    async function whileStopping(): Promise<void> {
      const server = await startServer(environment);
      const pids = workersOf(server);
      process.kill(pids[0] ?? 0, 'SIGSTOP');
      assert.equal((await server.stop()).code, 0);
      assert.deepEqual(
        linesOf(server, 'worker did not stop in time: killed').map(({ pid }) => pid),
        [pids[0]],
      );
      await areGone(pids);
    }

    await Promise.all([whileServing(), whileStopping()]);
  });
});
