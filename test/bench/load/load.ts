import { execFile, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BenchRequest, Case } from '../speed/cases.js';
import type { Subject } from '../speed/servers.js';
import { compiled } from './compile.js';
import type { GeneratorOptions, Latencies, Load } from './protocol.js';

// wrk needs by far the least processor time, so it does not limit a fast server. It cannot send at a constant rate, and
// autocannon sends the requests of each second at its beginning. The generator here can, and replaces a missing wrk.

/** Each sends its next request as soon as the previous one is answered. */
const CONNECTIONS = 32;
const WRK_SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
const HAS_WRK = spawnSync('wrk', ['--version']).error === undefined;

/** The program that throughput is measured with. */
export const LOADED_BY = HAS_WRK ? 'wrk' : 'the generator of test/bench (wrk is quicker: install it)';

const run = promisify(execFile);

/**
 * Sends a server as many requests of a case as it can answer.
 *
 * @param connections - with more than usual, some requests may be refused
 */
export async function saturate(
  subject: Subject,
  load: Case,
  seconds: number,
  folder: string,
  connections = CONNECTIONS,
): Promise<Load> {
  if (!HAS_WRK) return generate(subject, load, seconds, folder);
  const { url } = subject;
  const { stdout } = await run(
    'wrk',
    ['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--script', WRK_SCRIPT, url],
    { env: { PATH: process.env.PATH, REQUESTS: await writeRequests(subject, load, folder) } },
  );
  return checked(subject, load, stdout, connections > CONNECTIONS);
}

/** Sends a server requests of a case. @param rate - requests a second; undefined for as many as it can answer */
export async function generate(
  subject: Subject,
  load: Case,
  seconds: number,
  folder: string,
  rate?: number,
): Promise<Latencies> {
  const options: GeneratorOptions = {
    url: subject.url,
    requestsFile: await writeRequests(subject, load, folder),
    connections: CONNECTIONS,
    seconds,
    ...(rate !== undefined && { rate }),
  };
  const { stdout } = await run(process.execPath, [await compiled('load/generator'), JSON.stringify(options)]);
  return checked(subject, load, stdout);
}

/** Serialises a request for a program that sends it repeatedly. */
export function toBytes(url: string, { path, headers }: BenchRequest): string {
  const fields = Object.entries({ host: new URL(url).host, ...headers }).map(([name, value]) => `${name}: ${value}`);
  return [`GET /api/v1${path} HTTP/1.1`, ...fields, '', ''].join('\r\n');
}

let files = 0;

async function writeRequests({ url }: Subject, { requests }: Case, folder: string): Promise<string> {
  const file = join(folder, `requests-${(files += 1)}`);
  await writeFile(file, requests.map((request) => toBytes(url, request)).join('\0'));
  return file;
}

/** @throws Error when a response was not 200, since the figures would then be meaningless */
function checked(subject: Subject, { name }: Case, stdout: string, mayRefuse = false): Latencies {
  const json = /^RESULT (.*)$/m.exec(stdout)?.[1];
  if (json === undefined) throw new Error(`No result: ${stdout}`);
  const result = JSON.parse(json) as Latencies;
  if (!mayRefuse && (result.broken > 0 || result.refused > 0)) {
    throw new Error(`${name}: not all answers of the ${subject.name} were 200: ${json}`);
  }
  return result;
}
