import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually, GIVE_UP_MS } from './eventually.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

let isBuilt = false;

/** @returns the path of the built program. Builds it first if it is missing or older than the sources. */
export function builtProgram(): string {
  if (!isBuilt) {
    const { status, stderr } = spawnSync(process.execPath, ['.config/build.mjs', '--if-old'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`The program cannot be built:\n${stderr}`);
    isBuilt = true;
  }
  return `${ROOT}.build/cli.js`;
}

/** The servers of tests: a slow machine must not make them answer 503. */
export const PATIENT = { REQUEST_TIMEOUT_MS: '10000' } as const;

/** The product's own bound, for tests that freeze what a server depends on: they would wait for long. */
export const PRODUCT_BOUNDS = { REQUEST_TIMEOUT_MS: '900' } as const;

/** Programs that have not ended yet. */
const running = new Set<ChildProcess>();

/** What the programs of the current test have written. */
let outputs: { readonly args: readonly string[]; readonly output: Readonly<Record<'stderr', string>> }[] = [];

/** The most lines of a program that a failure shows. */
const LAST_LINES = 10;

/** Remembers a program for {@link takeLastLines}. */
export function noteOutput(args: readonly string[], output: Readonly<Record<'stderr', string>>): void {
  outputs.push({ args, output });
}

/** @returns the last lines that each program has written to standard error since the last call */
export function takeLastLines(): string {
  const texts = outputs.flatMap(({ args, output: { stderr } }) => {
    const lines = stderr.trimEnd().split('\n').slice(-LAST_LINES);
    return stderr === '' ? [] : [`catalog ${args.join(' ')} wrote:`, ...lines.map((line) => `  ${line}`)];
  });
  outputs = [];
  return texts.join('\n');
}

type Environment = Readonly<Record<string, string>>;

/** How a command ended, and all that it wrote. */
export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The built program, running. */
export interface RunningProgram {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  /** Resolves when it has ended, however it does. */
  readonly ended: Promise<Outcome>;
}

/** How a program is started. */
interface StartOptions {
  /** What starts the program. By default Node.js and the build of the checkout. */
  readonly program?: readonly string[];
  /** In a process group of its own. */
  readonly detached?: boolean;
  /** The most files that it may have open. */
  readonly openFiles?: number;
  /** The most bytes that a file of its own may have, in units of 512: a disk that is soon full. */
  readonly fileBlocks?: number;
  /** What its standard output goes to in place of what is collected: a file that it is appended to, or a descriptor. */
  readonly stdout?: string | number;
  /** The file descriptor that its standard error goes to in place of what is collected. */
  readonly stderr?: number;
}

/**
 * Starts the built program with these settings and no others. By default a server ends without delay and
 * has no pages for people, which take a fifth of its start.
 */
export function startProgram(
  args: readonly string[],
  environment: Environment,
  {
    program = [process.execPath, builtProgram()],
    detached = false,
    openFiles,
    fileBlocks,
    stdout,
    stderr,
  }: StartOptions = {},
): RunningProgram {
  const command = [...program, ...args];
  const limits = [
    ...(openFiles === undefined ? [] : [`ulimit -n ${openFiles}`]),
    ...(fileBlocks === undefined ? [] : [`ulimit -S -f ${fileBlocks}`]),
  ];
  const [file = '', ...rest] =
    limits.length === 0 ? command : ['sh', '-c', `${limits.join(' && ')} && exec "$@"`, 'sh', ...command];
  const opened = typeof stdout === 'string' ? openSync(stdout, 'a') : undefined;
  const target = typeof stdout === 'string' ? opened : stdout;
  const child = spawn(file, rest, {
    env: { PATH: process.env.PATH, DRAIN_SECONDS: '0', SITE: 'off', ...PATIENT, ...environment },
    stdio: ['pipe', target ?? 'pipe', stderr ?? 'pipe'],
    detached,
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  if (opened !== undefined) closeSync(opened);
  const output = { stdout: '', stderr: '' };
  noteOutput(args, output);
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  }
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...output }));
  return { child, output, ended };
}

/** Kills the programs that a failed test has left: they would keep the run from ending. */
export function killPrograms(): void {
  for (const child of running) child.kill('SIGKILL');
}

/** @returns how many lines of a program's log have a message that begins like this */
export function timesLogged({ output }: RunningProgram, message: string): number {
  return output.stdout.split(`"msg":"${message}`).length - 1;
}

/** One line of a server's log; what tests look at. */
interface Line {
  readonly msg: string;
  readonly aborted?: boolean;
  readonly max_connections?: number;
}

/** A server's log so far. */
export function logOf({ output }: RunningProgram): Line[] {
  return output.stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

/** Runs a command to its end. @param input - what it reads from its standard input */
export async function runProgram(
  args: readonly string[],
  environment: Environment,
  input = '',
  options: StartOptions = {},
): Promise<Outcome> {
  const { child, ended } = startProgram(args, environment, options);
  child.stdin?.end(input);
  const timer = setTimeout(() => child.kill('SIGKILL'), GIVE_UP_MS);
  try {
    return await ended;
  } finally {
    clearTimeout(timer);
  }
}

/** A server process that listens. */
export interface ServerProcess extends RunningProgram {
  readonly url: string;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Outcome>;
}

/** Starts `catalog serve` on a free port and waits until it listens. It serves no metrics unless told to. */
export async function startServer(
  environment: Environment,
  flags: readonly string[] = [],
  options: StartOptions = {},
): Promise<ServerProcess> {
  const program = startProgram(['serve', ...flags], { PORT: '0', METRICS_ADDRESS: 'off', ...environment }, options);
  const { child, output } = program;
  const readUrl = (): string | undefined => /\burl"?[=:]"?(http[^\s"]+)/.exec(output.stdout)?.[1];
  // Both in one wait: a wait that outlives the server would keep the tests from ending.
  await eventually(
    'the server listens or ends',
    () => readUrl() ?? (child.exitCode !== null || child.signalCode !== null),
  );
  const url = readUrl();
  if (url === undefined) throw new Error(`the server ended: ${(await program.ended).stderr}`);
  return {
    ...program,
    url,
    stop: (signal = 'SIGTERM') => {
      program.child.kill(signal);
      return program.ended;
    },
  };
}
