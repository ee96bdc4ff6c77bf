import { execFile, type ExecFileException } from 'node:child_process';
import { userInfo } from 'node:os';

/** A user of the operating system that a child process runs as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** How a child process ended. */
export interface CommandResult {
  /** undefined when it could not be started, or was killed, for example after the timeout. */
  readonly exitCode: number | undefined;
  /** All that it wrote, stdout before stderr; or why it could not be started. */
  readonly output: string;
}

export interface CommandOptions {
  /** The account that runs it; undefined for that of this process. Only root can choose. */
  readonly account: Account | undefined;
  /** The process is killed after this time, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * The environment of child processes. Ours is not passed on: PGDATA, PGPORT and the like would redirect PostgreSQL's
 * programs. The English texts of their messages are recognised.
 */
const CHILD_ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };

/**
 * Runs a program to its end. Never rejects: a failed start is a result too.
 *
 * The program runs in `/`, since the account may not be able to enter our working directory. Another account runs
 * without any of our supplementary groups.
 */
export function runCommand(file: string, args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  return new Promise((resolve) => {
    const spawnOptions = {
      cwd: '/',
      env: CHILD_ENVIRONMENT,
      timeout: options.timeoutMs,
      killSignal: 'SIGKILL',
      ...(options.account && { uid: options.account.uid, gid: options.account.gid }),
    } as const;
    execFile(file, args, spawnOptions, (error, stdout, stderr) => {
      if (!error) resolve({ exitCode: 0, output: stdout + stderr });
      else if (typeof error.code === 'number') resolve({ exitCode: error.code, output: stdout + stderr });
      else resolve({ exitCode: undefined, output: `${stdout}${stderr}${describeFailure(file, error, options)}` });
    });
  });
}

function describeFailure(file: string, error: ExecFileException, options: CommandOptions): string {
  if (error.killed === true) return `${file} did not finish within ${options.timeoutMs / 1000} s`;
  return `${file} could not be run: ${String(error.code ?? error.message)}`;
}

/** Whether this process runs as root. PostgreSQL refuses to run as root. */
export function runningAsRoot(): boolean {
  try {
    return userInfo().uid === 0;
  } catch {
    // Some container platforms run a user without an entry in the system's user table. Root always has one.
    return false;
  }
}

/**
 * The account that runs PostgreSQL when this process is root: the system's `postgres` where it exists, else `nobody`.
 * No account is created: a trial of the service must not change the machine's users.
 */
export async function postgresAccount(): Promise<Account> {
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = await Promise.all([lookUpId('-u', name), lookUpId('-g', name)]);
    if (uid !== undefined && gid !== undefined) return { uid, gid };
  }
  return { uid: 65534, gid: 65534 };
}

async function lookUpId(flag: '-u' | '-g', name: string): Promise<number | undefined> {
  const { exitCode, output } = await runCommand('id', [flag, name], { account: undefined, timeoutMs: 5_000 });
  // A signed number of 32 bits, as a spawned process takes it: nobody is -2 on macOS.
  return exitCode === 0 ? Number(output.trim()) | 0 : undefined;
}

/**
 * Finds the first of some directories that an account cannot enter. It tries them: mode bits do not show access lists
 * and security modules.
 *
 * @returns undefined when the account can enter them all
 */
export async function firstUnreachable(
  directories: readonly string[],
  account: Account | undefined,
): Promise<string | undefined> {
  const script = 'for d; do test -x "$d" || { printf %s "$d"; exit 1; }; done';
  const { exitCode, output } = await runCommand('/bin/sh', ['-c', script, 'sh', ...directories], {
    account,
    timeoutMs: 10_000,
  });
  return exitCode === 0 ? undefined : output || directories[0];
}
