import { setTimeout as delay } from 'node:timers/promises';
import type { Case } from './cases.js';
import { saturate, timesAtRate, WARM_UP_SECONDS } from './load/load.js';
import { count, median, printResults, type Result } from './measure.js';
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
  const gzip = cases.changes.requests.map((request) => ({
    ...request,
    headers: { ...request.headers, 'accept-encoding': 'gzip' },
  }));
  const loads: Readonly<Record<string, Case>> = {
    'all over the feed': { name: 'gzip', requests: gzip },
    'all at one position': { name: 'one', requests: gzip.slice(0, 1) },
  };
  const { folder } = stores;
  try {
    for (const load of [cases.me, cases.changes]) await saturate(server.url, load, WARM_UP_SECONDS, folder, MIRRORS);
    /** @returns the medians of all rounds: of the time of a request in milliseconds, and of pages a second */
    const measure = async (load?: Case): Promise<{ ms: number; pages: number }> => {
      const [times, rates]: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        // Pages of the previous load may still wait, and code may not be compiled.
        await timesAtRate(server.url, cases.me, 1, RATE);
        const catchUp = load && saturate(server.url, load, seconds + 1, folder, MIRRORS);
        await delay(BEGIN_MS);
        times.push(median(await timesAtRate(server.url, cases.me, seconds, RATE)));
        const pages = await catchUp;
        if (pages) rates.push((pages.requests - pages.refused) / pages.seconds);
      }
      return { ms: median(times), pages: median(rates) };
    };
    const quiet = await measure();
    const results: Result[] = [{ what: 'quiet', figures: [`${quiet.ms.toFixed(2)} ms`, ''] }];
    for (const [what, load] of Object.entries(loads)) {
      const { ms, pages } = await measure(load);
      const goal = { text: `below ×${MOST_TIMES}`, isMet: ms < MOST_TIMES * quiet.ms };
      results.push({ what, figures: [`${ms.toFixed(2)} ms`, count(pages)], goal });
    }
    return printResults(
      `/me, ${RATE} a second, beside ${MIRRORS} mirrors that catch up, ${count(titles)} titles`,
      ['median', 'pages a second'],
      results,
    );
  } finally {
    await server.stop();
    await close();
  }
}
