#!/usr/bin/env node
import cluster from 'node:cluster';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { openDatabaseFor, openRedisFor, type CommandContext } from './commands/context.js';
import { EXIT_FAILED, runCommand } from './commands/program.js';
import { readConfig } from './config/config.js';
import { openFilesIn } from './platform/process/file-descriptors.js';
import { WorkerLink } from './platform/process/workers/worker-link.js';

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

const base = { packageRoot: PACKAGE_ROOT, pid: process.pid, config: () => readConfig(process.env) };

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
  withDatabase: openDatabaseFor(base, () => {
    stopping.signal.addEventListener('abort', exitSoon);
  }),
  withRedis: openRedisFor(base),
};

const exitCode = await runCommand(process.argv.slice(2), context);
if (exitCode !== 0) process.exitCode = exitCode;
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
