import { once } from 'node:events';
import { SETTINGS } from '../../config/settings.js';
import type { OperatorError } from '../../errors.js';
import type { RunningService, ServiceOptions, ServiceProcess } from '../../service/create-service.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { addExamples, addItems, addNotes } from '../output/help.js';
import type { Demo } from '../demo/prepare-demo.js';
import { openServerLog } from './server-log.js';

interface ServeFlags {
  migrate?: boolean;
  demo?: boolean;
}

export const registerServe: RegisterCommand = (program, context) => {
  const serve = addItems(
    program.command('serve'),
    'Settings, read from environment variables (defaults in parentheses):',
    Object.values(SETTINGS).map((setting) => [setting.name, `${setting.description} (${setting.default})`]),
  );
  const secrets = Object.values(SETTINGS).flatMap(({ name, isSecret }) => (isSecret ? [`${name}_FILE`] : []));
  addNotes(serve, `Secrets can also be in files: ${secrets.join(', ')} take the path of a file with the value.`);
  addExamples(serve, ['PORT=9000 catalog serve'])
    .description('Run the HTTP server until SIGINT or SIGTERM.')
    .option('--migrate', "bring the schema of DATABASE_URL's database up to date first")
    .option('--demo', 'fill an empty catalogue with the demo data, and create a demo developer and key')
    .action((flags: ServeFlags) => run(flags, context));
};

async function run({ migrate = false, demo = false }: ServeFlags, context: CommandContext): Promise<void> {
  const { drains, packageRoot, workerId } = context;
  const config = context.config();
  const serverLog = openServerLog(context);
  const { log, droppedLines } = serverLog;
  const databaseLost = new AbortController();
  const ending = AbortSignal.any([serverLog.ending, databaseLost.signal]);
  let prepared: Demo | undefined;
  const prepare: ServiceOptions['prepare'] = async ({ db }) => {
    if (!demo) return;
    const { prepareDemo } = await import('../demo/prepare-demo.js');
    prepared = await prepareDemo(db, packageRoot);
  };
  const onDatabaseLost = (reason: OperatorError): void => databaseLost.abort(reason);
  const loadOperatorPages = config.operatorPages ? () => import('../../service/operator-pages.js') : undefined;
  const options = { config, log, droppedLines, packageRoot, migrate, prepare, loadOperatorPages, onDatabaseLost };
  try {
    const service = await (workerId === undefined ? start(options) : startWorker(options));
    const isTooSoon = ending.aborted;
    const { url, metricsUrl, applied } = service;
    if (workerId === undefined) {
      log.info({ url, metrics_url: metricsUrl, applied_migrations: applied }, 'listening');
    }
    if (prepared) {
      const { welcome } = await import('../demo/welcome.js');
      serverLog.write(`${welcome(url, config, prepared)}\n`);
    }
    if (!ending.aborted) await once(ending, 'abort');
    // A signal that arrived before the server listened needs no drain.
    await service.stop(!isTooSoon && drains());
  } catch (error) {
    if (!ending.aborted) {
      await serverLog.close().catch(() => undefined);
      throw error;
    }
    // A terminal sends its signal to the workers too, which may end before they serve.
    log.info({ err: error }, 'stopped before it could serve');
  }
  await serverLog.close();
  databaseLost.signal.throwIfAborted();
}

/**
 * Starts this process as the only server, or as the primary of several workers. The primary answers no requests and
 * does not load the application. This saves a quarter of a second and 30 MiB.
 */
async function start(options: ServiceOptions): Promise<RunningService> {
  if (options.config.workers > 1) {
    const { serveWithWorkers } = await import('../../service/workers.js');
    return serveWithWorkers(options);
  }
  return startService(options);
}

/** Starts the service in this process. Loads the pages for people only if it has them. */
async function startService(options: ServiceOptions): Promise<ServiceProcess> {
  const { createService } = await import('../../service/create-service.js');
  return createService({ ...options, site: options.config.site ? await import('../../service/site.js') : undefined });
}

/** Starts this process as a worker. The primary opens and migrates the database, and serves the metrics of all workers. */
async function startWorker({
  config,
  prepare: _,
  onDatabaseLost: __,
  ...options
}: ServiceOptions): Promise<RunningService> {
  const { Metrics } = await import('../../platform/telemetry/metrics.js');
  Metrics.answerPrimary();
  const service = await startService({ ...options, migrate: false, config: { ...config, metricsAddress: undefined } });
  Metrics.answerPrimary(service.metrics);
  return service;
}
