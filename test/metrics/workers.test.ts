import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { eventually } from '../support/eventually.js';
import { runProgram } from '../support/program.js';
import { send } from '../support/request.js';
import { areGone, linesOf, startSurroundings, workersOf, type Surroundings } from '../support/deployments/workers.js';
import { startMeasuredServer, type MeasuredServer, type Scrape } from '../support/http/exposition.js';

/** Bound on a scrape while a worker hangs, in milliseconds; ten seconds is what Prometheus waits. */
const SCRAPE_BOUND_MS = 5_000;

const SERVED = 'catalog_http_requests_total{operation="getMe",status="200"}';

describe('metrics of a server with workers', () => {
  let surroundings: Surroundings;
  let server: MeasuredServer;
  /** The requests and the ended workers that a test begins with. */
  let servedBefore = 0;
  let endsBefore = 0;

  before(async () => {
    surroundings = await startSurroundings();
    server = await startMeasuredServer({ ...surroundings.environment, WORKERS: '2' });
  });

  beforeEach(async () => {
    const { series } = await eventually('both workers answer', async () => {
      const scrape = await server.scrape();
      return scrape.series.get('catalog_workers{state="answering"}') === 2 && scrape;
    });
    servedBefore = series.get(SERVED) ?? 0;
    endsBefore = series.get('catalog_worker_ends_total') ?? 0;
  });

  afterEach(() => {
    for (const pid of workersOf(server)) process.kill(pid, 'SIGCONT');
  });

  after(async () => {
    const pids = workersOf(server);
    await server.stop();
    await areGone(pids);
    await surroundings.stop();
  });

  /** Sends requests, which go to the workers in turn, each on a connection of its own. */
  async function ask(count: number): Promise<void> {
    const headers = { 'x-api-key': surroundings.key };
    for (let i = 0; i < count; i += 1) assert.equal((await send(server.url, '/api/v1/me', { headers })).status, 200);
  }

  /** Scrapes once this many requests are counted. */
  function scrapeAfter(count: number): Promise<Scrape> {
    return eventually(`${count} requests are counted`, async () => {
      const scrape = await server.scrape();
      assert.equal((scrape.series.get(SERVED) ?? 0) - servedBefore, count);
      return scrape;
    });
  }

  function workersIn({ series }: Scrape): (number | undefined)[] {
    return [
      series.get('catalog_workers{state="answering"}'),
      series.get('catalog_workers{state="silent"}'),
      (series.get('catalog_worker_ends_total') ?? NaN) - endsBefore,
    ];
  }

  async function replaced(): Promise<void> {
    await eventually('there are two workers again', () => workersOf(server).length === 2 && endsOf() > endsBefore);
  }

  const endsOf = (): number => linesOf(server, 'worker ended').length;

  it('are those of all, as the primary serves them', async () => {
    await ask(11);
    const scrape = await scrapeAfter(11);
    const { series } = scrape;
    assert.deepEqual(workersIn(scrape), [2, 0, 0]);
    assert.equal(series.get('catalog_http_request_duration_seconds_count{operation="getMe"}'), 11);
    assert.equal(series.get('catalog_rate_limit_decisions_total{counted_in="redis",outcome="served"}'), 11);
    assert.equal(series.get('catalog_database_connections_max{pool="primary"}'), 20);
    assert.equal(series.get('catalog_component_up{component="redis"}'), 1);
    assert.equal(series.get('catalog_caller_cache_open'), 1);
    assert.equal(series.get('catalog_build_info{version="1.0.0"}'), 1);
    // Each worker has answered some of them, and none serves metrics of its own.
    assert.equal(new Set(linesOf(server, 'request').map(({ pid }) => pid)).size, 2);
    assert.equal(server.output.stdout.match(/metrics_url/g)?.length, 1);
    assert.ok(!server.output.stdout.includes('"level":40'));
  });

  it('keep what a killed worker had counted, and count its replacement', async () => {
    await ask(10);
    await scrapeAfter(10);
    process.kill(workersOf(server)[0] ?? assert.fail(), 'SIGKILL');
    await replaced();
    assert.deepEqual(workersIn(await scrapeAfter(10)), [2, 0, 1]);
    await ask(6);
    await scrapeAfter(16);
  });

  it('lose nothing of a worker that ends in order', async () => {
    await ask(10);
    // Nobody has asked for metrics yet.
    process.kill(workersOf(server)[0] ?? assert.fail(), 'SIGTERM');
    await replaced();
    assert.deepEqual(workersIn(await scrapeAfter(10)), [2, 0, 1]);
  });

  it('come in time, with what it said last, while a worker hangs', async () => {
    await ask(10);
    await scrapeAfter(10);
    process.kill(workersOf(server)[0] ?? assert.fail(), 'SIGSTOP');
    const startedAt = performance.now();
    const during = await server.scrape();
    assert.ok(performance.now() - startedAt < SCRAPE_BOUND_MS);
    assert.equal(during.series.get(SERVED), servedBefore + 10);
    assert.deepEqual(workersIn(during), [1, 1, 0]);
    process.kill(workersOf(server)[0] ?? assert.fail(), 'SIGCONT');
    await eventually('both answer', async () => workersIn(await server.scrape())[0] === 2);
    await scrapeAfter(10);
  });

  it('that cannot have the address that was asked for refuse the start, and leave nothing behind', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, stdout, stderr } = await runProgram(['serve'], {
      ...surroundings.environment,
      PORT: '0',
      WORKERS: '2',
      METRICS_ADDRESS: address,
    });
    other.close();
    assert.deepEqual(
      [code, stderr, stdout],
      [
        1,
        `catalog: Cannot listen on METRICS_ADDRESS ${address}: the port is in use. Stop what uses it, or set METRICS_ADDRESS to another one.\n`,
        '',
      ],
    );
  });
});
