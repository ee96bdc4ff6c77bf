import { median } from '../measure.js';
import { generate, saturate } from '../load/load.js';
import { cpuSeconds } from '../load/process-figures.js';
import type { Case } from './cases.js';
import type { ServerName, Subject } from './servers.js';

/** How long and how often to measure. */
export interface Effort {
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
}

/** The figures of one server for one case: medians over the rounds. */
export interface Figures {
  /** At saturation. */
  readonly requestsPerSecond: number;
  /** CPU time of the server process for one request, in microseconds; NaN where the system does not report it. */
  readonly cpuMicros: number;
  /** Milliseconds at half of the service's throughput. */
  readonly p50: number;
  readonly p99: number;
}

export type CaseResult = Readonly<Record<ServerName, Figures>>;
export type Subjects = Readonly<Record<ServerName, Subject>>;

const SERVERS = ['service', 'koa'] as const satisfies readonly ServerName[];

/** Seconds that are not counted, while connections are opened, statements prepared and code compiled. */
export const WARM_UP_SECONDS = 2;

/** Measures one case at the servers by turns. */
export async function measureCase(
  subjects: Subjects,
  load: Case,
  { rounds, seconds }: Effort,
  folder: string,
): Promise<CaseResult> {
  for (const name of SERVERS) await saturate(subjects[name], load, WARM_UP_SECONDS, folder);
  const saturated = await byTurns(SERVERS, rounds, async (name) => {
    const before = cpuSeconds(subjects[name].pid);
    const { requests, seconds: took } = await saturate(subjects[name], load, seconds, folder);
    const cpu = cpuSeconds(subjects[name].pid) - before;
    return { requestsPerSecond: requests / took, cpuMicros: (cpu / requests) * 1e6 };
  });
  const rate = medianOf(saturated.service, 'requestsPerSecond') / 2;
  const paced = await byTurns(SERVERS, rounds, (name) => generate(subjects[name], load, seconds, folder, rate));
  const figuresOf = (name: ServerName): Figures => ({
    requestsPerSecond: medianOf(saturated[name], 'requestsPerSecond'),
    cpuMicros: medianOf(saturated[name], 'cpuMicros'),
    p50: medianOf(paced[name], 'p50'),
    p99: medianOf(paced[name], 'p99'),
  });
  return { service: figuresOf('service'), koa: figuresOf('koa') };
}

async function byTurns<Name extends ServerName, T>(
  names: readonly Name[],
  rounds: number,
  measure: (name: Name) => Promise<T>,
): Promise<Record<Name, T[]>> {
  const results = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) results[name].push(await measure(name));
  }
  return results;
}

function medianOf<Figure extends string>(figures: readonly Readonly<Record<Figure, number>>[], figure: Figure): number {
  return median(figures.map((one) => one[figure]));
}
