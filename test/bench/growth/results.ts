import { readFile, writeFile } from 'node:fs/promises';
import type { ReadTimes } from '../reads.js';
import type { Throughput } from './throughput.js';

const FILE = new URL('growth.json', import.meta.url);

/** Everything that the charts are drawn from. */
export interface GrowthResults {
  readonly machine: string;
  readonly cores: number;
  readonly reads: {
    /** For which all sizes together were asked. */
    readonly seconds: number;
    readonly bySize: readonly ReadTimes[];
  };
  readonly throughput: {
    readonly titles: number;
    readonly connections: number;
    /** The program that sent the requests. */
    readonly load: string;
    readonly rounds: number;
    /** Of each measurement. */
    readonly seconds: number;
    readonly byWorkers: readonly Throughput[];
  };
}

/** @returns what was measured last */
export async function readResults(): Promise<GrowthResults> {
  return JSON.parse(await readFile(FILE, 'utf8')) as GrowthResults;
}

/** Keeps what was measured. */
export async function writeResults(results: GrowthResults): Promise<void> {
  await writeFile(FILE, `${JSON.stringify(results, toMicros, 2)}\n`);
}

/** Nothing is measured more finely than to the millionth. */
function toMicros(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value;
}
