import process from 'node:process';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { PassThrough, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { CommandContext } from '../../../src/commands/context.js';
import type * as Program from '../../../src/commands/program.js';
import { ROOT } from '../guides.js';
import { noteOutput, type Outcome } from '../program.js';

/** Runs a command on a database alone, without the caution that changes then print: servers might share a Redis. */
export async function runWithoutRedis(
  args: readonly string[],
  databaseUrl: string,
  input = '',
  settings: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const { stderr, ...outcome } = await runCommand(args, { DATABASE_URL: databaseUrl, ...settings }, input);
  return { ...outcome, stderr: stderr.replace(/^catalog: REDIS_URL is not set here: .+\n$/, '') };
}

/** How the process of a command differs. */
export interface CommandOptions {
  /** Whether standard input and standard error are a terminal. */
  readonly isTTY?: boolean;
  /** The width of standard output, which is then a terminal. */
  readonly columns?: number;
  /** How the program was started. */
  readonly command?: string;
}

/** A command that runs within this process. */
export interface RunningCommand {
  /** What it has written until now. */
  readonly output: Readonly<Record<'stdout' | 'stderr', string>>;
  readonly ended: Promise<Outcome>;
  /** Ends it as a signal ends the program. */
  stop(): Promise<Outcome>;
}

/**
 * Runs a command as the program does, within this process. A process of its own would only load the same packages once
 * more, which takes longer than most commands.
 *
 * @param environment - names the database, where the command needs one
 * @param input - what it reads from its standard input
 */
export function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  input: string | Buffer = '',
  options: CommandOptions = {},
): Promise<Outcome> {
  return startCommand(args, environment, input, options).ended;
}

/** The same for a command that runs until it is stopped. */
export function startCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  input: string | Buffer = '',
  { isTTY = false, columns, command }: CommandOptions = {},
): RunningCommand {
  const output = { stdout: '', stderr: '' };
  noteOutput(args, output);
  const stopping = new AbortController();
  const stream = (name: keyof typeof output): PassThrough =>
    new PassThrough().setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  const run = async (): Promise<Outcome> => {
    const program = await loadProgram();
    const [stdout, stderr] = [stream('stdout'), stream('stderr')];
    const lastActs: (() => void)[] = [];
    const code = await program.runCommand(args, {
      ...(await commandContext(environment, Object.assign(stderr, { isTTY }))),
      ...(command !== undefined && { command }),
      signal: stopping.signal,
      stdin: Object.assign(Readable.from([Buffer.from(input)]), { isTTY }),
      stdout: Object.assign(stdout, columns !== undefined && { columns, isTTY: true }),
      atExit: (act) => lastActs.push(act),
    });
    for (const act of lastActs) act();
    for (const unfinished of [stdout, stderr]) {
      unfinished.end();
      await finished(unfinished);
    }
    return { code, ...output };
  };
  const ended = run();
  return {
    output,
    ended,
    stop() {
      stopping.abort();
      return ended;
    },
  };
}

/** A command of the program. */
export interface ProgramCommand {
  /** As users type it: `keys create`. */
  readonly name: string;
  readonly command: Command;
}

/** @returns every command of the program, with its subcommands */
export async function programCommands(): Promise<readonly ProgramCommand[]> {
  const { createProgram } = await loadProgram();
  const { stdout, stderr, stdin } = process;
  const program = await createProgram(undefined, {
    ...(await commandContext({}, stderr)),
    stdout,
    stdin,
    atExit: () => undefined,
  });
  const list = (parent: Command, path: string): ProgramCommand[] =>
    parent.commands.flatMap((command) => {
      const name = `${path}${command.name()}`;
      return [{ name, command }, ...list(command, `${name} `)];
    });
  return list(program, '');
}

/** By import(), as the program loads its commands: mocha loads other imports as CommonJS, and each class twice. */
function loadProgram(): Promise<typeof Program> {
  return import('../../../src/commands/program.js');
}

/** What a command may use, except for its other streams. */
async function commandContext(
  environment: Readonly<Record<string, string>>,
  stderr: CommandContext['stderr'],
): Promise<Omit<CommandContext, 'stdin' | 'stdout' | 'atExit'>> {
  const [{ openDatabaseFor, openRedisFor }, { readConfig }] = await Promise.all([
    import('../../../src/commands/connections.js'),
    import('../../../src/config/config.js'),
  ]);
  const base = {
    packageRoot: fileURLToPath(ROOT).replace(/\/$/, ''),
    config: () => readConfig(environment),
    stderr,
  };
  return {
    ...base,
    command: 'catalog',
    nodeVersion: process.versions.node,
    signal: new AbortController().signal,
    drains: () => false,
    withDatabase: openDatabaseFor(base, () => undefined),
    withRedis: openRedisFor(base),
  };
}
