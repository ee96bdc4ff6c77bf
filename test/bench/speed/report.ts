import { count, printResults, type Result } from '../measure.js';
import { CASES, type CaseName } from './cases.js';
import type { CaseResult } from './rounds.js';

/** The goals, as multiples of the peer's speed. It has no batches, so reads can be faster than on Koa alone. */
const LEAST_SPEED: Readonly<Partial<Record<CaseName, number>>> = { me: 0.9 };
const MOST_TIMES_P99 = 1.5;

/** Prints all tables. @returns whether all goals were met */
export function printSpeed(cases: Readonly<Partial<Record<CaseName, CaseResult>>>): boolean {
  const entries = Object.entries(cases) as [CaseName, CaseResult][];
  const isFast = printResults(
    'Requests a second, 32 connections; CPU time of the server process a request',
    ['service', 'koa', 'ratio', 'service', 'koa', 'ratio'],
    entries.map(([name, result]) => speedOf(name, result)),
  );
  const isSteady = printResults(
    "Milliseconds to the answer, at half of the service's throughput",
    ['p50 service', 'koa', 'p99 service', 'koa', 'ratio'],
    entries.map(([name, result]) => latencyOf(name, result)),
  );
  return isFast && isSteady;
}

/** CPU time decides if it is known: with few cores, a fast server waits for the other processes and appears slower. */
function speedOf(name: CaseName, { service, koa }: CaseResult): Result {
  const throughput = service.requestsPerSecond / koa.requestsPerSecond;
  const cpu = koa.cpuMicros / service.cpuMicros;
  const least = LEAST_SPEED[name];
  return {
    what: CASES[name],
    figures: [
      count(service.requestsPerSecond),
      count(koa.requestsPerSecond),
      ratio(throughput),
      ...[service, koa].map(({ cpuMicros }) => (Number.isNaN(cpuMicros) ? '-' : `${cpuMicros.toFixed(0)} µs`)),
      ratio(cpu),
    ],
    ...(least !== undefined && {
      goal: { text: `≥ ×${least}`, isMet: (Number.isNaN(cpu) ? throughput : cpu) >= least },
    }),
  };
}

function latencyOf(name: CaseName, { service, koa }: CaseResult): Result {
  const times = service.p99 / koa.p99;
  return {
    what: CASES[name],
    figures: [...[service.p50, koa.p50, service.p99, koa.p99].map((ms) => ms.toFixed(2)), ratio(times)],
    goal: { text: `≤ ×${MOST_TIMES_P99}`, isMet: times <= MOST_TIMES_P99 },
  };
}

function ratio(value: number): string {
  return Number.isNaN(value) ? '-' : `×${value.toFixed(2)}`;
}
