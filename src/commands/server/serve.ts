import type { Knex } from 'knex';
import { once } from 'node:events';
import { join } from 'node:path';
import { SETTINGS } from '../../config/settings.js';
import type { OperatorError } from '../../errors.js';
import type { CommandContext, RegisterCommand } from '../context.js';
import { addExamples, addItems, addNotes } from '../output/help.js';
import { withLocalName } from '../../http/connection/server.js';
import { openServerLog } from '../../service/server-log.js';
import type { Demo } from './demo.js';
import { embeddedDataDir, keepAddresses } from './server-addresses.js';

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
  const { drains, packageRoot, command, nodeVersion } = context;
  const settings = context.config();
  const dataDir = embeddedDataDir(settings, packageRoot);
  // Where nothing else is set, the demo publishes a copy, so that a mirror can be tried.
  const demoCopies =
    demo && dataDir !== undefined && settings.copiesDir === undefined ? join(dataDir, 'copies') : undefined;
  const config = { ...settings, copiesDir: demoCopies ?? settings.copiesDir };
  const serverLog = await openServerLog(context, config);
  const { log, droppedLines } = serverLog;
  const databaseLost = new AbortController();
  const ending = AbortSignal.any([serverLog.ending, databaseLost.signal]);
  try {
    const demoData = demo ? await import('./demo.js') : undefined;
    const { createService } = await import('../../service/create-service.js');
    // Every module is loaded at the start. Node.js keeps an import that has failed, as for want of file descriptors, so
    // a page whose modules were loaded with its first request could fail until the next start.
    const site = config.site ? await import('../../service/site.js') : undefined;
    await site?.loadWebAuthn();
    const operatorPages = config.operatorPages ? await import('../../service/operator-pages.js') : undefined;
    const service = await createService({
      config,
      log,
      droppedLines,
      packageRoot,
      command,
      nodeVersion,
      migrate,
      site,
      operatorPages,
      onDatabaseLost: (reason: OperatorError) => databaseLost.abort(reason),
    });
    let isTooSoon = true;
    try {
      // Once it listens: a key that is made before a start that fails would never be seen.
      const { url, metricsUrl, applied } = service;
      const operatorUrl = operatorPages && metricsUrl && new URL(metricsUrl).origin;
      await keepAddresses(config, packageRoot, { url, operatorUrl });
      const prepare = async (db: Knex): Promise<Demo | undefined> => {
        const prepared = await demoData?.prepareDemo(db, packageRoot, ending);
        const publicUrl = config.publicUrl ?? withLocalName(url);
        if (demoCopies !== undefined) await demoData?.publishDemoCopy(db, demoCopies, config, publicUrl, ending);
        return prepared;
      };
      const prepared = demoData && (await context.withDatabase(prepare, { bulk: true }));
      isTooSoon = ending.aborted;
      log.info({ url, metrics_url: metricsUrl, applied_migrations: applied }, 'listening');
      if (prepared) serverLog.write(`${demoData.welcome(url, config, prepared, context)}\n`);
      if (!ending.aborted) await once(ending, 'abort');
    } finally {
      // A signal that arrived before the server was ready needs no drain.
      await service.stop(!isTooSoon && drains());
    }
  } catch (error) {
    if (!ending.aborted) {
      await serverLog.close().catch(() => undefined);
      throw error;
    }
    log.info({ err: error }, 'stopped before it could serve');
  }
  await serverLog.close();
  databaseLost.signal.throwIfAborted();
}
