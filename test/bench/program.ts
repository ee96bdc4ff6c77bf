import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const CLI = fileURLToPath(new URL('../../.build/cli.js', import.meta.url));

/** A command that does not end is killed. */
const MOST_MS = 3_600_000;

/** Makes the process write its costs to descriptor 3 when it exits: memory in KiB, CPU times in microseconds. */
const REPORT_COSTS = `data:text/javascript,${encodeURIComponent(
  "import { writeSync } from 'node:fs'; process.on('exit', () => writeSync(3, JSON.stringify(process.resourceUsage())));",
)}`;

/** The costs of a command. */
export interface Run {
  /** How many lines it printed. */
  readonly lines: number;
  /** From the start of its process to the end of it. */
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
}

/** Runs a command of the built program to its end. @param settings - besides the database @throws Error if it fails */
export async function runCatalog(
  databaseUrl: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const start = performance.now();
  const child = spawn(process.execPath, ['--import', REPORT_COSTS, CLI, ...args], {
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    timeout: MOST_MS,
  });
  const output = { 2: '', 3: '' };
  let lines = 0;
  child.stdio[1]?.on('data', (bytes: Buffer) => {
    for (const byte of bytes) if (byte === 0x0a) lines += 1;
  });
  for (const descriptor of [2, 3] as const) {
    child.stdio[descriptor]?.on('data', (bytes: Buffer) => {
      output[descriptor] += bytes.toString();
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`catalog ${args.join(' ')} ended with ${String(code)}: ${output[2]}`);
  const { maxRSS, userCPUTime, systemCPUTime } = JSON.parse(output[3]) as NodeJS.ResourceUsage;
  return {
    lines,
    seconds: (performance.now() - start) / 1_000,
    cpuSeconds: (userCPUTime + systemCPUTime) / 1e6,
    peakMiB: maxRSS / 1_024,
  };
}
