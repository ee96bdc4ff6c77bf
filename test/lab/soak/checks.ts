import { median } from '../../bench/measure.js';
import type { Call, Change, Failure, FaultRecord, HistoryEvent } from './history.js';

/** What a check has found in a history. */
interface Verdict {
  /** What was looked at, in figures. */
  readonly judged: string;
  /** Each one sentence; none when the promise was kept. */
  readonly violations: readonly string[];
}

/** Compares a history with one promise. */
export interface Check {
  /** As a sentence. */
  readonly promise: string;
  readonly judge: (history: readonly HistoryEvent[]) => Verdict;
}

/** Formats a time of a history. */
function at(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

/** Answers that show whether the key was accepted. Others may be given before the key is looked up. */
const TELLING = [200, 304, 401];

/** No call that starts after the end of its key is accepted, and no call with an active key is refused. */
export const keysCheck: Check = {
  promise: 'A key is refused once its revocation, roll or suspension is reported, and accepted until it begins.',
  judge(history) {
    const changes = new Map<string, Change[]>();
    for (const event of history) {
      if (event.kind === 'change') changes.set(event.subject, [...(changes.get(event.subject) ?? []), event]);
    }
    const violations: string[] = [];
    const counts = { accepted: 0, refused: 0, unsure: 0 };
    for (const call of history) {
      if (call.kind !== 'call' || call.subjects.length === 0 || !TELLING.includes(call.status)) continue;
      const states = call.subjects.map((subject) => isRefusedDuring(changes.get(subject) ?? [], call));
      const must = states.includes(true) ? 'refused' : states.includes(undefined) ? 'unsure' : 'accepted';
      counts[must] += 1;
      if (must === 'unsure' || (must === 'refused') === (call.status === 401)) continue;
      const [is, state] = must === 'refused' ? ['accepted', 'had ended'] : ['refused', 'was active'];
      violations.push(
        `The call of ${call.path} at ${at(call.start)} was ${is} (${call.status}), but its key ${call.subjects[0]} ${state}.`,
      );
    }
    const { accepted, refused, unsure } = counts;
    return {
      judged: `${accepted} calls with active keys, ${refused} after their end, ${unsure} during a change`,
      violations,
    };
  },
};

/** @returns undefined where it is not certain during the whole of a call */
function isRefusedDuring(changes: readonly Change[], { start, end }: Call): boolean | undefined {
  let state: boolean | undefined;
  for (const { isRefused, isApplied, ...change } of changes) {
    if (change.start >= end) break;
    const isCertain = (isApplied && change.end <= start) || isRefused === state;
    state = isCertain ? isRefused : undefined;
  }
  return state;
}

/** The part of all requests outside of faults that may get 503, and a number that is always tolerated. */
const MOST_UNAVAILABLE = 0.001;
const FEW_REQUESTS = 3;

/** For messages. */
const NAMES: Readonly<Record<Failure, string>> = { unavailable: 'got 503', broken: 'got no whole answer' };

/** Requests fail only as a fault allows, and until its bound; what servers lose comes back within it. */
export const healingCheck: Check = {
  promise: 'Requests fail only as a fault allows, and all is well again within its bound.',
  judge(history) {
    const faults = history.filter((event) => event.kind === 'fault');
    const calls = history.filter((event) => event.kind === 'call');
    const violations = faults.flatMap(({ name, end, isHealed }) =>
      isHealed ? [] : `Some server was not ready in time after ${name} until ${at(end)}.`,
    );
    const outside: string[] = [];
    const last = new Map<FaultRecord, { failed: number; lastMs: number }>();
    for (const call of calls) {
      const failure = failureOf(call);
      if (failure === undefined) continue;
      const sentence = `The request for ${call.path} at ${at(call.start)}`;
      const near = faults.filter((fault) => call.end > fault.start && call.start < fault.end + fault.boundMs);
      for (const fault of near) {
        const { failed = 0, lastMs = 0 } = last.get(fault) ?? {};
        last.set(fault, { failed: failed + 1, lastMs: Math.max(lastMs, call.end - fault.end) });
      }
      if (failure === 'wrong') violations.push(`${sentence} got ${call.status}.`);
      else if (!near.some(({ allows }) => allows.includes(failure)))
        (failure === 'unavailable' ? outside : violations).push(`${sentence} ${NAMES[failure]} outside of faults.`);
    }
    if (outside.length > Math.max(FEW_REQUESTS, calls.length * MOST_UNAVAILABLE)) violations.push(...outside);
    const lines = faults.map((fault) => {
      const { failed = 0, lastMs = 0 } = last.get(fault) ?? {};
      return `${at(fault.start)} ${fault.name}: ${failed} requests failed, the last one ${at(lastMs)} after its end`;
    });
    const judged = `${calls.length} requests, ${outside.length} got 503 outside of faults`;
    return { judged: [judged, ...lines].join('\n        '), violations };
  },
};

/** How a request failed; `wrong` for what nothing excuses. */
function failureOf({ status }: Call): Failure | 'wrong' | undefined {
  if (status === 503) return 'unavailable';
  if (status === 0) return 'broken';
  return status >= 500 ? 'wrong' : undefined;
}

/** What a figure may grow by from the end of its warm-up to the end of the run. */
const BOUNDS: Readonly<Record<string, { readonly absolute: number; readonly part: number }>> = {
  'memory, MiB': { absolute: 8, part: 0.1 },
  descriptors: { absolute: 8, part: 0 },
  connections: { absolute: 4, part: 0 },
};

/** Samples before this are not judged: caches fill, code is compiled, pools open connections. */
const WARM_UP_MS = 120_000;

/** A slope over less time says nothing: the memory of a process rises and falls by 30 MiB within four minutes. */
const LEAST_MS = 600_000;

/** Memory, open descriptors and connections do not grow. */
export const flatCheck: Check = {
  promise: 'Memory, open descriptors and connections stay flat after the warm-up.',
  judge(history) {
    const samples = history.filter((event) => event.kind === 'sample');
    const subjects = [...new Set(samples.map(({ subject }) => subject))];
    const violations: string[] = [];
    let judged = 0;
    for (const subject of subjects) {
      const own = samples.filter((sample) => sample.subject === subject);
      const steady = own.filter(({ start }) => start >= (own[0]?.start ?? 0) + WARM_UP_MS);
      const length = (steady.at(-1)?.start ?? 0) - (steady[0]?.start ?? 0);
      if (length < LEAST_MS) continue;
      judged += 1;
      for (const [figure, { absolute, part }] of Object.entries(BOUNDS)) {
        // Peaks during faults do not move the medians of the halves, which are half of the length apart.
        const values = steady.map(({ figures }) => figures[figure] ?? NaN);
        const [early = NaN, late = NaN] = [values.slice(0, values.length / 2), values.slice(values.length / 2)].map(
          median,
        );
        const growth = 2 * (late - early);
        const most = absolute + part * early;
        if (growth > most)
          violations.push(
            `The ${figure} of ${subject} grew by ${growth.toFixed(1)} in ${at(length)}, with a bound of ${most.toFixed(1)}.`,
          );
      }
    }
    const least = at(WARM_UP_MS + LEAST_MS);
    return { judged: `${judged} of ${subjects.length} processes, those that lasted ${least}`, violations };
  },
};
