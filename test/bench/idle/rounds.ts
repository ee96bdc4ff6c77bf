import { setTimeout as delay } from 'node:timers/promises';
import type { Tally } from '../../support/http/kept-connections.js';
import type { Case } from '../speed/cases.js';
import { generate, saturate } from '../speed/load/load.js';
import { cpuSeconds } from '../speed/load/process-figures.js';
import { collectGarbage } from '../speed/load/profile.js';
import type { Latencies } from '../speed/programs/protocol.js';
import type { Subject } from '../speed/servers.js';
import { settledMemory } from '../speed/start-and-memory.js';
import { print } from '../measure.js';
import type { Held } from './held.js';

/** What is there to measure with. */
export interface World {
  readonly subject: Subject;
  readonly holder: Held;
  /** What is asked on other connections. */
  readonly load: Case;
  /** What is asked on those that are held, as its bytes. */
  readonly request: string;
  readonly folder: string;
  /** How many are held. */
  readonly connections: number;
  /** Of each measurement. */
  readonly seconds: number;
  /** Requests a second of the load. */
  readonly rate: number;
}

/** Memory of the server process, in MiB. */
export interface Memory {
  /** With garbage that it has not yet collected. */
  readonly asItStands: number;
  readonly collected: number;
}

/** What the server did with connections that were held, or without. */
export interface Phase {
  readonly memory: Memory;
  /** CPU time of the server process in a second in which nobody asks, in seconds; NaN where the system does not tell. */
  readonly idleCpu: number;
  /** Of the load. */
  readonly latencies: Latencies;
}

/** One turn without the idle connections, and one with them. */
export interface Round {
  readonly without: Phase;
  readonly held: Phase;
  /** When they have been closed. */
  readonly memoryAfter: Memory;
  /** How the held connections were answered: when they were opened, after some seconds idle, and after the load. */
  readonly answers: readonly Tally[];
}

/** Load that is not counted: collecting garbage also throws compiled code away. In seconds. */
const WARM_UP_SECONDS = 3;

/** Measures without and with idle connections by turns. */
export async function measureRounds(world: World, rounds: number): Promise<Round[]> {
  const { subject, holder, request, connections } = world;
  const results: Round[] = [];
  for (let round = 1; round <= rounds; round++) {
    print(`Round ${round} of ${rounds} …\n`);
    const answers: Tally[] = [];
    const without = await measurePhase(world, () => Promise.resolve());
    answers.push(await holder.hold(subject.url, connections, request));
    const held = await measurePhase(world, async () => {
      answers.push(await holder.ask());
    });
    answers.push(await holder.ask());
    await holder.close();
    results.push({ without, held, answers, memoryAfter: await lookAtMemory(subject) });
  }
  return results;
}

/** @param afterIdling - runs between the seconds in which nobody asks, and the load */
async function measurePhase(
  { subject, load, seconds, folder, rate }: World,
  afterIdling: () => Promise<void>,
): Promise<Phase> {
  const memory = await lookAtMemory(subject);
  const before = cpuSeconds(subject.pid);
  const start = performance.now();
  await delay(seconds * 1000);
  const idleCpu = (cpuSeconds(subject.pid) - before) / ((performance.now() - start) / 1000);
  await afterIdling();
  await saturate(subject, load, WARM_UP_SECONDS, folder);
  return { memory, idleCpu, latencies: await generate(subject, load, seconds, folder, rate) };
}

async function lookAtMemory(subject: Subject): Promise<Memory> {
  const asItStands = await settledMemory(subject.pid);
  // What was waiting to be finalised the first time is freed the second time.
  await collectGarbage(subject);
  await settledMemory(subject.pid);
  await collectGarbage(subject);
  return { asItStands, collected: await settledMemory(subject.pid) };
}

/** How a server ended that was told to while the connections were held. */
export interface End {
  readonly exitCode: number | null;
  readonly seconds: number;
  /** How it closed the connections: `ended` is in order. */
  readonly endings: Tally;
}

/** Stops the server with idle connections open. */
export async function measureEnd({ subject, holder, request, connections }: World): Promise<End> {
  print('Stopping …\n');
  await holder.hold(subject.url, connections, request);
  const start = performance.now();
  const exitCode = await subject.stop();
  const seconds = (performance.now() - start) / 1000;
  return { exitCode, seconds, endings: await holder.watch() };
}
