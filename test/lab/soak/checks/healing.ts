import type { Call, Change, Failure, FaultRecord, HistoryEvent } from '../history.js';
import { at, type Check } from './check.js';

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
    const begin = history.find(({ kind }) => kind === 'begin')?.start ?? 0;
    const violations: string[] = [];
    const outside: string[] = [];
    const counts = { requests: 0, excused: 0 };
    for (const event of history) {
      if ((event.kind !== 'call' && event.kind !== 'view') || event.start < begin) continue;
      counts.requests += 1;
      const failure = failureOf(event);
      if (failure === undefined) continue;
      const sentence = `The request for ${event.path} at ${at(event.start)}`;
      if (failure === 'wrong') violations.push(`${sentence} got ${event.status}.`);
      else if (faults.some((fault) => fault.allows.includes(failure) && isNear(event, fault))) counts.excused += 1;
      else (failure === 'unavailable' ? outside : violations).push(`${sentence} ${NAMES[failure]} outside of faults.`);
    }
    if (outside.length > Math.max(FEW_REQUESTS, counts.requests * MOST_UNAVAILABLE)) violations.push(...outside);
    violations.push(...unhealed(history, faults));
    return {
      judged:
        `${faults.length} faults; ${counts.requests} requests: ${counts.excused} failed during faults, ` +
        `${outside.length} at other times`,
      violations,
    };
  },
};

/** How a request failed; `wrong` for what nothing excuses. */
function failureOf({ status }: Pick<Call, 'status'>): Failure | 'wrong' | undefined {
  if (status === 503) return 'unavailable';
  if (status === 0) return 'broken';
  return status >= 500 ? 'wrong' : undefined;
}

/** Whether a request was under way during a fault, or until all must be well again. */
function isNear({ start, end }: Pick<Call, 'start' | 'end'>, fault: FaultRecord): boolean {
  return end > fault.start && start < fault.end + fault.boundMs;
}

/** Bound on a loss that no fault explains: a server may lose Redis for a moment because the machine is busy. */
const BLIP_MS = 10_000;

function unhealed(events: Iterable<HistoryEvent>, faults: readonly FaultRecord[]): string[] {
  const violations: string[] = [];
  const lost = new Map<string, Change>();
  let now = 0;
  const end = (loss: Change, time: number): void => {
    const fault = faults.find((one) => loss.start >= one.start && loss.start < one.end + one.boundMs);
    const bound = fault === undefined ? loss.start + BLIP_MS : Math.max(fault.end, loss.start) + fault.boundMs;
    if (time <= bound) return;
    violations.push(
      `Process ${loss.pid} lost ${loss.part} at ${at(loss.start)} and did not have it back by ${at(bound)}` +
        `${fault === undefined ? '' : ` (${fault.name})`}.`,
    );
  };
  for (const event of events) {
    now = Math.max(now, event.end);
    if (event.kind !== 'change') continue;
    const { pid, part, state } = event;
    const id = `${pid} ${part}`;
    const loss = lost.get(id);
    lost.delete(id);
    if (loss !== undefined) end(loss, event.start);
    if (state === 'lost') lost.set(id, event);
  }
  for (const loss of lost.values()) end(loss, now);
  return violations;
}

/** @returns a line for each fault: what clients saw of it */
export function tellFaults(history: readonly HistoryEvent[]): string[] {
  return history.flatMap((fault) => {
    if (fault.kind !== 'fault') return [];
    const failed = history.filter(
      (event) =>
        (event.kind === 'call' || event.kind === 'view') && failureOf(event) !== undefined && isNear(event, fault),
    );
    const last = Math.max(0, ...failed.map(({ end }) => end - fault.end));
    return `${at(fault.start)} ${fault.name}: ${failed.length} requests failed, the last one ${at(last)} after its end`;
  });
}
