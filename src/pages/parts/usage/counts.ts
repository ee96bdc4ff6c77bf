import type { UsageRange } from '../../../usage/read-usage.js';
import type { UsageCounts } from '../../../usage/write-usage.js';

const DAY = new Intl.DateTimeFormat('en-US', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const WEEKDAY = new Intl.DateTimeFormat('en-US', { weekday: 'short', timeZone: 'UTC' });

/** Every so many hours have their time below the axis. */
const HOURS_PER_LABEL = 6;

/** @returns a name for an hour or a day of UTC: `Nov 23, 14:00` or `Nov 23` @param start - when it begins */
export function bucketName(start: string, range: UsageRange): string {
  const day = DAY.format(new Date(start));
  return range === '24h' ? `${day}, ${timeOf(start)}` : day;
}

/** @returns a name for below an axis: a time or the day that begins, a weekday, or a day */
export function shortBucketName(start: string, range: UsageRange): string {
  if (range === '24h' && hourOf(start) !== 0) return timeOf(start);
  return (range === '7d' ? WEEKDAY : DAY).format(new Date(start));
}

/** Whether an hour or a day has its name below the axis: all would overlap on a narrow screen. */
export function isLabelled(start: string, range: UsageRange): boolean {
  if (range === '24h') return hourOf(start) % HOURS_PER_LABEL === 0;
  return range === '7d' || new Date(start).getUTCDay() === 1;
}

/** @returns the number of all requests */
export function total({ served, refused, failed }: UsageCounts): number {
  return served + refused + failed;
}

/** @returns the sum of several rows */
export function sumOf(rows: readonly UsageCounts[]): UsageCounts {
  const sum = (name: keyof UsageCounts): number => rows.reduce((added, row) => added + row[name], 0);
  return { served: sum('served'), refused: sum('refused'), failed: sum('failed') };
}

/** @returns the part of requests that were served, such as `99.9%`: 100% only when all were. A dash for no requests */
export function successRate(counts: UsageCounts): string {
  const all = total(counts);
  if (all === 0) return '–';
  return counts.served === all ? '100%' : `${(Math.floor((counts.served / all) * 1000) / 10).toFixed(1)}%`;
}

function hourOf(start: string): number {
  return Number(start.slice(11, 13));
}

function timeOf(start: string): string {
  return start.slice(11, 16);
}
