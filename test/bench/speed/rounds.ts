import { median } from '../measure.js';
import { isOfPeer, type Case } from './cases.js';
import { generate, saturate } from './load/load.js';
import { cpuSeconds } from './load/process-figures.js';
import { takeProfile, type Shares } from './load/profile.js';
import { SERVERS, TIMED, type ServerName, type Subject } from './servers.js';

/** How long and how often to measure. */
export interface Effort {
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
  readonly isProfiled: boolean;
}

/** What one server did with one case, asked as much as it answers: medians over the rounds. */
export interface Saturated {
  readonly requestsPerSecond: number;
  /** CPU time of the server process for one request, in microseconds; NaN where the system does not report it. */
  readonly cpuMicros: number;
}

/** The same, and its latency. */
export interface Figures extends Saturated {
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
  readonly koa: Saturated;
  /** Undefined where the obvious code answers otherwise. */
  readonly fastify: Saturated | undefined;
}

export type Subjects = Readonly<Record<ServerName, Subject>>;

/** Requests that are not counted: connections are made, statements prepared, code compiled. In seconds. */
export const WARM_UP_SECONDS = 2;

/** Measures one case at the servers by turns. */
export async function measureCase(
  subjects: Subjects,
  load: Case,
  { rounds, seconds, isProfiled }: Effort,
  folder: string,
): Promise<CaseResult> {
  const names = isOfPeer(load) ? SERVERS : SERVERS.filter((name) => name !== 'fastify');
  for (const name of names) await saturate(subjects[name], load, WARM_UP_SECONDS, folder);
  const saturated = await byTurns(names, rounds, async (name) => {
    const before = cpuSeconds(subjects[name].pid);
    const { requests, seconds: took } = await saturate(subjects[name], load, seconds, folder);
    const cpu = cpuSeconds(subjects[name].pid) - before;
    return { requestsPerSecond: requests / took, cpuMicros: (cpu / requests) * 1e6 };
  });
  const mediansOf = (name: ServerName): Saturated => ({
    requestsPerSecond: median(saturated[name].map(({ requestsPerSecond }) => requestsPerSecond)),
    cpuMicros: median(saturated[name].map(({ cpuMicros }) => cpuMicros)),
  });
  const rate = mediansOf('service').requestsPerSecond / 2;
  const paced = await byTurns(TIMED, rounds, (name) => generate(subjects[name], load, seconds, folder, rate));
  const figuresOf = async (name: ServerName): Promise<Figures> => ({
    ...mediansOf(name),
    p50: median(paced[name].map(({ p50 }) => p50)),
    p99: median(paced[name].map(({ p99 }) => p99)),
    profile: isProfiled
      ? await takeProfile(subjects[name], folder, () => saturate(subjects[name], load, seconds, folder))
      : undefined,
  });
  return {
    rate,
    service: await figuresOf('service'),
    floor: await figuresOf('floor'),
    koa: mediansOf('koa'),
    fastify: isOfPeer(load) ? mediansOf('fastify') : undefined,
  };
}

async function byTurns<T>(
  names: readonly ServerName[],
  rounds: number,
  measure: (name: ServerName) => Promise<T>,
): Promise<Record<ServerName, T[]>> {
  const results: Record<ServerName, T[]> = { service: [], floor: [], koa: [], fastify: [] };
  for (let round = 0; round < rounds; round++) {
    for (const name of names) results[name].push(await measure(name));
  }
  return results;
}
