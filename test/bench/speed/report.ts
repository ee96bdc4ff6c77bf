import { count, printResults, type Result } from '../measure.js';
import { CASES, type CaseName } from './cases.js';
import type { CaseResult } from './rounds.js';
import { PEERS, type Peer } from './servers.js';

/** The goals, as multiples of each peer's speed. Peers have no batches, so reads can be faster than on Koa alone. */
const LEAST_SPEED: Readonly<Record<Peer, Readonly<Partial<Record<CaseName, number>>>>> = {
  koa: { me: 0.9 },
  fastify: { me: 2.5, stats: 3, changes: 4, tail: 3, title: 3 },
};
const MOST_TIMES_P99 = 1.5;

/** Prints all tables. @returns whether all goals were met */
export function printSpeed(cases: Readonly<Partial<Record<CaseName, CaseResult>>>): boolean {
  const entries = Object.entries(cases) as [CaseName, CaseResult][];
  const tables = PEERS.map((peer) =>
    printResults(
      `Requests a second, 32 connections; CPU time of the server process a request; beside ${peer}`,
      ['service', peer, 'ratio', 'service', peer, 'ratio'],
      entries.map(([name, result]) => speedOf(name, peer, result)),
    ),
  );
  const latencies = printResults(
    "Milliseconds to the answer, at half of the service's throughput",
    ['p50 service', 'koa', 'p99 service', 'koa', 'ratio'],
    entries.map(([name, result]) => latencyOf(name, result)),
  );
  return [...tables, latencies].every(Boolean);
}

/** CPU time decides if it is known: with few cores, a fast server waits for the other processes and appears slower. */
function speedOf(name: CaseName, peer: Peer, { service, [peer]: other }: CaseResult): Result {
  const throughput = service.requestsPerSecond / other.requestsPerSecond;
  const cpu = other.cpuMicros / service.cpuMicros;
  const least = LEAST_SPEED[peer][name];
  return {
    what: CASES[name],
    figures: [
      count(service.requestsPerSecond),
      count(other.requestsPerSecond),
      ratio(throughput),
      ...[service, other].map(({ cpuMicros }) => (Number.isNaN(cpuMicros) ? '-' : `${cpuMicros.toFixed(0)} µs`)),
      ratio(cpu),
    ],
    ...(least !== undefined && {
      goal: { text: `≥ ×${least}`, isMet: (Number.isNaN(cpu) ? throughput : cpu) >= least },
    }),
  };
}

function latencyOf(name: CaseName, { service, koa }: CaseResult): Result {
  const times = (service.p99 ?? NaN) / (koa.p99 ?? NaN);
  return {
    what: CASES[name],
    figures: [...[service.p50, koa.p50, service.p99, koa.p99].map((ms) => ms?.toFixed(2) ?? '-'), ratio(times)],
    goal: { text: `≤ ×${MOST_TIMES_P99}`, isMet: times <= MOST_TIMES_P99 },
  };
}

function ratio(value: number): string {
  return Number.isNaN(value) ? '-' : `×${value.toFixed(2)}`;
}
