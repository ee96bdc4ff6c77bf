import type { Call, DeveloperChange, KeyChange } from '../history.js';
import { at, type Check } from './check.js';

/** A period in which it is certain whether keys are accepted. */
interface Period {
  readonly from: number;
  to: number;
  readonly isRefused: boolean;
}

/** What is certain about one key, or about all keys of a developer, over time. Between two periods nothing is. */
class Certainty {
  readonly #periods: Period[] = [];

  /** @param isRefused - what applies after the change */
  apply({ start, end, outcome }: KeyChange | DeveloperChange, isRefused: boolean): void {
    const last = this.#periods.at(-1);
    if (last !== undefined && last.isRefused !== isRefused) last.to = Math.min(last.to, start);
    if (outcome === 'unknown' || (last?.isRefused === isRefused && last.to === Infinity)) return;
    this.#periods.push({ from: end, to: Infinity, isRefused });
  }

  /** Whether it is certain that keys were accepted, or refused, during the whole of a call. */
  covers({ start, end }: Call, isRefused: boolean): boolean {
    return this.#periods.some((one) => one.isRefused === isRefused && one.from < start && end < one.to);
  }
}

/** No call that starts after the end of its key is accepted, and no call with an active key is refused. */
export const keysCheck: Check = {
  promise: 'A key is refused once its revocation, roll or suspension is reported, and accepted until it begins.',
  judge(history) {
    const keys = new Map<string, Certainty>();
    const developers = new Map<number, Certainty>();
    for (const event of history) {
      if (event.kind === 'key') certaintyOf(keys, event.key, () => new Certainty()).apply(event, event.act === 'end');
      if (event.kind === 'developer') {
        certaintyOf(developers, event.developer, activeFromTheBeginning).apply(event, event.act === 'suspend');
      }
    }
    const violations: string[] = [];
    const counts = { accepted: 0, refused: 0, unsure: 0 };
    for (const call of history) {
      if (call.kind !== 'call' || !TELLING.has(call.status)) continue;
      const key = keys.get(call.key);
      const developer = certaintyOf(developers, call.developer, activeFromTheBeginning);
      const mustBeRefused = key?.covers(call, true) === true || developer.covers(call, true);
      const mustBeAccepted = key?.covers(call, false) === true && developer.covers(call, false);
      if (mustBeRefused && call.status !== 401) violations.push(sentence(call, 'was accepted', 'had ended'));
      if (mustBeAccepted && call.status === 401) violations.push(sentence(call, 'was refused', 'was active'));
      counts[mustBeRefused ? 'refused' : mustBeAccepted ? 'accepted' : 'unsure'] += 1;
    }
    return {
      judged:
        `${keys.size} keys; ${counts.accepted} calls with active keys, ${counts.refused} after their end, ` +
        `${counts.unsure} during a change`,
      violations,
    };
  },
};

/** Answers that show whether the key was accepted. Others may be given before the key is looked up. */
const TELLING = new Set([200, 304, 401]);

function activeFromTheBeginning(): Certainty {
  const certainty = new Certainty();
  const begin = {
    kind: 'developer',
    act: 'reinstate',
    developer: 0,
    outcome: 'applied',
    start: -1,
    end: -1,
  } as const;
  certainty.apply(begin, false);
  return certainty;
}

function certaintyOf<Key>(all: Map<Key, Certainty>, key: Key, make: () => Certainty): Certainty {
  const certainty = all.get(key) ?? make();
  all.set(key, certainty);
  return certainty;
}

function sentence({ key, path, status, start }: Call, what: string, state: string): string {
  return `The call of ${path} at ${at(start)} ${what} (${status}), but its key ${key} ${state}.`;
}
