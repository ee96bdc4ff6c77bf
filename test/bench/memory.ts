import { setTimeout as delay } from 'node:timers/promises';
import { KeptConnections } from '../support/http/kept-connections.js';
import { send } from '../support/request.js';
import type { Case } from './cases.js';
import { saturate, toBytes } from './load/load.js';
import { count, median, printResults, type Result } from './measure.js';
import { residentMiB } from './load/process-figures.js';
import { prepareSurroundings, startSubject, type Stores } from './servers.js';

const TITLES = 10_000;
const STARTS = 5;
/** Seconds of load for each case by turns. */
const PIECE_SECONDS = 2;

const MOST_SECONDS_TO_START = 1.5;
const MOST_MIB_AT_REST = 120;
const MOST_MIB_AFTER_ALL = 140;

/**
 * Measures how long a start takes, and the memory of the server process.
 *
 * @param requests - that are sent before memory is measured again
 * @param connections - that are used once and then held idle
 * @returns whether all goals were met
 */
export async function benchMemory(requests: number, connections: number): Promise<boolean> {
  const { stores, cases, close } = await prepareSurroundings(TITLES);
  try {
    const start = await timeToFirstAnswer(stores, cases.me);
    const subject = await startSubject(stores);
    const atRest = await settledMemory(subject.pid);
    for (let sent = 0; sent < requests;) {
      for (const load of Object.values(cases)) {
        sent += (await saturate(subject.url, load, PIECE_SECONDS, stores.folder)).requests;
      }
    }
    const afterAll = await settledMemory(subject.pid);
    const [request = { path: '/me', headers: {} }] = cases.title.requests;
    const idle = new KeptConnections(subject.url, connections, toBytes(subject.url, request));
    const { 200: served = 0 } = await idle.ask();
    if (served < connections) throw new Error(`${served} of ${connections} connections were served: raise ulimit -n`);
    const withIdle = await settledMemory(subject.pid);
    idle.close();
    await subject.stop();
    const line = (what: string, figure: number, most: number, text: (value: number) => string): Result => ({
      what,
      figures: [text(figure)],
      goal: { text: `≤ ${text(most)}`, isMet: figure <= most },
    });
    const inMiB = (value: number): string => `${count(value)} MiB`;
    const perConnection = ((withIdle - afterAll) * 1024) / connections;
    return printResults(
      'Start, and memory of the process (RSS)',
      [''],
      [
        line('start to first answer', start, MOST_SECONDS_TO_START, (value) => `${value.toFixed(2)} s`),
        line('at rest', atRest, MOST_MIB_AT_REST, inMiB),
        line(`after ${count(requests)} requests`, afterAll, MOST_MIB_AFTER_ALL, inMiB),
        {
          what: `with ${count(connections)} idle connections`,
          figures: [`${inMiB(withIdle)}, ${perConnection.toFixed(1)} KiB each`],
        },
      ],
    );
  } finally {
    await close();
  }
}

/** Seconds from the start of the process to its first answer: the median of several starts. */
async function timeToFirstAnswer(stores: Stores, { requests: [request] }: Case): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < STARTS && request !== undefined; i++) {
    const start = performance.now();
    const subject = await startSubject(stores);
    const { status } = await send(subject.url, `/api/v1${request.path}`, { headers: request.headers });
    times.push((performance.now() - start) / 1000);
    await subject.stop();
    if (status !== 200) throw new Error(`The first answer was ${status}`);
  }
  return median(times);
}

const LOOK_INTERVAL_MS = 250;
/** Consecutive readings that must agree to within a MiB. */
const STEADY_LOOKS = 4;
const MOST_LOOKS = 80;

/** Memory of a process once it is steady, in MiB. */
async function settledMemory(pid: number): Promise<number> {
  const looks: number[] = [];
  for (let i = 0; i < MOST_LOOKS; i++) {
    looks.push(residentMiB(pid));
    const last = looks.slice(-STEADY_LOOKS);
    if (last.length === STEADY_LOOKS && Math.max(...last) - Math.min(...last) <= 1) break;
    await delay(LOOK_INTERVAL_MS);
  }
  return looks.at(-1) ?? NaN;
}
