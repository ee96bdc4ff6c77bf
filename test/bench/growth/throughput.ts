import { count, median, print, printResults } from '../measure.js';
import { CASES, createCases, type CaseName } from '../speed/cases.js';
import { saturate } from '../speed/load/load.js';
import { WARM_UP_SECONDS } from '../speed/rounds.js';
import { startSubject } from '../speed/servers.js';
import { prepareSurroundings, type Surroundings } from '../speed/surroundings.js';

/** What to measure, and for how long. */
export interface ThroughputOptions {
  readonly titles: number;
  /** Numbers of server processes, the smallest first. */
  readonly workers: readonly number[];
  readonly cases: readonly CaseName[];
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
}

/** What a server of so many processes answered: medians over the rounds. */
export interface Throughput {
  readonly workers: number;
  readonly requestsPerSecond: Readonly<Partial<Record<CaseName, number>>>;
}

type Rates = Partial<Record<CaseName, number>>;

/** Loads servers of several numbers of processes, as much as they answer, by turns. Nothing is kept to a core. */
export async function measureThroughput(options: ThroughputOptions): Promise<Throughput[]> {
  const surroundings = await prepareSurroundings(options.titles);
  try {
    const rounds: Rates[][] = [];
    for (let round = 1; round <= options.rounds; round++) {
      print(`Loading ${options.workers.join(', ')} workers, round ${round} of ${options.rounds} …\n`);
      const rates: Rates[] = [];
      // One server at a time: together they would want more connections than PostgreSQL has.
      for (const workers of options.workers) rates.push(await loadServer(workers, surroundings, options));
      rounds.push(rates);
    }
    return options.workers.map((workers, place) => ({
      workers,
      requestsPerSecond: Object.fromEntries(
        options.cases.map((name) => [name, median(rounds.map((rates) => rates[place]?.[name] ?? NaN))]),
      ),
    }));
  } finally {
    await surroundings.close();
  }
}

/** @returns requests a second of each case */
async function loadServer(
  workers: number,
  { stores, ingredients }: Surroundings,
  { cases: names, seconds }: ThroughputOptions,
): Promise<Rates> {
  const subject = await startSubject('service', stores, { workers });
  try {
    const cases = await createCases(subject.url, ingredients);
    const rates: Rates = {};
    for (const name of names) {
      await saturate(subject, cases[name], WARM_UP_SECONDS, stores.folder);
      const { requests, seconds: took } = await saturate(subject, cases[name], seconds, stores.folder);
      rates[name] = requests / took;
    }
    return rates;
  } finally {
    await subject.stop();
  }
}

/** Prints them as a table. */
export function printThroughput(measured: readonly Throughput[], cases: readonly CaseName[]): void {
  printResults(
    'Requests a second, by WORKERS',
    measured.map(({ workers }) => String(workers)),
    cases.map((name) => ({
      what: CASES[name],
      figures: measured.map(({ requestsPerSecond }) => count(requestsPerSecond[name] ?? NaN)),
    })),
  );
}
