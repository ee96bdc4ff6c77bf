import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { readConfig } from '../../src/config/config.js';
import { createLog } from '../../src/platform/telemetry/log.js';
import { createService, type ServiceOptions } from '../../src/service/create-service.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type TestRedis } from '../support/redis/redis.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

const SOURCES = new URL('../../src/', import.meta.url);

/** What a server imports, and what a page does once somebody uses a passkey, in this order. */
const IMPORTED = [
  'commands/serve/serve.ts',
  'service/create-service.ts',
  'service/site.ts',
  '@simplewebauthn/server',
] as const;

/** Imports them one after the other in a process of its own. @returns the files of packages of CommonJS that are loaded after each */
function importAll(): readonly (readonly string[])[] {
  const urls = IMPORTED.map((module) => (module.endsWith('.ts') ? new URL(module, SOURCES).href : module));
  const script = `
    import { createRequire } from 'node:module';
    const loaded = [];
    for (const url of ${JSON.stringify(urls)}) {
      await import(url);
      loaded.push(Object.keys(createRequire(import.meta.url).cache));
    }
    console.log(JSON.stringify(loaded));
  `;
  const output = execFileSync(process.execPath, ['--import=tsx', '--input-type=module', '--eval', script], {
    cwd: new URL('../../', import.meta.url),
    encoding: 'utf8',
    maxBuffer: 16 * 2 ** 20,
  });
  return JSON.parse(output) as string[][];
}

describe('a service that cannot be opened', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let direct: Redis;

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    direct = new Redis(redis.url);
  });

  after(async () => {
    direct.disconnect();
    await redis.stop();
    await database.close();
  });

  function options(settings: Readonly<Record<string, string>>, packageRoot = PROJECT): ServiceOptions {
    return {
      config: readConfig({
        PORT: '0',
        METRICS_ADDRESS: 'off',
        DATABASE_URL: database.url,
        REDIS_URL: redis.url,
        ...settings,
      }),
      log: createLog('silent', process.stdout),
      droppedLines: () => 0,
      packageRoot,
      nodeVersion: process.versions.node,
      migrate: false,
    };
  }

  /** Waits until no connection of a service is left. */
  async function assertNothingOpen(): Promise<void> {
    await eventually('nobody else is connected to Redis', async () => {
      const clients = String(await direct.client('LIST'))
        .trim()
        .split('\n');
      return clients.length === 1;
    });
    await eventually('nobody of the service is connected to PostgreSQL', async () => {
      const { rows } = await database.db.raw<{ rows: unknown[] }>(
        "select from pg_stat_activity where application_name like 'catalog serve%' and datname = current_database()",
      );
      return rows.length === 0;
    });
  }

  it('a service that fails after it has connected to Redis leaves nothing open', async () => {
    const folder = await temporaryFolder();
    await copyFile(`${PROJECT}/package.json`, `${folder}/package.json`);
    await assert.rejects(createService(options({}, folder)), /ENOENT.*openapi\.yaml/);
    await assertNothingOpen();
  });

  it('a service whose port is in use leaves nothing open, not even its metrics address', async () => {
    const occupier = createServer().listen(0, '127.0.0.1');
    await once(occupier, 'listening');
    const metrics = createServer().listen(0, '127.0.0.1');
    await once(metrics, 'listening');
    const { port: metricsPort } = metrics.address() as AddressInfo;
    metrics.close();
    await once(metrics, 'close');
    try {
      const settings = {
        PORT: String((occupier.address() as AddressInfo).port),
        METRICS_ADDRESS: `127.0.0.1:${metricsPort}`,
      };
      await assert.rejects(createService(options(settings)), /the port is in use/);
      await assertNothingOpen();
      const again = createServer().listen(metricsPort, '127.0.0.1');
      await once(again, 'listening');
      again.close();
    } finally {
      occupier.close();
    }
  });
});

describe('what a server loads', () => {
  let loaded: readonly (readonly string[])[];

  before(() => (loaded = importAll()));

  /** @returns the first import after which the package is loaded */
  function loadedBy(name: string): string | undefined {
    return IMPORTED[loaded.findIndex((paths) => paths.some((path) => path.includes(`/${name}/`)))];
  }

  it('the pages load the library for passkeys only when somebody uses one', () => {
    // A package that the library needs.
    assert.equal(loadedBy('reflect-metadata'), '@simplewebauthn/server');
  });
});
