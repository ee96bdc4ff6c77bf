import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../measure.js';
import type { Case } from './cases.js';
import type { ServerCore } from './load/cores.js';
import { saturate } from './load/load.js';
import { residentMiB } from './load/process-figures.js';
import { send } from './load/send.js';
import { startSubject, type TimedName, type Stores } from './servers.js';

/** Starts that the median is taken of. */
const STARTS = 5;

/** Seconds from the start of the process to the first answer of the operation. */
export async function timeToFirstAnswer(
  name: TimedName,
  stores: Stores,
  core: ServerCore,
  { requests: [request] }: Case,
): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < STARTS && request !== undefined; i++) {
    const start = performance.now();
    const subject = await startSubject(name, stores, { core });
    const { status } = await send(subject.url, request);
    times.push((performance.now() - start) / 1000);
    await subject.stop();
    if (status !== 200) throw new Error(`The first answer of the ${name} was ${status}`);
  }
  return median(times);
}

/** Memory of a server process, in MiB, in the course of its life. */
export interface Memory {
  readonly atRest: number;
  /** After a tenth of the requests: what fills once, such as caches, pools and compiled code, is full. */
  readonly warm: number;
  readonly afterAll: number;
  /** How many requests there were until then. */
  readonly warmRequests: number;
  readonly allRequests: number;
}

/** Seconds of load between two looks at how many requests there were. */
const PIECE_SECONDS = 5;

/** Follows the memory of a fresh server through so many requests. */
export async function followMemory(
  name: TimedName,
  stores: Stores,
  core: ServerCore,
  mixture: Case,
  requests: number,
): Promise<Memory> {
  const subject = await startSubject(name, stores, { core });
  try {
    const atRest = await settledMemory(subject.pid);
    let done = 0;
    const sendUntil = async (end: number): Promise<number> => {
      while (done < end) done += (await saturate(subject, mixture, PIECE_SECONDS, stores.folder)).requests;
      return settledMemory(subject.pid);
    };
    const warm = await sendUntil(requests / 10);
    const warmRequests = done;
    const afterAll = await sendUntil(requests);
    return { atRest, warm, afterAll, warmRequests, allRequests: done };
  } finally {
    await subject.stop();
  }
}

const LOOK_INTERVAL_MS = 250;

/** Looks in a row at which it must be the same, give or take a MiB. */
const STEADY_LOOKS = 4;

/** Looks after which it counts as it is. */
const MOST_LOOKS = 80;

/** Memory of a process once it is steady, in MiB. */
export async function settledMemory(pid: number): Promise<number> {
  const looks: number[] = [];
  for (let i = 0; i < MOST_LOOKS; i++) {
    looks.push(residentMiB(pid));
    const last = looks.slice(-STEADY_LOOKS);
    if (last.length === STEADY_LOOKS && Math.max(...last) - Math.min(...last) <= 1) break;
    await delay(LOOK_INTERVAL_MS);
  }
  return looks.at(-1) ?? NaN;
}
