import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { count, machine, print } from '../measure.js';
import { CASES, casesNamed, createCases, mixtureOf, ofPeer, useUpQuotas, type CaseName } from './cases.js';
import { reserveServerCore } from './load/cores.js';
import { dataDifferences, differences } from './equality.js';
import { LOADED_BY } from './load/load.js';
import { printSpeed, type SpeedResults } from './report.js';
import { measureCase, type CaseResult, type Effort } from './rounds.js';
import { startSubject } from './servers.js';
import { followMemory, timeToFirstAnswer } from './start-and-memory.js';
import { prepareSurroundings } from './surroundings.js';

/** What to measure, and where to write the figures as JSON. */
export interface SpeedOptions extends Effort {
  readonly titles: number;
  readonly cases: readonly string[];
  /** Requests over which memory is followed. */
  readonly requests: number;
  readonly out: string;
}

/**
 * Measures the built service against the floor: a server that does by hand what these requests need, and nothing else. And
 * against the same work on Koa, with a log and metrics, and the obvious code on Fastify.
 *
 * @returns whether all goals were met
 * @throws Error when they give different answers: a comparison would mean nothing then
 */
export async function benchSpeed(options: SpeedOptions): Promise<boolean> {
  const names = casesNamed(options.cases);
  const core = reserveServerCore();
  const surroundings = await prepareSurroundings(options.titles);
  const { stores, ingredients } = surroundings;
  try {
    const starting = { core, isProfiled: options.isProfiled };
    const subjects = {
      service: await startSubject('service', stores, starting),
      floor: await startSubject('floor', stores, starting),
      koa: await startSubject('koa', stores, starting),
      fastify: await startSubject('fastify', stores, starting),
    };
    const cases = await createCases(subjects.service.url, ingredients);
    for (const { name, url } of [subjects.floor, subjects.koa]) {
      const different = await differences([subjects.service.url, url], Object.values(cases));
      if (different.length > 0) {
        throw new Error(`The service and the peer ${name} give different answers.\n\n${different.join('\n\n')}`);
      }
    }
    await useUpQuotas(subjects.fastify.url, cases.exhausted.requests);
    const otherData = await dataDifferences([subjects.service.url, subjects.fastify.url], ofPeer(cases));
    if (otherData.length > 0) {
      throw new Error(`The service and Fastify give different data.\n\n${otherData.join('\n\n')}`);
    }
    const measured: Partial<Record<CaseName, CaseResult>> = {};
    for (const name of names) {
      print(`Asking for ${CASES[name]} …\n`);
      measured[name] = await measureCase(subjects, cases[name], options, stores.folder);
    }
    for (const subject of Object.values(subjects)) await subject.stop();

    print(`Starting, and following memory over ${count(options.requests)} requests …\n`);
    const mixture = mixtureOf(Object.values(cases));
    const results: SpeedResults = {
      machine: machine(),
      serverCore: core.description,
      titles: options.titles,
      load: LOADED_BY,
      cases: measured,
      start: {
        service: await timeToFirstAnswer('service', stores, core, cases.me),
        floor: await timeToFirstAnswer('floor', stores, core, cases.me),
      },
      memory: {
        service: await followMemory('service', stores, core, mixture, options.requests),
        floor: await followMemory('floor', stores, core, mixture, options.requests),
      },
    };
    await mkdir(dirname(options.out), { recursive: true });
    await writeFile(options.out, `${JSON.stringify(results, mapsAsObjects, 2)}\n`);
    print(
      `\n${count(options.titles)} titles; ${results.machine}; servers ${core.description}; throughput by ${LOADED_BY}.\n` +
        `The service logs at level info to a file, and so does the floor on Koa. The others log nothing. Figures are also in ${options.out}\n`,
    );
    return printSpeed(results);
  } finally {
    await surroundings.close();
  }
}

function mapsAsObjects(_key: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}
