import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { ask, newKey, newPlan, tally } from '../support/deployments/deployment.js';
import { areGone, linesOf, logOf, startLoad, startWorkers, workersOf } from '../support/deployments/workers.js';
import { scrape, metricsUrlOf } from '../support/http/exposition.js';
import { signInOperator } from '../support/http/operator.js';
import { runProgram, startProgram, type ServerProcess } from '../support/program.js';
import { freePort } from '../support/programs/free-port.js';
import { send } from '../support/request.js';
import { testWorld } from '../support/world.js';

const WORKERS = 2;

const SERVED = 'catalog_http_requests_total{operation="getMe",status="200"}';

describe('a server with workers', () => {
  const world = testWorld({ redis: true });
  let environment: Readonly<Record<string, string>>;
  let key: string;

  before(async () => {
    ({ key } = await world.newKey());
    environment = { ...world.environment, METRICS_ADDRESS: 'off' };
  });

  function me(server: ServerProcess, id: string): Promise<unknown> {
    return send(server.url, '/api/v1/me', { headers: { 'x-api-key': key, 'x-request-id': id } });
  }

  describe('that runs', () => {
    let server: ServerProcess;

    before(async () => {
      server = await startWorkers({ ...environment, METRICS_ADDRESS: '127.0.0.1:0' }, WORKERS);
    });

    after(() => server.stop('SIGKILL'));

    async function seriesOf(...names: readonly string[]): Promise<(number | undefined)[]> {
      const { series } = await scrape(metricsUrlOf(server));
      return names.map((name) => series.get(name));
    }

    it('all workers answer, and /metrics counts their requests together', async () => {
      const pids = workersOf(server);
      assert.ok(!pids.includes(server.child.pid ?? 0));
      for (let i = 0; i < WORKERS * 3; i += 1) await me(server, `all-${i}`);
      await eventually('every request is logged', () => linesOf(server, 'request').length === WORKERS * 3);
      assert.deepEqual(new Set(linesOf(server, 'request').map(({ pid }) => pid)), new Set(pids));
      assert.deepEqual(
        linesOf(server, 'listening').map(({ pid }) => pid),
        [undefined],
      );
      assert.deepEqual(await seriesOf(SERVED, 'catalog_workers', 'catalog_worker_ends_total'), [
        WORKERS * 3,
        WORKERS,
        0,
      ]);
      // These states are no sums.
      assert.deepEqual(
        await seriesOf('catalog_component_up{component="redis"}', 'catalog_build_info{version="1.0.0"}'),
        [1, 1],
      );
    });

    it('the status page shows that a worker is frozen', async () => {
      const operator = await signInOperator({ operatorUrl: new URL(metricsUrlOf(server)).origin, db: world.db });
      const [frozen = assert.fail()] = workersOf(server);
      process.kill(frozen, 'SIGSTOP');
      try {
        const { text } = await operator.get('/');
        assert.ok(text.includes('A worker process does not answer. ') && !text.includes('Everything works.'), text);
      } finally {
        process.kill(frozen, 'SIGCONT');
      }
    });

    it('the operator pages, which the primary serves, show all workers, and their acts apply on each at once', async () => {
      const { key: victim, prefix, developerId } = await world.newKey();
      const statuses = async (): Promise<Set<number>> => {
        const headers = { 'x-api-key': victim };
        const replies = Array.from({ length: WORKERS * 2 }, () => send(server.url, '/api/v1/me', { headers }));
        return new Set((await Promise.all(replies)).map(({ status }) => status));
      };
      assert.deepEqual(await statuses(), new Set([200]));
      const operator = await signInOperator({ operatorUrl: new URL(metricsUrlOf(server)).origin, db: world.db });
      const { text } = await operator.get('/');
      const [served] = await seriesOf(SERVED);
      assert.match(text, new RegExp(`${WORKERS} of ${WORKERS} workers`));
      assert.match(text, new RegExp(`<code>getMe</code></th><td class="numeric"[^>]*>${served}<`));
      assert.match(text, /<dt>Redis<\/dt><dd>(?:Valkey )?\d/);
      for (const [path, status] of [
        [`/developers/${developerId}/suspend`, 401],
        [`/developers/${developerId}/reinstate`, 200],
        [`/keys/${prefix}/revoke`, 401],
      ] as const) {
        const { headers } = await operator.post(path);
        assert.ok((await operator.get(headers.location ?? '')).text.includes('from the next request'), path);
        assert.deepEqual(await statuses(), new Set([status]), path);
      }
      assert.ok((await operator.get('/failed-keys')).text.includes('<code>127.0.0.1</code>'));
    });

    it('workers serve exactly 50 of 100 concurrent requests on a plan of 50 a minute', async () => {
      const limited = await newKey(world.db, await newPlan(world.db, 'fifty', 50, 100_000));
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask(server.url, limited.key)));
      assert.deepEqual(tally(answers), { 200: 50, 429: 50 });
    });

    it('a worker that is killed is replaced at once, and only its connections are lost', async () => {
      const load = startLoad(server.url, key, 30);
      const pids = workersOf(server);
      const [victim = 0] = pids;
      await eventually('all are at work', () => load.exchanges.length > 300);
      process.kill(victim, 'SIGKILL');
      const { length } = load.exchanges;
      await eventually('the others go on', () => load.exchanges.length > length + 300);
      await load.stop();
      const replacement = await eventually('another worker listens', () =>
        workersOf(server).find((pid) => !pids.includes(pid)),
      );
      await eventually('it answers', async () => {
        await me(server, 'replaced');
        return linesOf(server, 'request').some(({ pid }) => pid === replacement);
      });

      const answeredBy = new Map(linesOf(server, 'request').map(({ request_id: id, pid }) => [id, pid]));
      const ofVictim = load.exchanges.filter(({ id, status }) => status === 200 && answeredBy.get(id) === victim);
      const failed = load.exchanges.filter(({ status }) => status !== 200);
      assert.ok(failed.length > 0);
      const connections = new Set(ofVictim.map(({ connection }) => connection));
      assert.deepEqual(
        failed.filter(({ connection }) => !connections.has(connection)),
        [],
      );
      const [ended] = linesOf(server, 'worker ended');
      assert.deepEqual([ended?.pid, ended?.signal], [victim, 'SIGKILL']);
      const metrics = (): Promise<unknown> => seriesOf('catalog_workers', 'catalog_worker_ends_total');
      assert.deepEqual(await eventually('a scrape succeeds', metrics), [WORKERS, 1]);
    });

    it('workers whose primary is killed finish their requests and leave no process', async () => {
      const pids = workersOf(server);
      const client = new pg.Client({ connectionString: world.url });
      await client.connect();
      await client.query('begin; lock table catalog_counts in access exclusive mode');
      const reply = send(server.url, '/api/v1/stats', { headers: { 'x-api-key': key } });
      await eventually('the request waits', async () => {
        // A transaction sees the activity as it was at its first look.
        await client.query('select pg_stat_clear_snapshot()');
        const { rows } = await client.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        );
        return rows.length > 0;
      });
      server.child.kill('SIGKILL');
      await eventually('the port is free', () => isRefused(server.url));
      await client.end();
      assert.equal((await reply).status, 200);
      await areGone(pids);
      assert.equal(linesOf(server, 'stopped').length, WORKERS);
    });
  });

  describe('that starts', () => {
    it('a server fails to start with the error of its first worker', async () => {
      const holder = createServer().listen(0, '127.0.0.1');
      await once(holder, 'listening');
      const port = String((holder.address() as AddressInfo).port);
      const { code, stdout, stderr } = await runProgram(['serve'], { ...environment, PORT: port, WORKERS: '2' });
      holder.close();
      assert.deepEqual([code, stdout], [1, '']);
      assert.equal(
        stderr,
        `catalog: Cannot listen on HOST 127.0.0.1, PORT ${port}: the port is in use. Stop what uses it, or set PORT to another one.\n` +
          'catalog: The first worker process could not start.\n',
      );
    });

    it('a server ends in order and without a drain on Ctrl-C, which reaches its starting workers as well', async () => {
      const settings = { ...environment, WORKERS: '2', PORT: '0', DRAIN_SECONDS: '600' };
      const server = startProgram(['serve'], settings, { detached: true });
      await eventually('the first worker listens', () => linesOf(server, 'worker listening').length > 0);
      process.kill(-(server.child.pid ?? assert.fail()), 'SIGINT');
      const { code, stderr } = await server.ended;
      assert.deepEqual([code, stderr], [0, '']);
    });

    it('a server drains after SIGTERM once its first worker listens', async () => {
      const server = startProgram(['serve'], { ...environment, WORKERS: '2', PORT: '0', DRAIN_SECONDS: '1' });
      await eventually('the first worker listens', () => linesOf(server, 'listening').length > 0);
      server.child.kill('SIGTERM');
      const { code, stderr, stdout } = await server.ended;
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /"worker":1,.*"drain_seconds":1,"msg":"stopping"/);
      // The second worker, which is still starting, is not waited for.
      assert.ok(!stdout.includes('did not stop in time'), stdout);
    });

    it('a server serves although a worker cannot start, starts that one again after growing pauses, and at the end kills a worker that does not end', async () => {
      const { pathname } = new URL(world.url);
      const name = pathname.slice(1);
      const admin = new pg.Client({ connectionString: world.url.replace(name, 'postgres') });
      await admin.connect();
      const url = `http://127.0.0.1:${await freePort()}`;
      const server = startProgram(['serve'], { ...environment, WORKERS: '2', PORT: new URL(url).port });
      const [first] = await eventually(
        'the first worker listens',
        () => workersOf(server).length > 0 && workersOf(server),
      );
      // Open connections stay. The second worker, which has begun to start, has none yet.
      await admin.query(`alter database ${name} allow_connections false`);
      try {
        const pauses = await eventually('several have ended', () => {
          const ends = linesOf(server, 'worker ended');
          return ends.length >= 3 && ends.map(({ restart_in_ms: pause = NaN }) => pause);
        });
        for (const [i, most] of [100, 200, 400].entries()) {
          const pause = pauses[i] ?? NaN;
          assert.ok(pause >= most / 2 && pause <= most, pauses.join());
        }
        // A worker whose pool needs one more connection just now may be unready, but it answers.
        assert.equal((await send(url, '/livez')).status, 200);
      } finally {
        await admin.query(`alter database ${name} allow_connections true`);
        await admin.end();
      }
      await eventually('it has its workers', () => workersOf(server).length === 2);
      const pids = workersOf(server);
      assert.equal(pids[0], first);
      process.kill(pids[1] ?? assert.fail(), 'SIGSTOP');
      server.child.kill('SIGTERM');
      const { code, stderr } = await server.ended;
      assert.equal(code, 0);
      assert.match(stderr, /^catalog: The database named by DATABASE_URL cannot be reached: .*not currently accepting/);
      assert.deepEqual(
        linesOf(server, 'worker did not stop in time: killed').map(({ pid }) => pid),
        [pids[1]],
      );
      await areGone(pids);
      assert.equal(logOf(server).at(-1)?.msg, 'stopped');
    });
  });

  function isRefused(url: string): Promise<boolean> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname, () => {
        socket.destroy();
        resolve(false);
      });
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
    });
  }
});
