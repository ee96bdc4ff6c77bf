import { median } from '../measure.js';
import type { Case } from './cases.js';
import { generate, saturate } from './load/load.js';
import { cpuSeconds } from './load/process-figures.js';
import { takeProfile, type Shares } from './load/profile.js';
import { SERVERS, type ServerName, type Subject } from './servers.js';

/** How long and how often to measure. */
export interface Effort {
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
  readonly isProfiled: boolean;
}

/** What one server did with one case: medians over the rounds. */
export interface Figures {
  readonly requestsPerSecond: number;
  /** CPU time of the server process for one request, in microseconds; NaN where the system does not tell. */
  readonly cpuMicros: number;
  /** Milliseconds, at the rate that both were given. */
  readonly p50: number;
  readonly p99: number;
  readonly profile: Shares | undefined;
}

/** What came of one case. */
export interface CaseResult {
  /** Requests a second at which the latencies were taken. */
  readonly rate: number;
  readonly service: Figures;
  readonly floor: Figures;
}

export type Subjects = Readonly<Record<ServerName, Subject>>;

/** Requests that are not counted: connections are made, statements prepared, code compiled. In seconds. */
export const WARM_UP_SECONDS = 2;

/** Measures one case at both servers by turns. */
export async function measureCase(
  subjects: Subjects,
  load: Case,
  { rounds, seconds, isProfiled }: Effort,
  folder: string,
): Promise<CaseResult> {
  for (const name of SERVERS) await saturate(subjects[name], load, WARM_UP_SECONDS, folder);
  const saturated = await byTurns(rounds, async (name) => {
    const before = cpuSeconds(subjects[name].pid);
    const { requests, seconds: took } = await saturate(subjects[name], load, seconds, folder);
    const cpu = cpuSeconds(subjects[name].pid) - before;
    return { requestsPerSecond: requests / took, cpuMicros: (cpu / requests) * 1e6 };
  });
  const rate = median(saturated.service.map(({ requestsPerSecond }) => requestsPerSecond)) / 2;
  const paced = await byTurns(rounds, (name) => generate(subjects[name], load, seconds, folder, rate));
  const figuresOf = async (name: ServerName): Promise<Figures> => ({
    requestsPerSecond: median(saturated[name].map(({ requestsPerSecond }) => requestsPerSecond)),
    cpuMicros: median(saturated[name].map(({ cpuMicros }) => cpuMicros)),
    p50: median(paced[name].map(({ p50 }) => p50)),
    p99: median(paced[name].map(({ p99 }) => p99)),
    profile: isProfiled
      ? await takeProfile(subjects[name], folder, () => saturate(subjects[name], load, seconds, folder))
      : undefined,
  });
  return { rate, service: await figuresOf('service'), floor: await figuresOf('floor') };
}

async function byTurns<T>(rounds: number, measure: (name: ServerName) => Promise<T>): Promise<Record<ServerName, T[]>> {
  const results: Record<ServerName, T[]> = { service: [], floor: [] };
  for (let round = 0; round < rounds; round++) {
    for (const name of SERVERS) results[name].push(await measure(name));
  }
  return results;
}
