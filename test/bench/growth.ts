import { Agent } from 'node:http';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { CASE_NAMES, CASES, createCases, type Case, type CaseName } from './cases.js';
import { timeRequest } from './load/load.js';
import { count, median, print, printResults } from './measure.js';
import { runCatalog } from './program.js';
import { fillCatalogue } from './servers.js';

const MOST_GROWTH = 1.15;

/** Consecutive requests of one kind to one catalogue. */
const TURN = 20;

/** Turns that are not counted, while connections are opened, statements prepared and code compiled. */
const WARM_UP_TURNS = 10;

/** A catalogue, its server, and one connection to the server. */
interface Subject {
  readonly titles: number;
  readonly cases: Readonly<Record<CaseName, Case>>;
  /** How long each request took, in milliseconds. */
  readonly times: Record<CaseName, number[]>;
  readonly database: OpenTestDatabase;
  readonly server: ServerProcess;
  readonly agent: Agent;
}

/**
 * Times requests to the built server, over HTTP on one connection each, at catalogues of several sizes by turns.
 *
 * @param sizes - numbers of titles, the smallest first
 * @returns whether all goals were met
 */
export async function benchGrowth(sizes: readonly number[], seconds: number): Promise<boolean> {
  const subjects: Subject[] = [];
  try {
    for (const size of sizes) subjects.push(await prepare(size));
    print(`Sending requests for ${seconds} s …\n`);
    await measure(subjects, seconds);
    for (const { database } of subjects) await runCatalog(database.url, ['stats', 'verify']);
  } finally {
    for (const { agent, server, database } of subjects) {
      agent.destroy();
      await server.stop();
      await database.close();
    }
  }
  return printResults(
    'Median time of a request, in microseconds',
    [...subjects.map(({ titles }) => `${count(titles)} titles`), 'largest ratio'],
    CASE_NAMES.map((name) => {
      const medians = subjects.map(({ times }) => median(times[name]));
      const growth = Math.max(...medians) / (medians[0] ?? NaN);
      return {
        what: CASES[name],
        figures: [...medians.map((ms) => count(ms * 1000)), `×${growth.toFixed(2)}`],
        goal: { text: `≤ ×${MOST_GROWTH}`, isMet: growth <= MOST_GROWTH },
      };
    }),
  );
}

async function prepare(titles: number): Promise<Subject> {
  const database = await openTestDatabase();
  await fillCatalogue(database.db, database.url, titles);
  print(`Made ${count(titles)} synthetic titles\n`);
  return {
    titles,
    database,
    cases: await createCases(database.db),
    times: { me: [], stats: [], changes: [], tail: [], title: [] },
    server: await startServer({ DATABASE_URL: database.url }),
    agent: new Agent({ keepAlive: true, maxSockets: 1 }),
  };
}

async function measure(subjects: readonly Subject[], seconds: number): Promise<void> {
  let end = Infinity;
  for (let turn = -WARM_UP_TURNS; performance.now() < end; turn++) {
    if (turn === 0) end = performance.now() + seconds * 1000;
    for (const name of CASE_NAMES) {
      // Each size is the first one equally often.
      const first = Math.abs(turn) % subjects.length;
      for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)]) {
        const { requests } = subject.cases[name];
        for (let i = 0; i < TURN; i++) {
          const request = requests[(Math.abs(turn) * TURN + i) % requests.length];
          const took = await timeRequest(subject.server.url, request, subject.agent);
          if (turn >= 0) subject.times[name].push(took);
        }
      }
    }
  }
}
