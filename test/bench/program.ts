import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../.build/cli.js', import.meta.url));

/** Makes the process write its peak memory, in KiB, to descriptor 3 when it exits. */
const REPORT_PEAK = `data:text/javascript,${encodeURIComponent(
  "import { writeSync } from 'node:fs'; process.on('exit', () => writeSync(3, String(process.resourceUsage().maxRSS)));",
)}`;

/** The output and costs of a command. */
export interface Run {
  readonly stdout: string;
  /** From the start of its process to the end of it. */
  readonly seconds: number;
  readonly peakMiB: number;
}

/** Runs a command of the built program to its end. @param settings - besides the database @throws Error if it fails */
export async function runCatalog(
  databaseUrl: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const start = performance.now();
  const child = spawn(process.execPath, ['--import', REPORT_PEAK, CLI, ...args], {
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const output = { 1: '', 2: '', 3: '' };
  for (const descriptor of [1, 2, 3] as const) {
    child.stdio[descriptor]?.on('data', (bytes: Buffer) => {
      output[descriptor] += bytes.toString();
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`catalog ${args.join(' ')} ended with ${String(code)}: ${output[2]}`);
  return {
    stdout: output[1],
    seconds: (performance.now() - start) / 1000,
    peakMiB: Number(output[3]) / 1024,
  };
}
