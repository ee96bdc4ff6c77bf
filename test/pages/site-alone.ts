import { readFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';
import Koa from 'koa';
import pino from 'pino';
import { MemoryLimiter } from '../../src/admission/charge/memory.js';
import { FailedAttempts } from '../../src/limits/failed-attempts.js';
import { createHttpServer, listen, urlOf } from '../../src/http/connection/server.js';
import type { ConcurrencyLimits } from '../../src/http/request/concurrency.js';
import type { RequestState } from '../../src/http/request/context.js';
import { prepareRequest } from '../../src/http/request/prepare-request.js';
import { problems } from '../../src/http/response/problems.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { Health } from '../../src/platform/telemetry/health.js';
import { OUTAGES } from '../../src/service/parts/outages.js';
import { readStaticFiles } from '../../src/pages/parts/web/static-files.js';
import { readGuides } from '../../src/pages/public/guides/guides.js';
import type { Contract } from '../../src/pages/public/reference/contract.js';
import { createSite } from '../../src/pages/site.js';
import { ROOT } from '../support/guides.js';
import { freePort } from '../support/programs/free-port.js';

/**
 * Serves the site alone, with a database that refuses connections.
 *
 * @param requestTimeoutMs - long enough for any machine unless a test is about the deadline
 */
export async function serveWithoutDatabase(
  limits?: ConcurrencyLimits,
  requestTimeoutMs = 60_000,
): Promise<{ url: string; health: Health; server: Server }> {
  const health = new Health(pino({ enabled: false }), OUTAGES, ['database', 'redis']);
  const db = openDatabase({
    address: `postgres://nobody@127.0.0.1:${await freePort()}/none`,
    applicationName: 'test',
    poolSize: 2,
    acquireTimeoutMs: 300,
    statementTimeoutMs: 300,
  });
  const root = fileURLToPath(ROOT);
  const files = await readStaticFiles(root);
  const contract = load(await readFile(`${root}/openapi.yaml`, 'utf8')) as Contract;
  const site = {
    files,
    guides: await readGuides(root),
    publicUrl: () => 'http://catalog.example',
    docs: () => '/docs',
    operatorContact: undefined,
    command: 'catalog',
    attribution: undefined,
    failedSignIns: new FailedAttempts(),
    signInBy: undefined,
  };
  const app = new Koa<RequestState>();
  app.use(prepareRequest);
  app.use(problems(site.publicUrl));
  app.use(
    createSite(
      {
        db,
        health,
        requestTimeoutMs,
        limiter: new MemoryLimiter(),
        trustedProxies: 0,
        contract,
        failedReports: new FailedAttempts(),
        changeCallers: (act) => act(),
        site,
      },
      limits,
    ),
  );
  const server = createHttpServer(app.callback());
  const port = await listen(server, '127.0.0.1', 0);
  server.once('close', () => {
    void db.destroy();
  });
  return { url: urlOf('127.0.0.1', port), health, server };
}
