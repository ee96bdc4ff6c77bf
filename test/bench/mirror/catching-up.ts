import { generate, saturate } from '../load/load.js';
import { count, median, printResults, type Result } from '../measure.js';
import type { Case } from '../speed/cases.js';
import { startSubject } from '../speed/servers.js';
import { prepareSurroundings } from '../speed/surroundings.js';

/** Mirrors that each ask for the next page as soon as they have one. */
const MIRRORS = 500;

/** Requests for `/me`, a second. */
const RATE = 50;

/** Of the median of `/me` while nothing else happens. */
const MOST_TIMES = 2;

const WARM_UP_SECONDS = 2;

/** Measures `/me` while mirrors catch up. @param seconds - of each round @returns whether all goals were met */
export async function benchCatchingUp(titles: number, rounds: number, seconds: number): Promise<boolean> {
  const { stores, cases, close } = await prepareSurroundings(titles);
  const server = await startSubject('service', stores);
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
    for (const load of [cases.me, cases.changes]) await saturate(server, load, WARM_UP_SECONDS, folder, MIRRORS);
    const measured = loads.map(() => ({ p50: [] as number[], p99: [] as number[], pages: [] as number[] }));
    for (let round = 0; round < rounds; round += 1) {
      for (const [i, [, load]] of loads.entries()) {
        // The generator does not count its first half second.
        const catchUp = load && saturate(server, load, seconds + 1, folder, MIRRORS);
        const { p50, p99 } = await generate(server, cases.me, seconds, folder, RATE);
        const pages = await catchUp;
        measured[i]?.p50.push(p50);
        measured[i]?.p99.push(p99);
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
