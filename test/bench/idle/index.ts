import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { connectionsWithin, openFilesIn } from '../../../src/platform/process/file-descriptors.js';
import { count, print, machine } from '../measure.js';
import { createCases } from '../speed/cases.js';
import { reserveServerCore } from '../speed/load/cores.js';
import { CONNECTIONS, saturate } from '../speed/load/load.js';
import { toBytes } from '../speed/load/send.js';
import { DATABASE_POOL_SIZE, startSubject } from '../speed/servers.js';
import { prepareSurroundings } from '../speed/surroundings.js';
import { startHolder } from './held.js';
import { printIdle, type IdleResults } from './report.js';
import { measureEnd, measureRounds } from './rounds.js';

/** What to measure, and where to write the figures as JSON. */
export interface IdleOptions {
  /** Connections that are held idle. */
  readonly connections: number;
  readonly rounds: number;
  /** Of each measurement. */
  readonly seconds: number;
  readonly out: string;
}

/** So many that there is a choice; the time of an answer does not depend on it. */
const TITLES = 10_000;

/** Requests that are not counted: connections are made, statements prepared, code compiled. In seconds. */
const WARM_UP_SECONDS = 3;

/** Measured within the time that a server keeps an idle connection, 65 s, with what comes before and after it. */
const MOST_SECONDS = 30;

/** Connections beside those that are held: of the load, and of a few who look in. */
const OTHERS = CONNECTIONS + 8;

/**
 * Measures what connections that nobody uses cost those that are used: memory, CPU time, and the time to an answer.
 *
 * @returns whether all goals were met
 * @throws Error when a limit of the system stands in the way
 */
export async function benchIdle(options: IdleOptions): Promise<boolean> {
  const { connections, rounds, seconds, out } = options;
  if (seconds > MOST_SECONDS)
    throw new Error(`SECONDS may be up to ${MOST_SECONDS}: idle connections are kept for 65 s`);
  requireOpenFiles(connections + OTHERS);
  const core = reserveServerCore();
  const surroundings = await prepareSurroundings(TITLES);
  const { stores, ingredients } = surroundings;
  const { folder } = stores;
  const holder = startHolder();
  try {
    const subject = await startSubject('service', stores, { core, isProfiled: true });
    const { title } = await createCases(subject.url, ingredients);
    const [first] = title.requests;
    if (first === undefined) throw new Error('There is no request to send');
    const request = toBytes(subject.url, first);

    await saturate(subject, title, WARM_UP_SECONDS, folder);
    const { requests, seconds: took } = await saturate(subject, title, seconds, folder);
    const rate = requests / took / 2;
    const world = { subject, holder, load: title, request, folder, connections, seconds, rate };
    const measured = await measureRounds(world, rounds);
    const end = await measureEnd(world);
    const results: IdleResults = {
      machine: machine(),
      serverCore: core.description,
      connections,
      rate,
      rounds: measured,
      end,
    };
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, `${JSON.stringify(results, undefined, 2)}\n`);
    print(`\n${results.machine}; server ${core.description}. Figures are also in ${out}\n`);
    return printIdle(results);
  } finally {
    holder.end();
    await surroundings.close();
  }
}

/** The server inherits this process's limit, and so does the process that holds the connections, which needs less. */
function requireOpenFiles(connections: number): void {
  const openFiles = openFilesIn(process.report.getReport());
  const left = connectionsWithin(openFiles, DATABASE_POOL_SIZE);
  if (left >= connections) return;
  const wanted = openFiles - left + connections;
  throw new Error(
    `${count(connections - OTHERS)} connections need ${wanted} open files, and ${openFiles} are allowed: ` +
      `ulimit -n ${wanted} (as root, where the hard limit is lower), or fewer: CONNECTIONS=${left - OTHERS}`,
  );
}
