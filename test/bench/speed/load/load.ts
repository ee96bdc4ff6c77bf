import { execFile, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Case } from '../cases.js';
import { compile } from '../compile.js';
import type { GeneratorOptions, Latencies, Load } from '../programs/protocol.js';
import { send, toBytes } from './send.js';
import type { Subject } from '../servers.js';

// wrk costs the least by far, so that a fast server is not held up by what measures it. It knows no constant rate, and
// autocannon sends the requests of a second all at its beginning. Hence a generator of our own. It also replaces wrk where
// there is none.

/** On which requests are sent, each as soon as the one before it is answered. */
export const CONNECTIONS = 32;
const WRK_SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url));
const HAS_WRK = spawnSync('wrk', ['--version']).error === undefined;

/** What throughput is measured with. */
export const LOADED_BY = HAS_WRK ? 'wrk' : 'the generator of test/bench (wrk is quicker: install it)';

const run = promisify(execFile);

/** Sends a server as many requests of a case as it answers. */
export async function saturate(subject: Subject, load: Case, seconds: number, folder: string): Promise<Load> {
  const { url } = subject;
  if (!HAS_WRK) return generate(subject, load, seconds, folder);
  const { stdout } = await run(
    'wrk',
    ['--threads', '1', '--connections', String(CONNECTIONS), '--duration', `${seconds}s`, '--script', WRK_SCRIPT, url],
    { env: { PATH: process.env.PATH, REQUESTS: await writeRequests(subject, load, folder) } },
  );
  return checked(subject, load, resultIn(stdout) as Load);
}

/** Sends a server requests of a case, so many a second. @param rate - undefined for as many as it answers */
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
  const generator = join(await compile('programs'), 'generator.js');
  const { stdout } = await run(process.execPath, [generator, JSON.stringify(options)]);
  return checked(subject, load, resultIn(stdout) as Latencies);
}

async function writeRequests({ url }: Subject, { requests }: Case, folder: string): Promise<string> {
  const file = join(folder, 'requests');
  await writeFile(file, requests.map((request) => toBytes(url, request)).join('\0'));
  return file;
}

function resultIn(stdout: string): unknown {
  const json = /^RESULT (.*)$/m.exec(stdout)?.[1];
  if (json === undefined) throw new Error(`No result: ${stdout}`);
  return JSON.parse(json);
}

/** @throws Error when the answers were not those of the case: what was measured is then something else */
async function checked<T extends Load>(subject: Subject, { name, status, requests }: Case, result: T): Promise<T> {
  const expected = status === undefined ? result.refused : status >= 400 ? result.requests : 0;
  // Not always the same one: an address may fail only so often a minute.
  const request = requests[Math.floor(Math.random() * requests.length)];
  const after = request && (await send(subject.url, request)).status;
  if (result.broken > 0 || result.refused !== expected || (status !== undefined && after !== status)) {
    throw new Error(
      `${name}: not all answers of the ${subject.name} were ${status ?? ''}: ${JSON.stringify({ ...result, after })}`,
    );
  }
  return result;
}
