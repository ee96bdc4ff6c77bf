import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { skipWithout } from '../support/programs/skip.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/programs/free-port.js';
import { guideConfiguration, startBalancer, type Balancer, type ServerStatistics } from '../support/proxies/haproxy.js';
import { KeptConnections, requestFor } from '../support/http/kept-connections.js';
import { logOf, startServer, type ServerProcess } from '../support/program.js';
import { send } from '../support/request.js';
import { findProgram, HAPROXY } from '../support/programs/system-program.js';
import { testWorld } from '../support/world.js';

/** Connections that clients keep open all the time. */
const CONNECTIONS = 40;

/** Connections that wait for a response at a time. */
const AT_A_TIME = 20;

/** Pause between two rounds of requests, in milliseconds: busy clients, but servers with room. */
const PAUSE_MS = 600;

/** Columns of HAProxy's statistics that count what went wrong between it and a server. */
const FAULTS = ['econ', 'eresp', 'wretr', 'wredis', 'srv_abrt', 'hrsp_5xx', 'hrsp_4xx', 'hrsp_other'];

const NAMES = ['one', 'two'] as const;

describe('two servers behind the balancer of the guide', () => {
  let program: string;
  const world = testWorld();
  let key: string;
  let balancer: Balancer | undefined;
  let url: string;
  const servers: Partial<Record<(typeof NAMES)[number], ServerProcess>> = {};
  const ports = { balancer: 0, one: 0, two: 0 };

  before(async function () {
    program = findProgram(HAPROXY) ?? skipWithout('HAProxy', this);
    ({ key } = await world.newKey());
    world.defer(async () => {
      await balancer?.stop();
      await Promise.all(Object.values(servers).map((server) => server.stop('SIGKILL')));
    });
    for (const name of NAMES) {
      ports[name] = await freePort();
      await start(name);
    }
    ports.balancer = await freePort();
    url = `http://127.0.0.1:${ports.balancer}`;
    const configuration = await guideConfiguration(ports);
    // Otherwise it gives up a check after a second: the server logs an aborted request, and may be taken out.
    balancer = await startBalancer(program, configuration.replace('timeout check 2s', 'timeout check 60s'));
    for (const name of NAMES) await isUp(name);
  });

  /** With the default of DRAIN_SECONDS. */
  async function start(name: (typeof NAMES)[number]): Promise<void> {
    servers[name] = await startServer({
      ...world.environment,
      PORT: String(ports[name]),
      DRAIN_SECONDS: '',
    });
  }

  async function statisticsOf(name: string): Promise<ServerStatistics> {
    return (await balancer?.servers())?.get(name) ?? assert.fail(name);
  }

  function isUp(name: string): Promise<unknown> {
    return eventually(`${name} is up`, async () => (await statisticsOf(name)).status === 'UP');
  }

  it('a server is replaced under load without a failed request or a reset connection', async () => {
    const clients = new KeptConnections(url, CONNECTIONS, requestFor('/api/v1/me', key));
    let rounds = 0;
    const over = new AbortController();
    const load = (async () => {
      while (!over.signal.aborted) {
        assert.deepEqual(await clients.ask(AT_A_TIME), { 200: CONNECTIONS });
        rounds += 1;
        await delay(PAUSE_MS);
      }
    })();
    // A failure ends the test at once: nothing else waits for the load meanwhile.
    const failed = load.then(() => new Promise<never>(() => undefined));

    async function replaceOne(): Promise<void> {
      await eventually('the load flows', () => rounds > 0);
      const old = servers.two ?? assert.fail('it does not run');
      const { code, stderr } = await old.stop();
      assert.deepEqual([code, stderr], [0, '']);
      assert.deepEqual(
        logOf(old).filter(({ aborted }) => aborted),
        [],
      );
      await start('two');
      await isUp('two');
      const { stot } = await statisticsOf('two');
      await eventually('it serves again', async () => (await statisticsOf('two')).stot !== stot);
    }
    await Promise.race([replaceOne(), failed]);
    over.abort();
    await load;

    assert.deepEqual(clients.states, { open: CONNECTIONS });
    clients.close();
    for (const name of NAMES) {
      const statistics = await statisticsOf(name);
      assert.deepEqual(
        Object.fromEntries(FAULTS.map((fault) => [fault, statistics[fault]])),
        Object.fromEntries(FAULTS.map((fault) => [fault, '0'])),
        name,
      );
      // The balancer took it out by its readiness.
      assert.equal(statistics.chkdown, name === 'two' ? '1' : '0', name);
    }
  });

  it('the answer of the balancer without a server is a problem with Retry-After', async () => {
    await Promise.all(Object.values(servers).map((server) => server.stop()));
    for (const name of NAMES) {
      await eventually(`${name} is down`, async () => (await statisticsOf(name)).status?.startsWith('DOWN') === true);
    }
    const { status, headers, json } = await send(url, '/api/v1/me', { headers: { 'x-api-key': key } });
    const { request_id: requestId, code, ...rest } = json as Record<string, unknown>;
    assert.deepEqual(
      [status, headers['content-type'], headers['retry-after'], code, rest.status, Object.keys(rest).toSorted()],
      [503, 'application/problem+json', '2', 'service_unavailable', 503, ['detail', 'status', 'title', 'type']],
    );
    assert.match(String(requestId), /^[0-9a-f-]{36}$/);
  });
});
