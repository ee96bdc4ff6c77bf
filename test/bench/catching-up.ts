import { setTimeout as delay } from 'node:timers/promises';
import type { Case } from './cases.js';
import { saturate, timesAtRate, WARM_UP_SECONDS } from './load/load.js';
import { count, median, percentile, printResults, type Result } from './measure.js';
import { prepareSurroundings, startSubject } from './servers.js';

/** Mirrors that each ask for the next page as soon as they have one. */
const MIRRORS = 500;

/** Requests for `/me`, a second. */
const RATE = 50;

/** Of the median of `/me` while nothing else happens. */
const MOST_TIMES = 2;

/** Until the mirrors are connected and ask for pages, in milliseconds. */
const BEGIN_MS = 500;

/** Measures `/me` while mirrors catch up. @param seconds - of each round @returns whether all goals were met */
export async function benchCatchingUp(titles: number, rounds: number, seconds: number): Promise<boolean> {
  const { stores, cases, close } = await prepareSurroundings(titles);
  const server = await startSubject(stores);
  const { requests } = cases.changes;
  const gzip = requests.map(({ path, headers }) => ({ path, headers: { ...headers, 'accept-encoding': 'gzip' } }));
  const loads: readonly (readonly [what: string, load: Case | undefined])[] = [
    ['quiet', undefined],
    ['all over the feed', cases.changes],
    ['all over the feed, gzip', { name: 'gzip', requests: gzip }],
    ['all at one position, gzip', { name: 'one', requests: gzip.slice(0, 1) }],
  ];
  const { folder } = stores;
  try {
    for (const load of [cases.me, cases.changes]) await saturate(server.url, load, WARM_UP_SECONDS, folder, MIRRORS);
    const measured = loads.map(() => ({ p50: [] as number[], p99: [] as number[], pages: [] as number[] }));
    for (let round = 0; round < rounds; round += 1) {
      for (const [i, [, load]] of loads.entries()) {
        // Pages of the previous load may still wait, and code may not be compiled.
        await timesAtRate(server.url, cases.me, 1, RATE);
        const catchUp = load && saturate(server.url, load, seconds + 1, folder, MIRRORS);
        await delay(BEGIN_MS);
        const times = await timesAtRate(server.url, cases.me, seconds, RATE);
        const pages = await catchUp;
        measured[i]?.p50.push(median(times));
        measured[i]?.p99.push(percentile(times, 0.99));
        if (pages) measured[i]?.pages.push((pages.requests - pages.refused) / pages.seconds);
      }
    }
    const quiet = median(measured[0]?.p50 ?? []);
    return printResults(
      `/me, ${RATE} a second, beside ${MIRRORS} mirrors that catch up, ${count(titles)} titles`,
      ['median', 'p99', 'pages a second'],
      measured.map(({ p50, p99, pages }, i): Result => {
        const [what = '', load] = loads[i] ?? [];
        return {
          what,
          figures: [`${median(p50).toFixed(2)} ms`, `${median(p99).toFixed(1)} ms`, load ? count(median(pages)) : ''],
          ...(load && { goal: { text: `below ×${MOST_TIMES}`, isMet: median(p50) < MOST_TIMES * quiet } }),
        };
      }),
    );
  } finally {
    await server.stop();
    await close();
  }
}
