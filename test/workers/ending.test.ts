import assert from 'node:assert/strict';
import { connect } from 'node:net';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { assertProblem } from '../support/problem.js';
import { send, type Reply } from '../support/request.js';
import { Retries } from '../support/deployments/retries.js';
import {
  areGone,
  linesOf,
  logOf,
  startLoad,
  startSurroundings,
  workersOf,
  type Surroundings,
} from '../support/deployments/workers.js';

const WORKERS = 2;

/** So long does the service wait for an answer of the database, in milliseconds. */
const REQUEST_BOUND_MS = 800;

describe('a server with workers ends', () => {
  const retries = new Retries('requests did not come to wait in the database at the same time');
  let surroundings: Surroundings;
  let server: ServerProcess;
  let key: string;

  before(async () => {
    surroundings = await startSurroundings();
    ({ key } = surroundings);
  });

  beforeEach(async () => {
    server = await startServer({ ...surroundings.environment, WORKERS: String(WORKERS) });
  });

  afterEach(async () => {
    await server.stop('SIGKILL');
    await areGone(workersOf(server));
  });

  after(() => surroundings.stop());

  /** A request to each worker, which waits in the database until it is let go. */
  async function holdRequests(): Promise<{ replies: Promise<Reply>[]; release(): Promise<void> }> {
    const release = await lockCounts();
    const headers = { authorization: `Bearer ${key}` };
    for (;;) {
      // Connections go to the workers in turn.
      const replies = Array.from({ length: WORKERS }, () => send(server.url, '/api/v1/stats', { headers }));
      try {
        await eventually('the requests wait', async () => (await countWaiting()) === WORKERS, REQUEST_BOUND_MS);
        return { replies, release };
      } catch (error) {
        // They ran into their own bound before they came so far: this machine is slow, or the pools were empty.
        await Promise.allSettled(replies);
        try {
          retries.note(error);
        } catch (tooMany) {
          await release();
          throw tooMany;
        }
      }
    }
  }

  async function lockCounts(): Promise<() => Promise<void>> {
    const client = new pg.Client({ connectionString: surroundings.database.url });
    await client.connect();
    await client.query('begin; lock table catalog_counts in access exclusive mode');
    return () => client.end();
  }

  async function countWaiting(): Promise<number> {
    const { rows } = await surroundings.database.db.raw<{ rows: unknown[] }>(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows.length;
  }

  /** Nothing cuts held requests off: each is answered when its own bound has passed. */
  async function assertRunIntoTheirBound(replies: readonly Promise<Reply>[]): Promise<void> {
    for (const reply of await Promise.all(replies)) {
      assertProblem(reply, 'service_unavailable', { headers: { 'retry-after': '2' } });
    }
  }

  function isRefused(): Promise<boolean> {
    const { hostname, port } = new URL(server.url);
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.destroy();
        resolve(false);
      });
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
    });
  }

  it('by SIGTERM, after every request that it had taken is answered', async () => {
    const load = startLoad(server.url, key, 30);
    await eventually('all are at work', () => load.exchanges.length > 300);
    const { code, stdout, stderr } = await server.stop();
    await load.stop();

    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, /"msg":"stopped"}\n$/);
    const answered = new Set(load.exchanges.flatMap(({ id, status }) => (status === 200 ? id : [])));
    const taken = linesOf(server, 'request');
    assert.ok(taken.length > 300);
    assert.deepEqual(
      taken.filter(({ request_id, aborted }) => aborted === true || !answered.has(request_id ?? '')),
      [],
    );
    assert.equal(answered.size, taken.length);
    assert.deepEqual(new Set(linesOf(server, 'stopped').map(({ worker }) => worker)), new Set([1, 2, undefined]));
    await areGone(workersOf(server));
    assert.ok(await isRefused());
    const { rows } = await surroundings.database.db.raw<{ rows: { used: boolean }[] }>(
      'select last_used_at is not null as used from api_keys',
    );
    assert.deepEqual(rows, [{ used: true }]);
  });

  it('by Ctrl-C, which reaches the workers as well, and does not hurry them', async () => {
    const held = await holdRequests();
    server.child.kill('SIGINT');
    await eventually('all workers are told', () => linesOf(server, 'stopping').length === WORKERS + 1);
    for (const pid of workersOf(server)) process.kill(pid, 'SIGINT');
    await assertRunIntoTheirBound(held.replies);
    await held.release();
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(linesOf(server, 'stopped').length, WORKERS + 1);
    assert.deepEqual(linesOf(server, 'worker ended'), []);
  });

  it('in order also while a worker starts that replaces a dead one', async () => {
    const [pid = assert.fail()] = workersOf(server);
    process.kill(pid, 'SIGKILL');
    await eventually('its end is noticed', () => linesOf(server, 'worker ended').length > 0);
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(linesOf(server, 'worker did not stop in time: killed'), []);
  });

  it('at once by a second signal', async () => {
    const held = await holdRequests();
    const pids = workersOf(server);
    server.child.kill('SIGTERM');
    await eventually('all workers are told', () => linesOf(server, 'stopping').length === WORKERS + 1);
    server.child.kill('SIGTERM');
    const [replies, { code }] = await Promise.all([Promise.allSettled(held.replies), server.ended]);
    await areGone(pids);
    await held.release();
    assert.equal(code, 1);
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
  });

  it('with its primary: workers whose primary was killed finish their requests and are gone', async () => {
    const held = await holdRequests();
    const pids = workersOf(server);
    server.child.kill('SIGKILL');
    await eventually('the port is free', isRefused);
    await assertRunIntoTheirBound(held.replies);
    await held.release();
    await areGone(pids);
    assert.equal(logOf(server).filter(({ msg, worker }) => msg === 'stopped' && worker !== undefined).length, WORKERS);
  });
});
