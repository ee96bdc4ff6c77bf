import { writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { machine, print } from '../measure.js';
import { measureReads, printReads } from '../reads.js';
import { casesNamed } from '../speed/cases.js';
import { CONNECTIONS, LOADED_BY } from '../speed/load/load.js';
import { CHARTS } from './charts.js';
import { readResults, writeResults, type GrowthResults } from './results.js';
import { measureThroughput, printThroughput } from './throughput.js';

/** What to measure, and for how long. */
export interface GrowthOptions {
  /** Numbers of titles that requests are timed at, the smallest first. */
  readonly sizes: readonly number[];
  /** For how long they are timed, all sizes together. */
  readonly readSeconds: number;
  /** Of the catalogue that servers of several numbers of processes are loaded with. */
  readonly titles: number;
  readonly workers: readonly number[];
  readonly cases: readonly string[];
  readonly rounds: number;
  /** Of each measurement of throughput. */
  readonly seconds: number;
}

/**
 * Measures how the service keeps up with a growing catalogue and with more processes, and draws both as charts. The figures
 * and the charts are written beside this file, where the performance guide shows them.
 *
 * @returns whether all goals were met
 */
export async function benchGrowth(options: GrowthOptions): Promise<boolean> {
  const cases = casesNamed(options.cases);
  const bySize = await measureReads(options.sizes, options.readSeconds);
  const byWorkers = await measureThroughput({ ...options, cases });
  const { titles, rounds, seconds } = options;
  const results: GrowthResults = {
    machine: machine(),
    cores: cpus().length,
    reads: { seconds: options.readSeconds, bySize },
    throughput: { titles, connections: CONNECTIONS, load: LOADED_BY, rounds, seconds, byWorkers },
  };
  await writeResults(results);
  const isMet = printReads(bySize);
  printThroughput(byWorkers, cases);
  await drawGrowth();
  return isMet;
}

/** Draws the charts from what was measured last. */
export async function drawGrowth(): Promise<void> {
  const results = await readResults();
  for (const { file, draw } of CHARTS) await writeFile(file, await draw(results));
  print(`\nDrew ${CHARTS.map(({ file }) => fileURLToPath(file)).join(', ')}\n`);
}
