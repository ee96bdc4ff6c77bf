import type { DailyUsage } from '../../../usage/daily-usage.js';
import type { UsageCounts } from '../../../usage/usage-counts.js';

/** What all chosen keys were used for on a day. */
export interface DayTotal extends UsageCounts {
  readonly day: string;
}

/** What a key was used for in all days together. */
export interface KeyTotal extends UsageCounts {
  readonly keyPrefix: string;
  readonly label: string | null;
}

/** @returns the rows of one key; all of them where it is undefined */
export function ofKey(rows: readonly DailyUsage[], keyPrefix: string | undefined): readonly DailyUsage[] {
  return keyPrefix === undefined ? rows : rows.filter((row) => row.keyPrefix === keyPrefix);
}

/** @returns the keys that were used, by their labels */
export function keysIn(rows: readonly DailyUsage[]): readonly KeyTotal[] {
  return totalsByKey(rows).toSorted((a, b) => (a.label ?? a.keyPrefix).localeCompare(b.label ?? b.keyPrefix, 'en'));
}

/** @returns one total a day, in the order of the days; also for days without a request */
export function totalsByDay(days: readonly string[], rows: readonly DailyUsage[]): readonly DayTotal[] {
  return days.map((day) => ({ day, ...sum(rows.filter((row) => row.day === day)) }));
}

/** @returns one total a key, the most used first */
export function totalsByKey(rows: readonly DailyUsage[]): readonly KeyTotal[] {
  const prefixes = [...new Set(rows.map(({ keyPrefix }) => keyPrefix))];
  return prefixes
    .map((keyPrefix) => {
      const rowsOfKey = ofKey(rows, keyPrefix);
      return { keyPrefix, label: rowsOfKey[0]?.label ?? null, ...sum(rowsOfKey) };
    })
    .sort((a, b) => total(b) - total(a));
}

/** @returns all requests, however they ended */
export function total({ served, refused, failed }: UsageCounts): number {
  return served + refused + failed;
}

/** @returns the counts of several rows together */
export function sum(rows: readonly UsageCounts[]): UsageCounts {
  const sumOf = (name: keyof UsageCounts): number => rows.reduce((added, row) => added + row[name], 0);
  return { served: sumOf('served'), refused: sumOf('refused'), failed: sumOf('failed') };
}
