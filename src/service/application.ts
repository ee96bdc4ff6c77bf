import { readFile } from 'node:fs/promises';
import type Koa from 'koa';
import { createApp } from '../app.js';
import type { RequestState } from '../http/request/context.js';
import type { RequestMetrics } from '../http/telemetry/record-requests.js';
import type { OpenedParts } from './open-parts.js';
import type { ServiceOptions } from './options.js';

/** Gives each stage of a request its parts. */
export async function openApplication(
  options: ServiceOptions,
  parts: OpenedParts,
  metrics: RequestMetrics,
): Promise<Koa<RequestState>> {
  const { config, command, log, packageRoot, site } = options;
  const { health, records, notices, copies, closer, isStopping, publicUrl } = parts;
  const { db, read, check: checkDatabase } = parts.databases;
  const { admit, limiter, redis, changeCallers } = parts.admission;
  const readText = (name: string): Promise<string> => readFile(`${packageRoot}/${name}`, 'utf8');
  const contract = await readText('generated/openapi.json');
  const documents = {
    '/openapi.yaml': await readText('openapi.yaml'),
    '/openapi.json': contract,
    '/openapi-leaked-keys.json': await readText('generated/openapi-leaked-keys.json'),
    ...(copies && { '/openapi-copies.json': await readText('generated/openapi-copies.json') }),
  };
  const { requestTimeoutMs, trustedProxies, publicUrl: setUrl, securityContact, operatorContact } = config;
  const common = { requestTimeoutMs, trustedProxies };
  const reports = { ...common, db, failedReports: parts.failedReports, changeCallers };
  const authentication = { ...common, admit, failedAttempts: parts.failedKeys, quotaNotices: notices?.quotas };
  const hasPages = site !== undefined;
  const forPages = { config, command, log, packageRoot, contract, health, limiter, redis };
  return createApp({
    record: { log, metrics, usage: records.usage, failures: records.failures },
    closer,
    publicUrl,
    leakedKeys: { ...reports, hasPages },
    pages: await site?.openSite({ ...reports, ...forPages, publicUrl }),
    copies: copies && { ...authentication, copies },
    probes: { health, checkDatabase, isStopping, documents, publicUrl: setUrl, securityContact, operatorContact },
    authentication,
    api: { contract, db, read, now: parts.now },
  });
}
