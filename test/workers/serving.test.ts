import assert from 'node:assert/strict';
import { eventually } from '../support/eventually.js';
import { runProgram, startServer, type ServerProcess } from '../support/program.js';
import { isAlive } from '../support/programs/server-processes.js';
import { ask, newKey, newPlan, tally } from '../support/deployments/deployment.js';
import {
  linesOf,
  logOf,
  startLoad,
  startSurroundings,
  workersOf,
  type Surroundings,
} from '../support/deployments/workers.js';

const WORKERS = 3;

describe('three workers on one port', () => {
  let surroundings: Surroundings;
  let server: ServerProcess;
  let key: string;

  before(async () => {
    surroundings = await startSurroundings();
    ({ key } = surroundings);
    server = await startServer({ ...surroundings.environment, WORKERS: String(WORKERS) });
  });

  after(async () => {
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
    await surroundings.stop();
  });

  /** The worker that answered a request. */
  function whoAnswered(): Map<string, number> {
    return new Map(linesOf(server, 'request').map(({ request_id, pid }) => [request_id ?? '', pid ?? 0]));
  }

  it('all answer, and none but the primary says that the server listens', async () => {
    const pids = workersOf(server);
    assert.equal(pids.length, WORKERS);
    assert.ok(!pids.includes(server.child.pid ?? 0));
    const load = startLoad(server.url, key, WORKERS * 2);
    await eventually('each has answered', () => new Set(whoAnswered().values()).size === WORKERS);
    await load.stop();
    assert.deepEqual(new Set(whoAnswered().values()), new Set(pids));
    const listening = logOf(server).filter(({ msg }) => msg === 'listening');
    assert.deepEqual(
      listening.map(({ worker, pid }) => [worker, pid]),
      [[undefined, undefined]],
    );
  });

  it('serve exactly 50 of 200 requests at once on a plan of 50 a minute', async () => {
    const { db } = surroundings.database;
    const limited = await newKey(db, await newPlan(db, 'fifty', 50, 100_000));
    const answers = await Promise.all(Array.from({ length: 200 }, () => ask(server.url, limited.key)));
    assert.deepEqual(tally(answers), { 200: 50, 429: 150 });
    const places = answers.filter(({ status }) => status === 200).map(({ remaining }) => remaining[0]);
    assert.deepEqual(
      places.toSorted((a, b) => Number(a) - Number(b)),
      Array.from({ length: 50 }, (_, place) => place),
    );
  });

  it('all refuse a revoked key from the moment that the command reports success', async () => {
    for (let trial = 0; trial < 3; trial += 1) {
      const { key: leaked, prefix } = await newKey(surroundings.database.db, 'unlimited');
      // On as many connections as to be known to every worker.
      const before = await Promise.all(Array.from({ length: 30 }, () => ask(server.url, leaked)));
      assert.deepEqual(tally(before), { 200: 30 });
      assert.equal((await runProgram(['keys', 'revoke', prefix], surroundings.environment)).code, 0);
      const after = await Promise.all(
        Array.from({ length: 60 }, (_, i) => ask(server.url, leaked, `198.51.100.${i + 1}`)),
      );
      assert.deepEqual(tally(after), { 401: 60 });
    }
  });

  it('lose nothing but the connections of one that is killed, which is replaced', async () => {
    const kept = startLoad(server.url, key, 30);
    const fresh = startLoad(server.url, key, 30, false);
    const pids = workersOf(server);
    const [victim = 0] = pids;
    await eventually('all are at work', () => kept.exchanges.length > 300 && fresh.exchanges.length > 300);

    process.kill(victim, 'SIGKILL');
    const replacement = await eventually('another one listens', () =>
      workersOf(server).find((pid) => !pids.includes(pid)),
    );
    await eventually('it answers', () => [...whoAnswered().values()].includes(replacement));
    await Promise.all([kept.stop(), fresh.stop()]);

    const answeredBy = whoAnswered();
    const failed = kept.exchanges.filter(({ status }) => status === undefined);
    const owners = new Map<number, number | undefined>();
    for (const { id, connection, status } of kept.exchanges) {
      if (status === 200) owners.set(connection, owners.get(connection) ?? answeredBy.get(id));
    }
    const ofVictim = [...owners].filter(([, pid]) => pid === victim).map(([connection]) => connection);
    console.log(
      `      of ${kept.exchanges.length} requests on 30 kept connections, ${ofVictim.length} of the killed worker's, ` +
        `failed: ${failed.length}; of ${fresh.exchanges.length} with one each: ` +
        `${fresh.exchanges.filter(({ status }) => status === undefined).length}`,
    );
    // Every connection of the dead worker broke, and no other.
    assert.ok(ofVictim.length > 0);
    assert.deepEqual(new Set(failed.map(({ connection }) => connection)), new Set(ofVictim));
    // Each at once, and at most once more when it was opened again before the death was noticed. None was left to hang.
    assert.ok(failed.length <= ofVictim.length * 2, `${failed.length} failed`);
    const all = [...kept.exchanges, ...fresh.exchanges];
    assert.deepEqual(new Set(all.map(({ status, error }) => status ?? error)), new Set([200, 'ECONNRESET']));

    assert.equal(workersOf(server).length, WORKERS);
    assert.ok(workersOf(server).every(isAlive));
    const [ended] = linesOf(server, 'worker ended');
    assert.deepEqual([ended?.pid, ended?.code, ended?.signal, ended?.restart_in_ms], [victim, null, 'SIGKILL', 0]);
  });
});
