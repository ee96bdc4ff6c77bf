import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Runs the contract run as the program that it also is; resolves whatever its exit code. */
export function runScript(
  settings: Readonly<Record<string, string>>,
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...settings };
  return new Promise((done) => {
    execFile(
      process.execPath,
      ['--import', 'tsx', 'test/contract/run.ts'],
      { cwd: ROOT, env },
      (error, stdout, stderr) => {
        done({ code: error ? error.code : 0, stdout, stderr });
      },
    );
  });
}
