import assert from 'node:assert/strict';
import Koa from 'koa';
import pino from 'pino';
import { readConfig } from '../../src/config/config.js';
import { createHttpServer, listen, urlOf, type Listener } from '../../src/http/connection/server.js';
import { serveProbesAndDocuments } from '../../src/http/probes/probes.js';
import type { RequestState } from '../../src/http/request/context.js';
import { prepareRequest } from '../../src/http/request/prepare-request.js';
import { problems } from '../../src/http/response/problems.js';
import { statusLoader, type Component, type Status } from '../../src/pages/operator/status/load-status.js';
import { statusForCallers } from '../../src/pages/public/status.js';
import { Jobs } from '../../src/platform/process/jobs.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { Health, type Dependency } from '../../src/platform/telemetry/health.js';
import { OUTAGES } from '../../src/service/parts/outages.js';
import { assertReadiness } from '../support/http/readiness.js';
import { testWorld } from '../support/world.js';

const DEPENDENCIES = Object.keys(OUTAGES) as Dependency[];

/** Every set of components that can be lost together. */
const SUBSETS = DEPENDENCIES.reduce<Dependency[][]>(
  (subsets, each) => subsets.flatMap((subset) => [subset, [...subset, each]]),
  [[]],
);

/** The three answers of the public status, and what makes each true. */
function expectedStatus(lost: readonly Dependency[]): string {
  if (lost.includes('database')) return 'Unavailable';
  return lost.length > 0 ? 'Degraded' : 'All systems operational';
}

describe('several components that are lost together', () => {
  const world = testWorld();
  const health = new Health(pino({ enabled: false }), OUTAGES, DEPENDENCIES);
  let lag = 0;
  let url: string;
  let loadStatus: () => Promise<Status>;
  let checkDatabase = (): void => undefined;

  /** Serves in this process, until the end of the suite. @returns the URL */
  async function serve(listener: Listener): Promise<string> {
    const server = createHttpServer(listener);
    world.defer(() => server.close());
    return urlOf('127.0.0.1', await listen(server, '127.0.0.1', 0));
  }

  /** @returns what loads the operator page of these components */
  function loaderOf(ofComponents: Health): () => Promise<Status> {
    return statusLoader({
      checkDatabase: async () => checkDatabase(),
      config: readConfig({}),
      db: world.db,
      health: ofComponents,
      replicaLag: () => Promise.resolve(lag),
      jobs: new Jobs(world.db, pino({ enabled: false })),
      fence: new Fence(),
      build: { version: '1.0.0', commit: '' },
      nodeVersion: process.versions.node,
    });
  }

  before(async () => {
    const app = new Koa<RequestState>();
    app.use(prepareRequest);
    app.use(problems(() => url));
    const nothing = { documents: {}, publicUrl: undefined, operatorContact: undefined, securityContact: undefined };
    const checks = { health, checkDatabase: async () => checkDatabase(), isStopping: () => false };
    app.use(serveProbesAndDocuments({ ...nothing, ...checks }));
    url = await serve(app.callback());
    loadStatus = loaderOf(health);
  });

  it('each set of them is shown on the probe, on the public status and on the operator page', async () => {
    assert.equal(SUBSETS.length, 2 ** DEPENDENCIES.length);
    for (const lost of SUBSETS) {
      const name = lost.join(', ') || 'none';
      for (const each of DEPENDENCIES) health.note(each, lost.includes(each) ? 'lost' : 'up');
      await assertReadiness(url, DEPENDENCIES, lost);

      const { summary, details } = statusForCallers(health);
      assert.equal(summary, expectedStatus(lost), name);
      // Without PostgreSQL no call works, so nothing says that all do.
      const told = lost.includes('database') ? (['database'] as const) : lost;
      assert.deepEqual(details, [...new Set(told.map((each) => OUTAGES[each].forCallers))], name);

      const { components } = await loadStatus();
      assert.deepEqual(
        components.flatMap(({ name, current, fault }) =>
          current.state === 'up' ? [] : [[name, fault?.label, fault?.consequence]],
        ),
        DEPENDENCIES.filter((each) => lost.includes(each)).map((each) => {
          return [OUTAGES[each].name, 'Down', OUTAGES[each].consequence];
        }),
        name,
      );
    }
  });

  it('a loss that only a check finds is shown at once, on the probe as on the operator page', async () => {
    const looks = [
      () => assertReadiness(url, DEPENDENCIES, ['database']),
      async () => {
        const shown = (await loadStatus()).components.find(({ name }) => name === OUTAGES.database.name);
        assert.equal(shown?.current.state, 'lost');
      },
    ];
    for (const look of looks) {
      for (const each of DEPENDENCIES) health.note(each, 'up');
      checkDatabase = () => health.note('database', 'lost');
      await look();
      checkDatabase = () => undefined;
    }
  });

  it('a slow database is not reported as down', async () => {
    for (const each of DEPENDENCIES) health.note(each, 'up');
    const lossCount = (): number => health.components.get('database')?.lossCount ?? assert.fail();
    const before = lossCount();
    health.note('database', 'slow');
    health.note('database', 'lost');
    health.note('database', 'slow');
    assert.equal(lossCount(), before + 1);
    await assertReadiness(url, DEPENDENCIES, ['database'], {}, 'slow');
    const componentOf = async (dependency: Dependency): Promise<Component> =>
      (await loadStatus()).components.find(({ name }) => name === OUTAGES[dependency].name) ?? assert.fail();
    const { current, fault } = await componentOf('database');
    assert.deepEqual([current.state, fault?.label, fault?.advice], ['slow', 'Slow', OUTAGES.database.slow?.advice]);
  });

  it('a component that is lost more than five times in 15 minutes comes and goes, and a replica a minute late is behind', async () => {
    const own = new Health(pino({ enabled: false }), OUTAGES, DEPENDENCIES);
    const load = loaderOf(own);
    const faultOf = async (dependency: Dependency, seconds: number): Promise<string | undefined> => {
      lag = seconds;
      const components = (await load()).components.filter(({ name }) => name === OUTAGES[dependency].name);
      assert.equal(components[0]?.lag, dependency === 'replica' ? seconds : 0);
      return components[0].fault?.label;
    };
    for (let losses = 1; losses <= 6; losses += 1) {
      own.note('redis', 'lost');
      own.note('redis', 'up');
      assert.equal(await faultOf('redis', 0), losses > 5 ? 'Comes and goes' : undefined);
    }
    assert.equal(await faultOf('replica', 60), undefined);
    assert.equal(await faultOf('replica', 61), 'Behind');
    assert.equal(await faultOf('database', 61), undefined);
    own.note('replica', 'lost');
    assert.equal(await faultOf('replica', 61), 'Down');
  });
});
