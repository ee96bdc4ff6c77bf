import { execFile } from 'node:child_process';
import { userInfo } from 'node:os';

/** A user of the operating system that programs run as. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** How a program ended. */
export interface CommandResult {
  /** Undefined when it could not be started or was killed, for example after the timeout. */
  readonly exitCode: number | undefined;
  /** All that it wrote, stdout before stderr; or why it could not be started. */
  readonly output: string;
}

/**
 * The environment of child processes. Ours is not passed on: PGDATA, PGPORT and the like would redirect PostgreSQL's
 * programs. Their messages are matched in English.
 */
export const CHILD_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};

/**
 * Runs a program to its end, in `/`: the account may not be able to enter our working directory. Never rejects: a failed
 * start is a result too.
 *
 * @param account - undefined for the account of this process. Only root can choose another one
 * @param timeoutMs - the program is killed after this time, in milliseconds
 */
export function runCommand(
  file: string,
  args: readonly string[],
  account: Account | undefined,
  timeoutMs = 20_000,
): Promise<CommandResult> {
  const options = { cwd: '/', env: CHILD_ENVIRONMENT, timeout: timeoutMs, killSignal: 'SIGKILL', ...account } as const;
  return new Promise((resolve) => {
    execFile(file, args, options, (error, stdout, stderr) => {
      const output = stdout + stderr;
      if (!error) resolve({ exitCode: 0, output });
      else if (typeof error.code === 'number') resolve({ exitCode: error.code, output });
      else resolve({ exitCode: undefined, output: output + error.message });
    });
  });
}

/** Runs a short script with arguments in `/bin/sh`. @returns as {@link runCommand} */
export function runScript(
  script: string,
  args: readonly string[],
  account: Account | undefined,
): Promise<CommandResult> {
  return runCommand('/bin/sh', ['-c', script, 'sh', ...args], account);
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
 * Finds the account that runs PostgreSQL when this process is root: the system's `postgres` where it exists, else
 * `nobody`. No account is created: a trial of the service must not change the machine's users.
 */
export async function postgresAccount(): Promise<Account> {
  for (const name of ['postgres', 'nobody']) {
    const { exitCode, output } = await runScript('id -u "$1" && id -g "$1"', [name], undefined);
    // A signed number of 32 bits, as a spawned process takes it: nobody is -2 on macOS.
    const [uid = 0, gid = 0] = output
      .trim()
      .split('\n')
      .map((id) => Number(id) | 0);
    if (exitCode === 0) return { uid, gid };
  }
  return { uid: 65534, gid: 65534 };
}
