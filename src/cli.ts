#!/usr/bin/env node
import { basename, relative } from 'node:path';
import process from 'node:process';
import { openDatabaseFor, openRedisFor } from './commands/connections.js';
import type { CommandContext } from './commands/context.js';
import { EXIT_FAILED, runCommand } from './commands/program.js';
import { readConfig } from './config/config.js';
import { PACKAGE_ROOT } from './platform/process/package-root.js';

// Stacks then name the sources. The code that is loaded from here on is nearly all there is.
process.setSourceMapsEnabled(true);

/** How long the last output may take to leave the process, in milliseconds. */
const LAST_OUTPUT_MS = 1_000;

// Packages that are loaded from here on would print the commands they send, with the password of Redis.
delete process.env.DEBUG;

const stopping = new AbortController();
/** Whether a server first drains. The first signal decides. */
let drains = false;
/** A second one ends the process at once. */
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    if (++signals > 1) process.exit(EXIT_FAILED);
    if (!stopping.signal.aborted) drains = signal === 'SIGTERM';
    stopping.abort();
  });
}

// A file that has reached its limit (ulimit -f) makes the write fail. A dependency installs a listener that exits; ours
// keeps the process alive.
process.on('SIGXFSZ', () => undefined);

// The reader of the output has ended (`| head`), so nothing is left to do. The log of a server does not use this
// stream.
let outputFailure: string | undefined;
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') outputFailure ??= message;
  stopping.abort();
});
// There is no other place to report this error, and no reason to end.
process.stderr.on('error', () => undefined);
// The last line may fail after everything else has succeeded.
process.once('exit', () => {
  if (outputFailure === undefined) return;
  process.stderr.write(`catalog: the output cannot be written: ${outputFailure}\n`);
  process.exitCode = EXIT_FAILED;
});

const [, script = ''] = process.argv;
const fromHere = relative('', script);
const name = basename(script);
/** A link to this file: npm makes one named as in package.json, and operators make a shorter one. */
const command =
  name === 'catalog' || name === 'catalog-lookup-service'
    ? `${process.env.npm_command === 'exec' ? 'npx --no -- ' : ''}${name}`
    : `node ${fromHere.startsWith('..') ? script : fromHere}`;

const base = { packageRoot: PACKAGE_ROOT, config: () => readConfig(process.env), stderr: process.stderr };

const context: CommandContext = {
  ...base,
  command,
  nodeVersion: process.versions.node,
  stdin: process.stdin,
  stdout: process.stdout,
  signal: stopping.signal,
  drains: () => drains,
  atExit: (act) => {
    process.once('exit', act);
  },
  withDatabase: openDatabaseFor(base, exitOnSignal),
  withRedis: openRedisFor(base),
};

const exitCode = await runCommand(process.argv.slice(2), context);
if (exitCode !== 0) process.exitCode = exitCode;
// Output that is still unwritten waits for a reader of the pipe that does not read. It would keep the process for ever.
if (stopping.signal.aborted) setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref();

/** Lets a signal end a command that may be waiting. Its work is one transaction, which commits or has no effect. */
function exitOnSignal(): void {
  stopping.signal.addEventListener('abort', () => {
    setTimeout(() => process.exit(EXIT_FAILED), LAST_OUTPUT_MS).unref();
  });
}
