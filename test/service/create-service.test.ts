import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { createServer, Socket, type AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../../src/config/config.js';
import { createLog } from '../../src/platform/telemetry/log.js';
import { createService } from '../../src/service/create-service.js';
import type { ServiceOptions } from '../../src/service/options.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/programs/free-port.js';
import { TcpProxy } from '../support/proxies/tcp-proxy.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

/** What makes a service fail, and how to undo it. */
interface Arranged {
  readonly settings?: Readonly<Record<string, string>>;
  readonly packageRoot?: string;
  readonly undo?: () => unknown;
}

const PROJECT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

describe('a service that cannot be opened', () => {
  const world = testWorld({ redis: true });
  /** Lead to the database and to Redis for services, and not for the test. */
  let database: TcpProxy;
  let network: TcpProxy;
  let used: Promise<unknown> | undefined;

  before(async () => {
    database = await TcpProxy.start(world.url);
    network = await TcpProxy.start(world.redis.url);
    world.defer(() => Promise.all([database.stop(), network.stop()]));
  });

  function options(settings: Readonly<Record<string, string>>, packageRoot = PROJECT): ServiceOptions {
    return {
      config: readConfig({
        PORT: '0',
        METRICS_ADDRESS: 'off',
        DATABASE_URL: database.url,
        REDIS_URL: network.url,
        ...settings,
      }),
      log: createLog('silent', process.stdout),
      droppedLines: () => 0,
      packageRoot,
      command: 'catalog',
      nodeVersion: process.versions.node,
      migrate: false,
      overrides: {
        // The primary has an open connection when a later part fails.
        prepare({ db }) {
          used = db.raw('select').catch(() => undefined);
        },
      },
    };
  }

  /** @returns how many connections of this process lead to a URL */
  function countOpen(url: string): number {
    const { _getActiveHandles: handles } = process as unknown as { readonly _getActiveHandles: () => object[] };
    const port = Number(new URL(url).port);
    return handles().filter((each) => each instanceof Socket && each.remotePort === port).length;
  }

  /** Fails if a service has left a connection open. */
  async function assertNothingOpen(): Promise<void> {
    await used;
    // A socket that was destroyed closes in the next turn. A pool that was forgotten closes it after half a minute.
    await setImmediate();
    assert.equal(countOpen(database.url), 0, 'connections to PostgreSQL');
    await eventually('no connection leads to Redis', () => countOpen(network.url) === 0);
  }

  /** Where opening fails: how to arrange that, which undoes it, and the error. */
  const FAILURES: readonly (readonly [where: string, arrange: () => Promise<Arranged>, error: RegExp])[] = [
    [
      'whose database lacks a migration',
      async () => {
        const last = await world.db('migrations').orderBy('id', 'desc').first<{ id: number; name: string }>();
        await world.db('migrations').where({ id: last.id }).delete();
        return { undo: () => world.db('migrations').insert(last) };
      },
      /lacks the migrations/,
    ],
    [
      'whose role may not use its tables',
      async () => {
        await world.db.raw("create role nobody login; alter role nobody password 'x'");
        const url = new URL(database.url);
        Object.assign(url, { username: 'nobody', password: 'x' });
        return { settings: { DATABASE_URL: url.href }, undo: () => world.db.raw('drop role nobody') };
      },
      /may not use the service's tables/,
    ],
    [
      'that lacks a file of its package',
      async () => {
        const packageRoot = await temporaryFolder();
        await copyFile(`${PROJECT}/package.json`, `${packageRoot}/package.json`);
        return { packageRoot };
      },
      /ENOENT.*openapi\.json/,
    ],
    [
      'whose port is in use after its metrics are served',
      async () => {
        const { port, undo } = await occupy();
        const metricsPort = await freePort();
        return {
          settings: { PORT: String(port), METRICS_ADDRESS: `127.0.0.1:${metricsPort}` },
          undo: async () => {
            undo();
            (await occupy(metricsPort)).undo();
          },
        };
      },
      /the port is in use/,
    ],
  ];

  for (const [where, arrange, error] of FAILURES) {
    it(`a service ${where} leaves nothing open`, async () => {
      const { settings = {}, packageRoot, undo } = await arrange();
      try {
        await assert.rejects(createService(options(settings, packageRoot)), error);
        await assertNothingOpen();
      } finally {
        await undo?.();
      }
    });
  }
});

/** Listens on a port of this machine; on any free one by default. */
async function occupy(port = 0): Promise<{ port: number; undo: () => void }> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, undo: () => server.close() };
}
