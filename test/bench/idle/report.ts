import type { Tally } from '../../support/http/kept-connections.js';
import { count, median, printResults } from '../measure.js';
import type { End, Memory, Phase, Round } from './rounds.js';

/** Everything that was measured; written as JSON as it is. */
export interface IdleResults {
  readonly machine: string;
  readonly serverCore: string;
  readonly connections: number;
  /** Requests a second of the load. */
  readonly rate: number;
  readonly rounds: readonly Round[];
  readonly end: End;
}

const MOST_TIMES_P99 = 1.5;
const MOST_IDLE_CPU = 0.02;
const MOST_KIB_A_CONNECTION = 10;
/** Over all rounds: more would be memory that is never given back. */
const MOST_TIMES_MEMORY = 1.1;
/** The service's own bound on its end is longer; but here is nothing to wait for. */
const MOST_SECONDS_TO_STOP = 5;

/** Prints all tables. @returns whether all goals were met */
export function printIdle(results: IdleResults): boolean {
  return [printLoad(results), printMemory(results), printConnections(results)].every(Boolean);
}

function printLoad({ connections, rate, rounds }: IdleResults): boolean {
  const medians = (choose: (phase: Phase) => number): [number, number] => [
    median(rounds.map(({ without }) => choose(without))),
    median(rounds.map(({ held }) => choose(held))),
  ];
  const p50 = medians(({ latencies }) => latencies.p50);
  const p99 = medians(({ latencies }) => latencies.p99);
  const cpu = medians(({ idleCpu }) => idleCpu);
  return printResults(
    `${count(rate)} requests a second for /titles/{title_id} on 32 connections`,
    ['alone', `beside ${count(connections)} idle`],
    [
      { what: 'median', figures: p50.map(milliseconds) },
      {
        what: '99th percentile',
        figures: p99.map(milliseconds),
        goal: { text: `≤ ${ratio(MOST_TIMES_P99)}`, isMet: p99[1] <= p99[0] * MOST_TIMES_P99 },
      },
      {
        what: 'of a core, while nobody asks',
        figures: cpu.map((part) => (Number.isNaN(part) ? '-' : `${(part * 100).toFixed(2)} %`)),
        // Where the system does not tell, there is nothing to miss.
        goal: { text: `≤ ${MOST_IDLE_CPU * 100} %`, isMet: Number.isNaN(cpu[1]) || cpu[1] <= MOST_IDLE_CPU },
      },
    ],
  );
}

function printMemory({ connections, rounds }: IdleResults): boolean {
  const memoriesOf = (round: Round | undefined, choose: (memory: Memory) => number): number[] =>
    round ? [round.without.memory, round.held.memory, round.memoryAfter].map(choose) : [];
  const collected = (round: Round | undefined): number[] => memoriesOf(round, (memory) => memory.collected);
  // Later on, the rounds before have left room that is used again.
  const [before = NaN, held = NaN] = collected(rounds[0]);
  const kib = ((held - before) * 1024) / connections;
  const growth = (collected(rounds.at(-1))[1] ?? NaN) / held;
  return printResults(
    'Memory of the process (RSS, MiB)',
    ['before', `with ${count(connections)} idle`, 'when they have closed', 'a connection'],
    [
      {
        what: 'first round, garbage collected',
        figures: [...collected(rounds[0]).map(count), `${kib.toFixed(1)} KiB`],
        goal: { text: `≤ ${MOST_KIB_A_CONNECTION} KiB a connection`, isMet: kib <= MOST_KIB_A_CONNECTION },
      },
      {
        what: 'last round, garbage collected',
        figures: [...collected(rounds.at(-1)).map(count), ''],
        goal: { text: `with them ≤ ${ratio(MOST_TIMES_MEMORY)} of the first`, isMet: growth <= MOST_TIMES_MEMORY },
      },
      {
        what: 'last round, as it stands',
        figures: [...memoriesOf(rounds.at(-1), ({ asItStands }) => asItStands).map(count), ''],
      },
    ],
  );
}

function printConnections({ rounds, end }: IdleResults): boolean {
  const answers = sum(rounds.flatMap(({ answers: ofRound }) => ofRound));
  const isOrderly = end.exitCode === 0 && Object.keys(end.endings).join() === 'ended';
  return printResults(
    'The idle connections themselves',
    [''],
    [
      {
        what: 'answers to them',
        figures: [show(answers)],
        goal: { text: 'all 200', isMet: Object.keys(answers).join() === '200' },
      },
      {
        what: 'SIGTERM with all open',
        figures: [`exit code ${end.exitCode} after ${end.seconds.toFixed(2)} s, ${show(end.endings)}`],
        goal: {
          text: `0, ≤ ${MOST_SECONDS_TO_STOP} s, all ended in order`,
          isMet: isOrderly && end.seconds <= MOST_SECONDS_TO_STOP,
        },
      },
    ],
  );
}

function milliseconds(value: number): string {
  return `${value.toFixed(2)} ms`;
}

function ratio(value: number): string {
  return `×${value.toFixed(2)}`;
}

function sum(tallies: readonly Tally[]): Tally {
  const total: Record<string, number> = {};
  for (const tally of tallies) {
    for (const [outcome, times] of Object.entries(tally)) total[outcome] = (total[outcome] ?? 0) + times;
  }
  return total;
}

function show(tally: Tally): string {
  return Object.entries(tally)
    .map(([outcome, times]) => `${outcome}: ${count(times)}`)
    .join(', ');
}
