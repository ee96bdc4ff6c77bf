import { median } from '../../bench/measure.js';
import { failureOf } from '../checks/healing.js';
import type { Call, FaultRecord, HistoryEvent } from '../history.js';

/** A line of a chart: values at times in seconds. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [second: number, value: number])[];
}

/** A fault, and what clients saw of it. */
export interface FaultFigures extends FaultRecord {
  readonly unavailable: number;
  readonly broken: number;
  /** In milliseconds. */
  readonly slowest: number;
  /** How long after its end the last request failed, in milliseconds; 0 if none did after it. */
  readonly healedAfter: number;
}

/** All that the report shows, computed from a history. */
export interface Figures {
  /** In milliseconds. */
  readonly begin: number;
  readonly end: number;
  readonly at: string;
  readonly seed: number;
  /** Calls a second that were aimed at. */
  readonly rate: number;
  readonly totals: Readonly<Record<string, number>>;
  readonly faults: readonly FaultFigures[];
  /** Requests a second by what became of them. */
  readonly requests: readonly Line[];
  /** In milliseconds. */
  readonly latencies: readonly Line[];
  /** Entries a second that were written and that each mirror received. */
  readonly entries: readonly Line[];
  /** Samples by the name of the figure. */
  readonly samples: ReadonlyMap<string, readonly Line[]>;
}

/** Points of a line over the whole time. */
const BUCKETS = 150;

type Request = Pick<Call, 'start' | 'end' | 'status'>;

/** Computes what a report shows. @param history - reads the history from its beginning */
export function figuresOf(history: () => Iterable<HistoryEvent>): Figures {
  const { begin, end, at, seed, rate, faults } = frameOf(history());
  const seconds = (end - begin) / 1000 / BUCKETS;
  const bucketOf = (time: number): number =>
    Math.min(BUCKETS - 1, Math.max(0, Math.floor((time - begin) / 1000 / seconds)));
  const rates = new Map<string, number[]>();
  const durations = Array.from({ length: BUCKETS }, () => [] as number[]);
  const samples = new Map<string, Map<string, [number, number][]>>();
  const totals: Record<string, number> = {};
  const add = (name: string, time: number, count: number): void => {
    const buckets = rates.get(name) ?? Array.from({ length: BUCKETS }, () => 0);
    rates.set(name, buckets);
    buckets[bucketOf(time)] = (buckets[bucketOf(time)] ?? 0) + count / seconds;
  };
  for (const event of history()) {
    if (event.start < begin) continue;
    totals[event.kind] = (totals[event.kind] ?? 0) + 1;
    if (event.kind === 'call' || event.kind === 'view') {
      add(outcomeOf(event), event.end, 1);
      durations[bucketOf(event.end)]?.push(event.end - event.start);
    }
    if (event.kind === 'commit') add('written', event.end, event.titles.length);
    if (event.kind === 'mirror' && event.step.did === 'receive')
      add(event.mirror, event.end, event.step.entries.length);
    if (event.kind === 'sample') {
      for (const [figure, value] of Object.entries(event.figures)) {
        const subjects = samples.get(figure) ?? new Map<string, [number, number][]>();
        samples.set(figure, subjects);
        const points = subjects.get(event.subject) ?? [];
        subjects.set(event.subject, points);
        points.push([(event.start - begin) / 1000, value]);
      }
    }
  }
  const line = (name: string, values: readonly number[]): Line => ({
    name,
    points: values.map((value, bucket) => [(bucket + 0.5) * seconds, value]),
  });
  const lines = (names: readonly string[]): Line[] => names.map((name) => line(name, rates.get(name) ?? []));
  const quantile = (part: number) => (all: number[]) =>
    all.toSorted((a, b) => a - b)[Math.floor(all.length * part)] ?? 0;
  const outcomes: readonly string[] = OUTCOMES;
  return {
    begin,
    end,
    at,
    seed,
    rate,
    totals,
    faults: withFailures(faults, history()),
    requests: lines(OUTCOMES),
    latencies: [
      line('99th percentile', durations.map(quantile(0.99))),
      line(
        'median',
        durations.map((all) => (all.length > 0 ? median(all) : 0)),
      ),
    ],
    entries: lines([...rates.keys()].filter((name) => !outcomes.includes(name))),
    samples: new Map(
      [...samples].map(([figure, subjects]) => [figure, [...subjects].map(([name, points]) => ({ name, points }))]),
    ),
  };
}

const OUTCOMES = ['served', 'refused (401, 429)', 'failed'] as const;

function outcomeOf(request: Request): (typeof OUTCOMES)[number] {
  if (failureOf(request) !== undefined) return 'failed';
  return request.status >= 400 ? 'refused (401, 429)' : 'served';
}

function frameOf(events: Iterable<HistoryEvent>) {
  const frame = { begin: 0, end: 0, at: '', seed: 0, rate: 0 };
  const faults: FaultRecord[] = [];
  for (const event of events) {
    if (event.kind === 'begin')
      Object.assign(frame, { begin: event.start, at: event.at, seed: event.seed, rate: event.rate });
    if (event.kind === 'fault') faults.push(event);
    frame.end = Math.max(frame.end, event.end);
  }
  return { ...frame, faults };
}

function withFailures(faults: readonly FaultRecord[], events: Iterable<HistoryEvent>): FaultFigures[] {
  const figures = faults.map((fault) => ({ ...fault, unavailable: 0, broken: 0, slowest: 0, healedAfter: 0 }));
  for (const event of events) {
    if (event.kind !== 'call' && event.kind !== 'view') continue;
    const fault = figures.find(({ start, end, boundMs }) => event.end > start && event.start < end + boundMs);
    if (fault === undefined) continue;
    fault.slowest = Math.max(fault.slowest, event.end - event.start);
    const failure = failureOf(event);
    if (failure === undefined || failure === 'wrong') continue;
    fault[failure] += 1;
    fault.healedAfter = Math.max(fault.healedAfter, event.end - fault.end);
  }
  return figures;
}
