import type { Call, Change, FaultRecord } from '../history.js';
import { at, type Check } from './check.js';

const WINDOW_MS = 60_000;

/** Answers that are charged. */
const SERVED = new Set([200, 304]);

/** How far apart the ends of one window may seem: they are reported in whole seconds. */
const SAME_WINDOW_MS = 5_000;

/** A minute of a plan's limit, as answers reported it. */
interface Window {
  readonly who: string;
  readonly limit: number;
  /** The end, in the middle of what the first answer allows. */
  readonly end: number;
  served: number;
}

/** The served calls of each minute are within the plan's limit. Servers that lose Redis each count from zero. */
export const limitsCheck: Check = {
  promise: 'No minute serves more calls than the plan allows; a process that loses Redis counts anew, from zero.',
  judge(history) {
    const limits = new Map<string, number>();
    const windows: Window[] = [];
    const resets: number[] = [];
    const violations: string[] = [];
    let served = 0;
    for (const event of history) {
      if (event.kind === 'plan') limits.set(event.plan, event.perMinute);
      if (startsCounting(event)) resets.push(event.start);
      if (event.kind !== 'call' || !SERVED.has(event.status)) continue;
      const limit = limits.get(event.plan);
      if (limit === undefined) continue;
      served += 1;
      if (event.resetSeconds === undefined)
        violations.push(`The call at ${at(event.start)} was served without its limits.`);
      else add(windows, event, event.resetSeconds, limit);
    }
    for (const window of windows) {
      const anew = resets.filter((time) => isWithin(window, time)).length;
      if (window.served > window.limit * (1 + anew)) {
        violations.push(
          `${window.who} got ${window.served} calls in the minute to ${at(window.end)}, with a limit of ${window.limit} ` +
            `and ${anew} counts begun anew.`,
        );
      }
    }
    for (const [index, window] of windows.entries()) {
      const next = windows.find((other, place) => place > index && other.who === window.who);
      const isShort = next !== undefined && next.end - window.end < WINDOW_MS - SAME_WINDOW_MS;
      if (isShort && !resets.some((time) => isWithin(window, time) || isWithin(next, time))) {
        violations.push(`${window.who} got a new minute before the one to ${at(window.end)} was over.`);
      }
    }
    return { judged: `${served} served calls in ${windows.length} minutes of a limit`, violations };
  },
};

function startsCounting(event: { readonly kind: string }): event is Change | FaultRecord {
  if (event.kind === 'change') return (event as Change).part === 'redis' && (event as Change).state === 'lost';
  return event.kind === 'fault' && (event as FaultRecord).forgetsCounts;
}

function isWithin({ end }: Window, time: number): boolean {
  return time > end - WINDOW_MS - SAME_WINDOW_MS && time < end + SAME_WINDOW_MS;
}

function add(windows: Window[], { developer, plan, start, end }: Call, resetSeconds: number, limit: number): void {
  const who = `Developer ${developer} on plan ${plan}`;
  // Whole seconds, rounded up.
  const windowEnd = (start + end) / 2 + (resetSeconds - 0.5) * 1000;
  const known = windows.findLast((one) => one.who === who && Math.abs(one.end - windowEnd) < SAME_WINDOW_MS);
  if (known === undefined) windows.push({ who, limit, end: windowEnd, served: 1 });
  else known.served += 1;
}
