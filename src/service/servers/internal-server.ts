import type { Listener } from '../../http/connection/server.js';
import { OperatorError, withAdvice } from '../../errors.js';
import { serveMetrics } from '../../http/telemetry/metrics-server.js';
import type { CloseStack } from '../../platform/process/close-stack.js';
import { readBuild } from '../../platform/process/package-root.js';
import type { Metrics } from '../../platform/telemetry/metrics.js';
import type { OpenedParts } from '../open-parts.js';
import type { ServiceOptions } from '../options.js';

/** The most connections of the operator pages to the database. They are opened when a page needs them. */
const POOL_SIZE = 2;

/** Bounds on a connection and a statement, in milliseconds: a month of usage is more than an API request reads. */
const ACQUIRE_TIMEOUT_MS = 2_000;
const STATEMENT_TIMEOUT_MS = 8_000;

/**
 * Serves the metrics, and the operator pages beside them, unless they are switched off. If another server on the
 * machine has the default address, this one runs without both.
 *
 * @param opened - closes the parts
 * @returns the URL of the metrics; undefined where they are not served
 * @throws OperatorError when a configured address is not available
 */
export async function openInternalServer(
  options: ServiceOptions,
  parts: OpenedParts,
  metrics: Metrics,
  opened: CloseStack,
): Promise<string | undefined> {
  const { config, log } = options;
  const { metricsAddress: address } = config;
  if (address === undefined) return undefined;
  let origin = '';
  const pages = await openOperatorPages(options, parts, () => origin, opened);
  try {
    const server = opened.add(await serveMetrics(address, metrics, log, pages), (it) => it.close());
    ({ origin } = new URL(server.url));
    return server.url;
  } catch (error) {
    if (address.isRequired || !(error instanceof OperatorError)) throw error;
    log.warn(`metrics are not served (METRICS_ADDRESS=off prevents this warning): ${withAdvice(error)}`);
    return undefined;
  }
}

/** @returns the operator pages; undefined for a server without them */
async function openOperatorPages(
  { config, command, log, packageRoot, nodeVersion, operatorPages }: ServiceOptions,
  { databases, admission, failedAddresses, health, records, publicUrl }: OpenedParts,
  url: () => string,
  opened: CloseStack,
): Promise<Listener | undefined> {
  if (operatorPages === undefined) return undefined;
  const db = opened.add(
    databases.openPool({
      applicationName: 'catalog operator pages',
      poolSize: POOL_SIZE,
      acquireTimeoutMs: ACQUIRE_TIMEOUT_MS,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    }),
    (it) => it.destroy(),
  );
  return operatorPages.createOperatorPages({
    config,
    command,
    log,
    nodeVersion,
    build: await readBuild(packageRoot),
    files: await operatorPages.readStaticFiles(packageRoot),
    guides: await operatorPages.readGuides(packageRoot),
    db,
    changeCallers: admission.changeCallers,
    failedAddresses,
    health,
    checkDatabase: databases.check,
    replicaLag: databases.replicaLag,
    jobs: records.jobs,
    fence: databases.fence,
    url,
    publicUrl,
  });
}
