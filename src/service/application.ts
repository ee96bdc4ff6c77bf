import { readFile } from 'node:fs/promises';
import type Koa from 'koa';
import { createApp } from '../app.js';
import type { OpenedAdmission } from '../admission/open-admission.js';
import type { PublishedFolder } from '../copies/published.js';
import type { ConnectionCloser } from '../http/connection/pipelining.js';
import type { RequestState } from '../http/request/context.js';
import type { RequestMetrics } from '../http/telemetry/record-requests.js';
import type { Health } from '../platform/telemetry/health.js';
import type { Micros } from '../platform/time/micros.js';
import type { SteadyClock } from '../platform/time/steady-clock.js';
import type { Databases } from './parts/databases.js';
import type { Failures } from './parts/failures.js';
import type { ServiceOptions } from './options.js';
import type { RequestRecords } from './parts/records.js';

interface ApplicationParts {
  readonly now: () => Micros;
  readonly clock: SteadyClock;
  readonly health: Health;
  readonly databases: Databases;
  readonly records: RequestRecords;
  readonly admission: OpenedAdmission;
  readonly failures: Failures;
  readonly copies: PublishedFolder | undefined;
  readonly requestMetrics: RequestMetrics;
  readonly closer: ConnectionCloser;
  readonly isStopping: () => boolean;
  /** The origin of the public pages, once their server listens. */
  readonly publicUrl: () => string;
}

/** Gives each stage of a request its parts. */
export async function openApplication(options: ServiceOptions, parts: ApplicationParts): Promise<Koa<RequestState>> {
  const { config, log, packageRoot, site } = options;
  const { now, clock, health, databases, records, admission, failures, copies, closer, isStopping, publicUrl } = parts;
  const { db, read, check: checkDatabase } = databases;
  const { admit, limiter, redis, beginChange } = admission;
  const readText = (name: string): Promise<string> => readFile(`${packageRoot}/${name}`, 'utf8');
  const contract = {
    yaml: await readText('openapi.yaml'),
    json: await readText('generated/openapi.json'),
    leakedKeys: await readText('generated/openapi-leaked-keys.json'),
    copies: copies && (await readText('generated/openapi-copies.json')),
  };
  const { requestTimeoutMs, trustedProxies, publicUrl: setUrl, securityContact } = config;
  const common = { requestTimeoutMs, trustedProxies };
  const reports = { ...common, db, failedReports: failures.reports, beginChange };
  const authentication = { ...common, admit, failedAttempts: failures.keys, lastUsed: records.lastUsed };
  const hasPages = site !== undefined;
  const forPages = { config, log, packageRoot, contract: contract.json, health, isStopping, limiter, redis, clock };
  return createApp({
    record: { log, metrics: parts.requestMetrics, usage: records.usage },
    closer,
    leakedKeys: { ...reports, hasPages },
    pages: await site?.openSite({ ...reports, ...forPages, publicUrl }),
    copies: copies && { ...authentication, copies },
    probes: { health, checkDatabase, isStopping, contract, publicUrl: setUrl, securityContact, hasPages },
    authentication,
    api: { contract: contract.json, db, read, now },
  });
}
