import { once } from 'node:events';
import { SETTINGS } from '../../config/settings.js';
import type { RunningService, ServiceOptions } from '../../service/create-service.js';
import type { PrimaryProcess } from '../../service/workers.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import type { Demo } from '../demo/prepare-demo.js';
import { openServerLog } from './server-log.js';

interface ServeFlags {
  migrate?: boolean;
  demo?: boolean;
}

export const registerServe: RegisterCommand = (program, context) => {
  program
    .command('serve')
    .description('run the HTTP server until SIGINT or SIGTERM')
    .option('--migrate', "bring the schema of DATABASE_URL's database up to date first")
    .option('--demo', 'fill an empty catalogue with the demo data, and create a demo developer and key')
    .addHelpText('after', `\nSettings, from the environment:\n${settingsHelp()}\n\nExample:\n  PORT=9000 catalog serve`)
    .action((flags: ServeFlags) => run(flags, context));
};

async function run({ migrate = false, demo = false }: ServeFlags, context: CommandContext): Promise<void> {
  const { drains, packageRoot, pid, link, fork } = context;
  const openFiles = context.openFiles();
  const config = context.config();
  const serverLog = openServerLog(context);
  const { logs, ending } = serverLog;
  const options = { config, ...logs, packageRoot, pid, openFiles, migrate };
  let isTooSoon: boolean | undefined;
  if (link) {
    const { createService } = await import('../../service/create-service.js');
    // The primary migrates the database, and serves the metrics of all processes.
    const service = await createService({
      ...options,
      migrate: false,
      config: { ...config, metricsAddress: undefined },
    });
    link.offerMetrics(() => service.metrics.snapshot());
    link.listening(service.url);
    noteServing();
    await stopWhenAsked(service);
    // Sends the counts since the last question.
    await link.sendMetrics();
    await serverLog.close();
    return;
  }
  let prepared: Demo | undefined;
  const prepare: ServiceOptions['prepare'] = async ({ db }) => {
    if (!demo) return;
    const { prepareDemo } = await import('../demo/prepare-demo.js');
    prepared = await prepareDemo(db, packageRoot);
  };
  let service: RunningService;
  try {
    const primary = { fork, onServing: noteServing, onUnread: serverLog.noteUnread, ending };
    service = await start({ ...options, prepare }, primary);
  } catch (error) {
    if (!ending.aborted) throw error;
    // A terminal sends its signal to the workers too. Workers that end before they serve have not failed then.
    logs.log.info({ err: error }, 'stopped before it could serve');
    await serverLog.close();
    return;
  }
  noteServing();
  const { url, metricsUrl, applied } = service;
  logs.log.info({ url, metrics_url: metricsUrl, applied_migrations: applied }, 'listening');
  if (prepared) {
    const { welcome } = await import('../demo/welcome.js');
    serverLog.write(`${welcome(url, config, prepared)}\n`);
  }
  await stopWhenAsked(service);
  await serverLog.close();

  /** Notes that the server serves. After a signal that came before, nobody has to wait. */
  function noteServing(): void {
    isTooSoon ??= ending.aborted;
  }

  async function stopWhenAsked(running: RunningService): Promise<void> {
    if (!ending.aborted) await once(ending, 'abort');
    await running.stop(!isTooSoon && drains());
  }
}

/**
 * Starts this process as the only server, or as the primary of several workers. The primary answers no requests and
 * does not load the application. This saves a quarter of a second and 30 MiB.
 */
async function start(options: ServiceOptions, primary: PrimaryProcess): Promise<RunningService> {
  if (options.config.workers > 1) {
    const { serveWithWorkers } = await import('../../service/workers.js');
    return serveWithWorkers(options, primary);
  }
  const { createService } = await import('../../service/create-service.js');
  return createService(options);
}

function settingsHelp(): string {
  return Object.values(SETTINGS)
    .map(({ name, description, default: fallback }) => `  ${name.padEnd(19)} ${description} (${fallback})`)
    .join('\n');
}
