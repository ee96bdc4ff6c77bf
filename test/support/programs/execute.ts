import { execFile } from 'node:child_process';

/** Bound on one program, in milliseconds, on a busy machine. */
const TIMEOUT_MS = 1_200_000;

/** How a program ended. */
export interface Ended {
  /** The exit code, or the signal that has ended it. */
  readonly code: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of this machine to its end in a folder; resolves whatever its exit code. */
export function execute(
  program: string,
  args: readonly string[],
  cwd: string | URL,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
    execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr });
    });
  });
}
