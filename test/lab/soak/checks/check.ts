import type { HistoryEvent } from '../history.js';

/** What a check has found in a history. */
export interface Verdict {
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
export function at(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
