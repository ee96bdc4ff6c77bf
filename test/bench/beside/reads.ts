import type { Knex } from 'knex';
import {
  readRecentUsage,
  readUsage,
  readUsageCsv,
  USAGE_RANGES,
  type UsageRange,
} from '../../../src/usage/read-usage.js';
import { readUsageByDeveloper, USAGE_SORTS } from '../../../src/usage/usage-totals.js';
import { count, type Result } from '../measure.js';
import { runCatalog } from '../program.js';
import { meter, totalLine } from './meter.js';

/** One more than the rows of a page. */
const limit = 51;

/** The longest that the pages of usage should take, in milliseconds of CPU time. */
const MOST_MS = 30;

/** The most memory of a command, however many rows it prints, in MiB. */
const MOST_MIB = 150;

/** Measures what pages read: usage of a developer who has every pair in each hour, and the operator's list. */
export async function benchPages(db: Knex, developerId: number): Promise<Result[]> {
  const ranges = Object.keys(USAGE_RANGES) as UsageRange[];
  const spans = { '1h': { hours: 1 }, today: { days: 1 }, '30d': { days: 30 } };
  const reads: readonly (readonly [what: string, read: () => Promise<unknown>, most?: number])[] = [
    ...ranges.flatMap((range) =>
      [{}, { operation: 'getTitle' }, { outcome: 'success' } as const].map(
        (choice) =>
          [
            `/settings/usage, ${range}, ${Object.values(choice).join() || 'all'}`,
            () => readUsage(db, { developerId, ...choice }, range, { limit }),
            MOST_MS,
          ] as const,
      ),
    ),
    ['its file', () => readUsageCsv(db, { developerId }, '30d')],
    ['/settings', () => readRecentUsage(db, developerId)],
    ...Object.entries(spans).flatMap(([name, span]) =>
      [undefined, ...USAGE_SORTS].map(
        (sort) =>
          [
            `operator's /developers, ${name}, ${sort ?? 'newest'}`,
            () => readUsageByDeveloper(db, { span, sort, limit }),
          ] as const,
      ),
    ),
  ];
  const measure = meter(db);
  const results: Result[] = [];
  for (const [what, read, most] of reads) {
    // What it reads is in memory then.
    await read();
    results.push(totalLine(what, await measure(read), most));
  }
  return results;
}

/** Measures commands that list everything, to their end. Their figures are of the command, not of PostgreSQL. */
export async function benchCommands(url: string): Promise<Result[]> {
  const results: Result[] = [];
  for (const command of ['keys list', 'keys list --json', 'developers list', 'usage', 'usage --by-key --json']) {
    const { cpuSeconds, peakMiB, lines } = await runCatalog(url, command.split(' '));
    results.push({
      what: `catalog ${command}`,
      figures: [`${cpuSeconds.toFixed(1)} s`, `${count(peakMiB)} MiB`, count(lines)],
      goal: { text: `${MOST_MIB} MiB`, isMet: peakMiB <= MOST_MIB },
    });
  }
  return results;
}
