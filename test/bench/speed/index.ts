import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { send } from '../../support/request.js';
import { reserveServerCore } from '../load/cores.js';
import { LOADED_BY } from '../load/load.js';
import { count, print } from '../measure.js';
import { CASES, casesNamed, type Case, type CaseName } from './cases.js';
import { printSpeed } from './report.js';
import { measureCase, type CaseResult, type Effort } from './rounds.js';
import { machine, startSubject } from './servers.js';
import { prepareSurroundings } from './surroundings.js';

/** What to measure, and where to write the figures as JSON. */
export interface SpeedOptions extends Effort {
  readonly titles: number;
  readonly cases: readonly string[];
  readonly out: string;
}

/** Requests of each case whose answers are compared. */
const SAMPLES = 5;

/**
 * Measures the built service beside a peer, the limit for a service on Koa.
 *
 * @returns whether all goals were met
 * @throws Error when they return different data, which would make the comparison meaningless
 */
export async function benchSpeed(options: SpeedOptions): Promise<boolean> {
  const { titles, out } = options;
  const names = casesNamed(options.cases);
  const core = reserveServerCore();
  const { stores, cases, close } = await prepareSurroundings(titles);
  try {
    const subjects = {
      service: await startSubject('service', stores, core),
      koa: await startSubject('koa', stores, core),
    };
    const different = await differences([subjects.service.url, subjects.koa.url], Object.values(cases));
    if (different.length > 0) {
      throw new Error(`The service and the peer give different data.\n\n${different.join('\n\n')}`);
    }
    const measured: Partial<Record<CaseName, CaseResult>> = {};
    for (const name of names) {
      print(`Sending requests for ${CASES[name]} …\n`);
      measured[name] = await measureCase(subjects, cases[name], options, stores.folder);
    }
    for (const subject of Object.values(subjects)) await subject.stop();
    const results = { machine: machine(), serverCore: core.description, titles, load: LOADED_BY, cases: measured };
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, `${JSON.stringify(results, undefined, 2)}\n`);
    print(
      `\n${count(titles)} titles; ${results.machine}; servers ${core.description}; throughput by ${LOADED_BY}.\n` +
        `Both log to a file. Figures are also in ${out}\n`,
    );
    return printSpeed(measured);
  } finally {
    await close();
  }
}

/**
 * Sends the same requests to two servers and compares the data of the answers.
 *
 * @returns a description of each difference; empty when all responses are 200 and equal
 */
async function differences(
  [one, other]: readonly [url: string, url: string],
  cases: readonly Case[],
): Promise<string[]> {
  const found: string[] = [];
  for (const { name, requests } of cases) {
    for (const request of requests.slice(0, SAMPLES)) {
      const { path, headers } = request;
      const [left, right] = [
        await send(one, `/api/v1${path}`, { headers }),
        await send(other, `/api/v1${path}`, { headers }),
      ];
      if (left.status === 200 && right.status === 200) {
        if (isDeepStrictEqual(left.json, right.json)) continue;
      }
      found.push(`${name} (${path}): ${left.status} ${left.text}\n--- and ---\n${right.status} ${right.text}`);
    }
  }
  return found;
}
