import { Agent, get } from 'node:http';
import pg from 'pg';
import { fromRfc3339, toSeconds } from '../../src/platform/time/micros.js';
import { createSyntheticTitles, syntheticId } from '../support/catalog/synthetic-titles.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { count, median, print, printResults } from './measure.js';
import { createUnlimitedKey, runCatalog } from './program.js';

const MOST_GROWTH = 1.15;

/** Requests of one kind to one catalogue before it is the next one's turn. */
const TURN = 20;

/** Positions in the feed, and ids, that requests are spread over. */
const PLACES = 500;

/** Requests that are not counted: connections are made, statements prepared, code compiled. */
const WARM_UP_TURNS = 10;

/** A catalogue, its server, and one connection to that. */
interface Subject {
  readonly titles: number;
  readonly database: TestDatabase;
  readonly server: ServerProcess;
  readonly paths: Readonly<Record<Operation, readonly string[]>>;
  /** @returns milliseconds from sending the request to the last byte of its answer */
  fetch(path: string): Promise<number>;
  close(): Promise<void>;
}

const OPERATIONS = {
  changes: '/changes, a full page from the middle',
  tail: '/changes, the empty tail',
  stats: '/stats',
  me: '/me',
  title: '/titles/{title_id}',
} as const;
export type Operation = keyof typeof OPERATIONS;

/** Median times of a request, in milliseconds, at a catalogue of so many titles. */
export interface ReadTimes {
  readonly titles: number;
  readonly medianMs: Readonly<Record<Operation, number>>;
}

/**
 * Asks the built server, over HTTP on one connection each, at catalogues of several sizes, by turns.
 *
 * @param sizes - numbers of titles, the smallest first
 * @param seconds - how long to go on asking
 */
export async function measureReads(sizes: readonly number[], seconds: number): Promise<ReadTimes[]> {
  const subjects: Subject[] = [];
  try {
    for (const size of sizes) subjects.push(await prepare(size));
    print(`Asking for ${seconds} s …\n`);
    const times = await measure(subjects, seconds);
    for (const { database } of subjects) print((await runCatalog(database.url, ['stats', 'verify'])).stdout);
    return subjects.map(({ titles }, place) => ({ titles, medianMs: mediansOf(times[place]) }));
  } finally {
    for (const subject of subjects) await subject.close();
  }
}

/** Prints them as a table. @returns whether all goals were met */
export function printReads(times: readonly ReadTimes[]): boolean {
  return printResults(
    'Median time of a request, in microseconds',
    [...times.map(({ titles }) => `${count(titles)} titles`), 'largest ratio'],
    Object.entries(OPERATIONS).map(([operation, what]) => {
      const medians = times.map(({ medianMs }) => medianMs[operation as Operation]);
      const growth = Math.max(...medians) / (medians[0] ?? NaN);
      return {
        what,
        figures: [...medians.map((ms) => count(ms * 1000)), `×${growth.toFixed(2)}`],
        goal: { text: `≤ ×${MOST_GROWTH}`, isMet: growth <= MOST_GROWTH },
      };
    }),
  );
}

async function prepare(titles: number): Promise<Subject> {
  const database = await createTestDatabase();
  await createSyntheticTitles(database.url, titles);
  print(`Made ${count(titles)} synthetic titles\n`);
  const key = await createUnlimitedKey(database.url);
  const paths = await choosePaths(database.url, titles);
  const server = await startServer({ DATABASE_URL: database.url });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    titles,
    database,
    server,
    paths,
    fetch: (path) => timeRequest(`${server.url}/api/v1${path}`, key, agent),
    async close() {
      agent.destroy();
      await server.stop();
      await database.drop();
    },
  };
}

async function choosePaths(url: string, titles: number): Promise<Subject['paths']> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // As a catalogue is after a while, rather than a moment after it was loaded.
    await client.query('vacuum (analyze) titles');
    await client.query('checkpoint');
    await client.query("set timezone to 'UTC'");
    // Spread over the middle half, in random order.
    const ids = Array.from({ length: PLACES }, (_, place) => Math.floor(titles * (0.25 + (0.5 * place) / PLACES)));
    const { rows } = await client.query<{ svc_id: string; since: string }>(
      `select svc_id, to_char(updated_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as since
         from titles where svc_id = any($1) order by random()`,
      [ids.map(syntheticId)],
    );
    if (rows.length !== PLACES) throw new Error(`${rows.length} of ${PLACES} titles were found`);
    const newest = await client.query<{ since: string }>(
      `select to_char(max(updated_at), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as since from titles`,
    );
    const changesSince = ({ since }: { since: string }): string => `/changes?since=${toSeconds(fromRfc3339(since))}`;
    return {
      changes: rows.map(changesSince),
      tail: newest.rows.map(changesSince),
      stats: ['/stats'],
      me: ['/me'],
      title: rows.map(({ svc_id }) => `/titles/${svc_id}`),
    };
  } finally {
    await client.end();
  }
}

/** Milliseconds of each request. */
type Times = Record<Operation, number[]>;

function noTimes(): Times {
  return { changes: [], tail: [], stats: [], me: [], title: [] };
}

function mediansOf({ changes, tail, stats, me, title }: Times = noTimes()): ReadTimes['medianMs'] {
  return { changes: median(changes), tail: median(tail), stats: median(stats), me: median(me), title: median(title) };
}

async function measure(subjects: readonly Subject[], seconds: number): Promise<Times[]> {
  const times = subjects.map(noTimes);
  let end = Infinity;
  for (let turn = -WARM_UP_TURNS; performance.now() < end; turn++) {
    if (turn === 0) end = performance.now() + seconds * 1000;
    for (const operation of Object.keys(OPERATIONS) as Operation[]) {
      // Each size is the first one equally often.
      for (let index = 0; index < subjects.length; index++) {
        const place = (index + Math.abs(turn)) % subjects.length;
        const subject = subjects[place];
        if (subject === undefined) continue;
        const paths = subject.paths[operation];
        for (let request = 0; request < TURN; request++) {
          const path = paths[(Math.abs(turn) * TURN + request) % paths.length] ?? '';
          const took = await subject.fetch(path);
          if (turn >= 0) times[place]?.[operation].push(took);
        }
      }
    }
  }
  return times;
}

function timeRequest(url: string, key: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    get(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => {
      response.once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200) resolve(performance.now() - start);
        else reject(new Error(`${url}: ${response.statusCode ?? ''}`));
      });
      response.resume();
    }).once('error', reject);
  });
}
