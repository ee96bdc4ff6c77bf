import { Agent } from 'node:http';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Knex } from 'knex';
import { to as copyTo } from 'pg-copy-streams';
import { syntheticId } from '../support/catalog/synthetic-titles.js';
import { connectTo, openTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { createEmptyDatabase, createTestDatabase, withClient } from '../support/postgres.js';
import { startProgram, startServer } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { CASE_NAMES, CASES, createCases, keysFor, type Case } from './cases.js';
import { timeRequest } from './load/load.js';
import { count, median, print, printResults, type Result } from './measure.js';
import { runCatalog, type Run } from './program.js';
import { fillCatalogue } from './servers.js';

/** A cost that grows with the catalogue grows a thousandfold between the usual sizes. */
const MOST_GROWTH = 1.5;

/** Requests that are not counted, while connections are opened, statements prepared and code compiled. */
const WARM_UP_REQUESTS = 200;

/** The longest time of a comparison of a million rows, in seconds, and the most memory of a command. */
const MOST_COMPARE_SECONDS = 20;
const MOST_MIB = 250;

/** Until the mirror has polled, in seconds: before that, its position is that of the copy. */
const WARM_UP_SECONDS = 3;

/** Writes while the mirror follows. How far it is behind is looked at after each transaction. */
const WRITES_PER_SECOND = 1_000;
const WRITES_PER_TRANSACTION = 100;

/** Writers of a title in each commit. */
const WRITERS = [1, 8] as const;

/** Medians of the first size, in milliseconds. */
type Medians = Partial<Record<string, number>>;

/**
 * Times what the size of a catalogue might change, for several sizes: requests one after another, the commands of
 * copies, mirrors and imports, and commits.
 *
 * @param sizes - numbers of titles, the smallest first @param seconds - of each kind of request, of the mirror and of commits
 * @returns whether all goals were met
 */
export async function benchSizes(sizes: readonly number[], seconds: number): Promise<boolean> {
  let isMet = true;
  const smallest: Medians = {};
  for (const titles of sizes) {
    const database = await openTestDatabase();
    const { db, url } = database;
    await fillCatalogue(db, url, titles);
    print(`Made ${count(titles)} synthetic titles\n`);
    const folder = await temporaryFolder();
    const server = await startServer({ DATABASE_URL: url, COPIES_DIR: folder });
    try {
      const results = [
        ...(await timeRequests(server.url, Object.values(await createCases(db)), seconds, smallest)),
        ...(await timeMirror(db, url, server.url, folder, titles, seconds)),
        ...(await timeImport(url, folder)),
        ...(await countCommits(db, seconds)),
      ];
      isMet = printResults(`${count(titles)} titles`, ['', 'peak memory'], results) && isMet;
      await runCatalog(url, ['stats', 'verify']);
    } finally {
      await server.stop();
      await database.close();
    }
  }
  return isMet;
}

/** Sends requests one after another on one connection. */
async function timeRequests(
  url: string,
  cases: readonly Case[],
  seconds: number,
  smallest: Medians,
): Promise<Result[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const results: Result[] = [];
  for (const [index, { requests }] of cases.entries()) {
    const what = CASES[CASE_NAMES[index] ?? 'me'];
    const times: number[] = [];
    const end = performance.now() + seconds * 1_000;
    for (let sent = 0; sent <= WARM_UP_REQUESTS || performance.now() < end; sent += 1) {
      const took = await timeRequest(url, requests[sent % requests.length], agent);
      if (sent >= WARM_UP_REQUESTS) times.push(took);
    }
    const usual = median(times);
    const growth = usual / (smallest[what] ??= usual);
    const goal = { text: `≤ ×${MOST_GROWTH} of the smallest`, isMet: growth <= MOST_GROWTH };
    results.push({ what: `${what}, median`, figures: [`${usual.toFixed(2)} ms`, ''], goal });
  }
  agent.destroy();
  return results;
}

/** A line of a command. */
function line(what: string, { seconds, peakMiB }: Run, mostSeconds = Infinity): Result {
  const bound = mostSeconds < Infinity ? `, ${mostSeconds} s` : '';
  return {
    what,
    figures: [`${seconds.toFixed(1)} s`, `${count(peakMiB)} MiB`],
    goal: { text: `≤ ${MOST_MIB} MiB${bound}`, isMet: peakMiB <= MOST_MIB && seconds <= mostSeconds },
  };
}

/** Imports all titles from a file, in an order that is not theirs, into an empty catalogue, and then once more. */
async function timeImport(url: string, folder: string): Promise<Result[]> {
  const file = join(folder, 'titles.csv');
  const columns = 'svc_id, media_type, title, has_bundles, available_in_library';
  const copy = copyTo(`copy (select ${columns} from titles order by md5(svc_id)) to stdout (format csv, header)`);
  await withClient({ connectionString: url, query_timeout: 0 }, (client) =>
    pipeline(client.query(copy), createWriteStream(file)),
  );
  const database = await createTestDatabase();
  const run = (): Promise<Run> => runCatalog(database.url, ['import', file, '--kind', 'titles']);
  try {
    return [line('to import it from a file', await run()), line('the same file again', await run())];
  } finally {
    await database.drop();
  }
}

/** Publishes a copy, and takes, compares and follows with a mirror of it. */
async function timeMirror(
  db: Knex,
  databaseUrl: string,
  serverUrl: string,
  folder: string,
  titles: number,
  seconds: number,
): Promise<Result[]> {
  const mirror = await createEmptyDatabase();
  const [key = ''] = await keysFor(db, 1, 1);
  const environment = { CATALOG_API_KEY: key, MIRROR_DATABASE_URL: mirror.url };
  const run = (...args: string[]): Promise<Run> => runCatalog(databaseUrl, args, environment);
  const from = ['--from', serverUrl];
  const results = [
    line('to publish a copy', await run('export', '--publish', folder, '--base-url', serverUrl)),
    line('a mirror from nothing to equal', await run('mirror', ...from, '--once')),
    line(
      'to compare it with the copy',
      await run('mirror', 'verify', ...from),
      MOST_COMPARE_SECONDS * Math.max(titles / 1e6, 1),
    ),
  ];
  const program = startProgram(['mirror', ...from], environment);
  try {
    await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
    const lags = await measureLags(db, mirror.url, titles, seconds);
    const most = Math.max(...lags).toFixed(1);
    const figures = [`${median(lags).toFixed(1)} s, ${most} s at most`, ''];
    return [...results, { what: `its lag at ${count(WRITES_PER_SECOND)} writes/s`, figures }];
  } finally {
    program.child.kill('SIGTERM');
    await program.ended;
    await mirror.drop();
  }
}

/** Writes titles at a steady rate while a mirror follows, and compares its position with the newest stamp. */
async function measureLags(db: Knex, mirrorUrl: string, titles: number, seconds: number): Promise<readonly number[]> {
  const mirrored = connectTo(mirrorUrl);
  const lags: number[] = [];
  const start = performance.now();
  const secondsSoFar = (): number => (performance.now() - start) / 1_000;
  try {
    for (let written = 0; secondsSoFar() < WARM_UP_SECONDS + seconds; written += WRITES_PER_TRANSACTION) {
      const ids = Array.from({ length: WRITES_PER_TRANSACTION }, (_, i) => syntheticId((written + i) % titles));
      // An update that changes nothing would not be in the feed.
      await db('titles')
        .whereIn('svc_id', ids)
        .update({ title: `Written ${written}` });
      const [[newest], [reached]] = await Promise.all([
        db('titles').max<{ at: string }[]>('updated_at as at'),
        mirrored.withSchema('catalog_mirror').from<{ position: string }>('state').pluck<string[]>('position'),
      ]);
      if (secondsSoFar() > WARM_UP_SECONDS) lags.push(Date.parse(newest?.at ?? '') / 1_000 - Number(reached));
      await delay(Math.max(0, (written / WRITES_PER_SECOND - secondsSoFar()) * 1_000));
    }
  } finally {
    await mirrored.destroy();
  }
  return lags;
}

/** Counts commits of one title each, by one writer and by several at once. */
async function countCommits(db: Knex, seconds: number): Promise<Result[]> {
  const results: Result[] = [];
  let written = 0;
  for (const writers of WRITERS) {
    const [start, before] = [performance.now(), written];
    const write = async (): Promise<void> => {
      while (performance.now() - start < seconds * 1_000)
        await db('titles').insert({ svc_id: `bench-${written++}`, media_type: 'movie', title: 'Title' });
    };
    await Promise.all(Array.from({ length: writers }, write));
    const rate = ((written - before) / (performance.now() - start)) * 1_000;
    results.push({
      what: `commits of ${writers === 1 ? 'one writer' : `${writers} writers`}`,
      figures: [`${count(rate)}/s`, ''],
    });
  }
  return results;
}
