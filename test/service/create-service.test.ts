import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { readConfig } from '../../src/config/config.js';
import { createLog } from '../../src/platform/telemetry/log.js';
import { createService } from '../../src/service/create-service.js';
import type { ServiceOptions } from '../../src/service/options.js';
import { eventually } from '../support/eventually.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

describe('a service that cannot be opened', () => {
  const world = testWorld({ redis: true });
  let direct: Redis;

  before(() => {
    direct = new Redis(world.redis.url);
    world.defer(() => direct.disconnect());
  });

  function options(settings: Readonly<Record<string, string>>, packageRoot = PROJECT): ServiceOptions {
    return {
      config: readConfig({ PORT: '0', METRICS_ADDRESS: 'off', ...world.environment, ...settings }),
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
      const { rows } = await world.db.raw<{ rows: unknown[] }>(
        "select from pg_stat_activity where application_name like 'catalog serve%' and datname = current_database()",
      );
      return rows.length === 0;
    });
  }

  it('a service that fails after it has connected to Redis leaves nothing open', async () => {
    const folder = await temporaryFolder();
    await copyFile(`${PROJECT}/package.json`, `${folder}/package.json`);
    await assert.rejects(createService(options({}, folder)), /ENOENT.*openapi\.json/);
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
