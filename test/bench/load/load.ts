import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BenchRequest, Case } from '../cases.js';

// wrk needs by far the least CPU time, so it does not limit a fast server. It cannot send at a constant rate.

/** Each sends its next request as soon as the previous one is answered. */
const CONNECTIONS = 32;
const WRK_SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));

/** Seconds that are not counted, while connections are opened, statements prepared and code compiled. */
export const WARM_UP_SECONDS = 2;

/** The result of some seconds of load. */
export interface Load {
  /** Answered requests. */
  readonly requests: number;
  readonly seconds: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Broken connections, and requests without an answer. */
  readonly broken: number;
}

const run = promisify(execFile);
let files = 0;

/**
 * Sends a server as many requests of a case as it can answer.
 *
 * @param folder - for the file of the requests @param connections - with more than usual, some requests may be refused
 * @throws Error when a response was not 200, since the figures would then be meaningless
 */
export async function saturate(
  url: string,
  { name, requests }: Case,
  seconds: number,
  folder: string,
  connections = CONNECTIONS,
): Promise<Load> {
  const file = join(folder, `requests-${(files += 1)}`);
  await writeFile(file, requests.map((request) => toBytes(url, request)).join('\0'));
  const { stdout } = await run(
    'wrk',
    ['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--script', WRK_SCRIPT, url],
    { env: { PATH: process.env.PATH, REQUESTS: file } },
  );
  const json = /^RESULT (.*)$/m.exec(stdout)?.[1] ?? '';
  const load = JSON.parse(json) as Load;
  if (connections <= CONNECTIONS && load.broken + load.refused > 0)
    throw new Error(`${name}: not all were 200: ${json}`);
  return load;
}

/** Serialises a request for a program that sends it repeatedly. */
function toBytes(url: string, { path, headers }: BenchRequest): string {
  const fields = Object.entries({ host: new URL(url).host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  return [`GET /api/v1${path} HTTP/1.1`, ...fields, '', ''].join('\r\n');
}

/**
 * Sends requests at a constant rate, whether or not the previous ones are answered: a server that stalls also gets the
 * requests of that time.
 *
 * @param rate - a second
 * @returns how long each took, in milliseconds
 */
export async function timesAtRate(url: string, { requests }: Case, seconds: number, rate: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const times: Promise<number>[] = [];
  const start = performance.now();
  for (let sent = 0; sent < seconds * rate; sent += 1) {
    await delay(Math.max(0, start + (sent * 1_000) / rate - performance.now()));
    times.push(timeRequest(url, requests[sent % requests.length], agent));
  }
  try {
    return await Promise.all(times);
  } finally {
    agent.destroy();
  }
}

/** @returns milliseconds from sending the request to the last byte of its answer @throws Error unless that is a 200 */
export function timeRequest(url: string, request: BenchRequest | undefined, agent: Agent): Promise<number> {
  const { path = '', headers = {} } = request ?? {};
  return new Promise((resolve, reject) => {
    const start = performance.now();
    get(`${url}/api/v1${path}`, { agent, headers }, (response) => {
      response.once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200) resolve(performance.now() - start);
        else reject(new Error(`${path}: ${response.statusCode ?? ''}`));
      });
      response.resume();
    }).once('error', reject);
  });
}
