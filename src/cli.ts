#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import cluster from 'node:cluster';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { connectForCommand, useRedis, type CommandContext, type RegisterCommand } from './commands/context.js';
import { ConfigError, readConfig } from './config.js';
import { OperatorError } from './errors.js';
import { openFilesIn } from './platform/file-descriptors.js';
import { WorkerLink } from './platform/workers/worker-link.js';

/** Each command, loaded when it is named: what all of them need together takes a third of a second. */
const COMMANDS: Readonly<Record<string, () => Promise<RegisterCommand>>> = {
  serve: async () => (await import('./commands/serve.js')).registerServe,
  migrate: async () => (await import('./commands/migrate.js')).registerMigrate,
  import: async () => (await import('./commands/import.js')).registerImport,
  export: async () => (await import('./commands/export.js')).registerExport,
  follow: async () => (await import('./commands/follow.js')).registerFollow,
  feed: async () => (await import('./commands/feed.js')).registerFeed,
  demo: async () => (await import('./commands/demo-command.js')).registerDemo,
  plans: async () => (await import('./commands/plans.js')).registerPlans,
  developers: async () => (await import('./commands/developers.js')).registerDevelopers,
  keys: async () => (await import('./commands/keys.js')).registerKeys,
  stats: async () => (await import('./commands/stats.js')).registerStats,
  usage: async () => (await import('./commands/usage.js')).registerUsage,
};

/** Exit codes: what was asked for could not be done; it was not asked for in a way that makes sense. */
const EXIT_FAILED = 1;
const EXIT_MISUSE = 2;

/** How long output may take to leave the process once it was asked to end, in milliseconds. */
const LAST_OUTPUT_MS = 1_000;

const PACKAGE_ROOT = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

const stopping = new AbortController();
/** Whether a server goes on serving for a while: only where the first that asks it to end wants that. */
let drains = false;
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // Asked a second time, it ends at once. A worker that the primary has told to stop has not been asked yet: Ctrl-C
    // asks all processes.
    if (++signals > 1) endAtOnce();
    stop(signal === 'SIGTERM');
  });
}
const link = cluster.worker ? new WorkerLink(cluster.worker, stop) : undefined;

// A file that has reached its limit (ulimit -f) is an error of the write. Without a listener of our own, the signal that comes
// with it would end the process: a package has set one that does.
process.on('SIGXFSZ', () => undefined);

// Whoever read the output has left (`| head`): there is nobody to go on for. The log of a server does not come this way.
let outputFailure: string | undefined;
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') outputFailure ??= message;
  stopping.abort();
});
// What cannot be told there cannot be told anywhere, and is no reason to end.
process.stderr.on('error', () => undefined);
// The last line may fail after everything else is done.
process.once('exit', () => {
  if (outputFailure === undefined || process.exitCode) return;
  process.stderr.write(`catalog: the output cannot be written: ${outputFailure}\n`);
  process.exitCode = EXIT_FAILED;
});

const base: Pick<CommandContext, 'config' | 'packageRoot' | 'pid'> = {
  packageRoot: PACKAGE_ROOT,
  pid: process.pid,
  config: () => readConfig(process.env),
};

const context: CommandContext = {
  ...base,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  // Node.js has raised the limit as far as it may. For a report it looks up who is connected: nobody is, at the start.
  openFiles: () => openFilesIn(process.report.getReport()),
  link,
  fork: () => cluster.fork(),
  signal: stopping.signal,
  drains: () => drains,
  atExit: (act) => {
    process.once('exit', act);
  },
  clientKey: () => process.env.CATALOG_API_KEY?.trim() ?? '',
  withDatabase: async (use, { bulk = false, mayBeReadOnly = false } = {}) => {
    if (!bulk) stopping.signal.addEventListener('abort', exitSoon);
    const database = await connectForCommand(base, { migrate: false, bulk, mayBeReadOnly });
    try {
      return await use(database.db);
    } finally {
      await database.close();
    }
  },
  withRedis: async (use) => {
    const { redisUrl } = base.config();
    return redisUrl === undefined ? undefined : useRedis(redisUrl, use);
  },
};

// Help, and a name that is wrong, are about all of them.
const named = Object.entries(COMMANDS).find(([name]) => name === process.argv[2])?.[1];
const program = new Command('catalog')
  .description('Operates the Catalog Lookup Service.')
  .addHelpText('after', '\nExample:\n  catalog keys create --developer 1 --plan free')
  .showHelpAfterError('(--help shows how it is used)')
  .exitOverride();

for (const load of named === undefined ? Object.values(COMMANDS) : [named]) (await load())(program, context);

try {
  await program.parseAsync(process.argv);
} catch (error) {
  process.exitCode = await report(error);
}
link?.leave();
// What is then still unwritten waits for a reader of the pipe that does not read, and would keep the process for ever.
if (stopping.signal.aborted) setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref();

function stop(isToDrain: boolean): void {
  if (!stopping.signal.aborted) drains = isToDrain;
  stopping.abort();
}

function endAtOnce(): never {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL');
  process.exit(EXIT_FAILED);
}

/** Ends a command that may be waiting. Its work is one transaction, which is done or is not. */
function exitSoon(): void {
  setTimeout(() => process.exit(EXIT_FAILED), LAST_OUTPUT_MS).unref();
}

/** Says what went wrong on stderr, or to the primary, which decides what is made of it. @returns the exit code */
async function report(error: unknown): Promise<number> {
  // Commander has said it already, or it was only asked for help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_MISUSE;
  if (link) link.failed(await explain(error));
  else process.stderr.write(`catalog: ${await explain(error)}\n`);
  return EXIT_FAILED;
}

async function explain(error: unknown): Promise<string> {
  if (error instanceof OperatorError || error instanceof ConfigError) return error.message;
  const { isDatabaseUnavailable } = await import('./platform/database.js');
  if (isDatabaseUnavailable(error) && !isRefusal(error)) {
    return `the database cannot be reached (${(error as Error).message}). Check DATABASE_URL and that PostgreSQL is running.`;
  }
  if (isRefusal(error)) return `the database refused this: ${error.message} (SQLSTATE ${error.code})`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** An error of PostgreSQL's own, told by its five-character code: a missing privilege, a lock that was not given. */
function isRefusal(error: unknown): error is Error & { code: string } {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^(?=.*\d)[0-9A-Z]{5}$/.test(error.code)
  );
}
