import { fileURLToPath } from 'node:url';
import { PassThrough, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { ROOT } from '../guides.js';
import type { Outcome } from '../program.js';

/** Runs a command on a database alone, and leaves the caution out that changes then print: servers might share a Redis. */
export async function runWithoutRedis(args: readonly string[], databaseUrl: string, input = ''): Promise<Outcome> {
  const { stderr, ...outcome } = await runCommand(args, { DATABASE_URL: databaseUrl }, input);
  return { ...outcome, stderr: stderr.replace(/^catalog: REDIS_URL is not set here: .+\n$/, '') };
}

/** How the process of a command differs. */
export interface CommandOptions {
  /** Whether standard error is a terminal. */
  readonly isTTY?: boolean;
}

/**
 * Runs a command as the program does, within this process. A process of its own would only load the same packages once
 * more, which takes longer than most commands.
 *
 * @param environment - names the database, where the command needs one
 * @param input - what it reads from its standard input
 */
export async function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  input: string | Buffer = '',
  { isTTY = false }: CommandOptions = {},
): Promise<Outcome> {
  // By import(), as the program loads its commands: mocha loads what is imported otherwise as CommonJS, and each class twice.
  const [{ openDatabaseFor, openRedisFor }, { runCommand: run }, { readConfig }] = await Promise.all([
    import('../../../src/commands/connections.js'),
    import('../../../src/commands/program.js'),
    import('../../../src/config/config.js'),
  ]);
  const output = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof output): PassThrough =>
    new PassThrough().setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  const [stdout, stderr] = [stream('stdout'), stream('stderr')];
  const base = {
    packageRoot: fileURLToPath(ROOT).replace(/\/$/, ''),
    pid: process.pid,
    config: () => readConfig(environment),
  };
  const lastActs: (() => void)[] = [];
  const code = await run(args, {
    ...base,
    command: 'catalog',
    stdin: Readable.from([Buffer.from(input)]),
    stdout,
    stderr: Object.assign(stderr, { isTTY }),
    workerId: undefined,
    signal: new AbortController().signal,
    drains: () => false,
    atExit: (act) => lastActs.push(act),
    clientKey: () => environment.CATALOG_API_KEY?.trim() ?? '',
    withDatabase: openDatabaseFor(base, () => undefined),
    withRedis: openRedisFor(base),
  });
  for (const act of lastActs) act();
  for (const unfinished of [stdout, stderr]) {
    unfinished.end();
    await finished(unfinished);
  }
  return { code, ...output };
}
