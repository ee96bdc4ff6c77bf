import { count, printResults, type Result } from '../measure.js';
import { CASES, type CaseName } from './cases.js';
import type { CaseResult, Figures, Saturated } from './rounds.js';
import { PEERS, TIMED, type Peer, type TimedName } from './servers.js';
import type { Memory } from './start-and-memory.js';

/** Everything that was measured; written as JSON as it is. */
export interface SpeedResults {
  readonly machine: string;
  readonly serverCore: string;
  readonly titles: number;
  readonly load: string;
  readonly cases: Readonly<Partial<Record<CaseName, CaseResult>>>;
  /** Seconds to the first answer. */
  readonly start: Readonly<Record<TimedName, number>>;
  readonly memory: Readonly<Record<TimedName, Memory>>;
}

/**
 * How many times the speed of each peer is aimed at. The floor has no batches, so reads can be faster than it. The floor on
 * Koa has no goal: it shows what Koa, the log and the metrics cost.
 */
const LEAST_SPEED: Readonly<Record<CaseName, Readonly<Partial<Record<Peer, number>>>>> = {
  me: { floor: 0.8, fastify: 2.5 },
  stats: { floor: 1.2, fastify: 3 },
  changes: { floor: 0.85, fastify: 1.8 },
  tail: { floor: 1.2, fastify: 3 },
  title: { floor: 1.2, fastify: 3 },
  unchanged: { floor: 1.1 },
  invalid: { floor: 0.8 },
  exhausted: { floor: 0.8, fastify: 2.5 },
};
const MOST_TIMES_P99 = 1.5;
const MOST_MIB_AT_REST = 120;
const MOST_MIB_AFTER_ALL = 140;
const MOST_SECONDS_TO_START = 1.5;

/** A module whose part is smaller everywhere is not listed. */
const LEAST_SHARE_LISTED = 0.01;

/** Prints all tables. @returns whether all goals were met */
export function printSpeed(results: SpeedResults): boolean {
  const { cases, start, memory } = results;
  const entries = Object.entries(cases) as [CaseName, CaseResult][];
  const isMet = [
    ...PEERS.map((peer) =>
      printResults(
        `Requests a second, 32 connections; CPU time of the server process a request; beside ${peer}`,
        ['service', peer, 'ratio', 'service', peer, 'ratio'],
        entries.flatMap(([name, { service, [peer]: figures }]) =>
          figures ? [speedOf(name, service, peer, figures)] : [],
        ),
      ),
    ),
    printResults(
      "Milliseconds to the answer, at half of the service's throughput",
      ['requests/s', 'p50 service', 'floor', 'p99 service', 'floor', 'ratio'],
      entries.map(([name, result]) => latencyOf(name, result)),
    ),
    printResults(
      'Memory of the process (RSS, MiB), and seconds from its start to the first answer',
      ['at rest', `after ${count(memory.service.warmRequests)}`, `after ${count(memory.service.allRequests)}`, 'start'],
      TIMED.map((name) => footprintOf(name, memory[name], start[name])),
    ),
  ].every(Boolean);
  for (const name of TIMED) printProfiles(name, entries);
  return isMet;
}

/** CPU time decides where it is known: on few cores a fast server waits for what shares the others, and seems slower. */
function speedOf(name: CaseName, service: Saturated, peerName: Peer, peer: Saturated): Result {
  const throughput = service.requestsPerSecond / peer.requestsPerSecond;
  const cpu = peer.cpuMicros / service.cpuMicros;
  const least = LEAST_SPEED[name][peerName];
  return {
    what: CASES[name],
    figures: [
      count(service.requestsPerSecond),
      count(peer.requestsPerSecond),
      ratio(throughput),
      ...[service, peer].map(({ cpuMicros }) => (Number.isNaN(cpuMicros) ? '-' : `${cpuMicros.toFixed(0)} µs`)),
      ratio(cpu),
    ],
    ...(least !== undefined && {
      goal: { text: `≥ ×${least}`, isMet: (Number.isNaN(cpu) ? throughput : cpu) >= least },
    }),
  };
}

function latencyOf(name: CaseName, { rate, service, floor }: CaseResult): Result {
  const times = service.p99 / floor.p99;
  return {
    what: CASES[name],
    figures: [
      count(rate),
      ...[service.p50, floor.p50, service.p99, floor.p99].map((ms) => ms.toFixed(2)),
      ratio(times),
    ],
    goal: { text: `≤ ×${MOST_TIMES_P99}`, isMet: times <= MOST_TIMES_P99 },
  };
}

function footprintOf(name: TimedName, { atRest, warm, afterAll }: Memory, start: number): Result {
  const isMet = atRest <= MOST_MIB_AT_REST && afterAll <= MOST_MIB_AFTER_ALL && start <= MOST_SECONDS_TO_START;
  return {
    what: name,
    figures: [...[atRest, warm, afterAll].map(count), `${start.toFixed(2)} s`],
    ...(name === 'service' && {
      goal: {
        text: `≤ ${MOST_MIB_AT_REST} MiB at rest, ≤ ${MOST_MIB_AFTER_ALL} after all; start ≤ ${MOST_SECONDS_TO_START} s`,
        isMet,
      },
    }),
  };
}

function printProfiles(name: TimedName, entries: readonly (readonly [CaseName, CaseResult])[]): void {
  const profiled = entries.flatMap(([caseName, result]) => {
    const { profile, cpuMicros }: Figures = result[name];
    return profile ? [{ caseName, profile, cpuMicros }] : [];
  });
  if (profiled.length === 0) return;
  const largest = (module: string): number => Math.max(...profiled.map(({ profile }) => profile.get(module) ?? 0));
  const modules = [...new Set(profiled.flatMap(({ profile }) => [...profile.keys()]))]
    .filter((module) => largest(module) >= LEAST_SHARE_LISTED)
    .sort((a, b) => largest(b) - largest(a));
  printResults(
    `Where the time of the ${name} goes: part of its CPU time, and microseconds of a request`,
    profiled.map(({ caseName }) => caseName),
    modules.map((module) => ({
      what: module,
      figures: profiled.map(({ profile, cpuMicros }) => {
        const share = profile.get(module) ?? 0;
        return `${(share * 100).toFixed(1)} % ${Number.isNaN(cpuMicros) ? '' : (share * cpuMicros).toFixed(1).padStart(5)}`;
      }),
    })),
  );
}

function ratio(value: number): string {
  return Number.isNaN(value) ? '-' : `×${value.toFixed(2)}`;
}
