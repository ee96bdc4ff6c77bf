import { once } from 'node:events';
import { SETTINGS } from '../../config/settings.js';
import type { RunningService, ServiceOptions, ServiceProcess } from '../../service/create-service.js';
import type { PrimaryProcess } from '../../service/workers.js';
import type { RegisterCommand } from '../context.js';
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
    .action(async ({ migrate = false, demo = false }: ServeFlags) => {
      const { drains, packageRoot, pid, link, fork } = context;
      const openFiles = context.openFiles();
      const config = context.config();
      const serverLog = openServerLog(context);
      const { logs, ending: signal } = serverLog;
      const { log } = logs;
      let isTooSoon: boolean | undefined;
      if (link) {
        const service = await createService({
          // The primary serves the metrics of all processes.
          config: { ...config, metricsAddress: undefined },
          ...logs,
          packageRoot,
          pid,
          openFiles,
          migrate: false,
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
      const options: ServiceOptions = {
        config,
        ...logs,
        packageRoot,
        pid,
        openFiles,
        migrate,
        prepare: async ({ db }) => {
          if (!demo) return;
          const { prepareDemo } = await import('../demo/prepare-demo.js');
          prepared = await prepareDemo(db, packageRoot);
        },
      };
      let service: RunningService;
      try {
        service = await start(options, {
          fork,
          onServing: noteServing,
          onUnread: serverLog.noteUnread,
          ending: signal,
        });
      } catch (error) {
        if (!signal.aborted) throw error;
        // A terminal sends its signal to the workers too. Workers that end before they serve have not failed then.
        log.info({ err: error }, 'stopped before it could serve');
        await serverLog.close();
        return;
      }
      noteServing();
      log.info({ url: service.url, metrics_url: service.metricsUrl, applied_migrations: service.applied }, 'listening');
      if (prepared) {
        const { welcome } = await import('../demo/welcome.js');
        serverLog.write(`${welcome(service.url, config, prepared)}\n`);
      }
      await stopWhenAsked(service);
      await serverLog.close();

      /** Notes that the server serves. After a signal that came before, nobody has to wait. */
      function noteServing(): void {
        isTooSoon ??= signal.aborted;
      }

      async function stopWhenAsked(running: RunningService): Promise<void> {
        if (!signal.aborted) await once(signal, 'abort');
        await running.stop(!isTooSoon && drains());
      }
    });
};

/** Starts this process as the only server, or as the primary of several workers. */
async function start(options: ServiceOptions, primary: PrimaryProcess): Promise<RunningService> {
  if (options.config.workers === 1) return createService(options);
  const { serveWithWorkers } = await import('../../service/workers.js');
  return serveWithWorkers(options, primary);
}

/**
 * Loads the application and starts it. The primary of several workers answers no requests and does not load it. This
 * saves a quarter of a second and 30 MiB.
 */
async function createService(options: ServiceOptions): Promise<ServiceProcess> {
  const application = await import('../../service/create-service.js');
  return application.createService(options);
}

function settingsHelp(): string {
  return Object.values(SETTINGS)
    .map(({ name, description, default: fallback }) => `  ${name.padEnd(19)} ${description} (${fallback})`)
    .join('\n');
}
