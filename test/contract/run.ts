import { setTimeout as delay } from 'node:timers/promises';
import { runContract, type Result } from './dredd/contract-run.js';
import { child, document } from './document/document.js';
import { perform } from './dredd/dredd.js';
import { planExchanges, type Endpoint } from './document/exchanges.js';
import { patience } from './dredd/patience.js';

// Holds any deployment against the contract, with what somebody who merely has a key can provoke. Settings come from the
// environment, where other users of the machine cannot read them: BASE_URL and API_KEY. A catalogue that has been quiet for
// a month needs TITLE_ID as well. The exit code is 0 when all is as documented, and 1 when something is not. It is 2 when
// there was nothing to hold against the contract.

/** A mistake in the settings, or a deployment that does not let us in. */
class Refusal extends Error {}

const EXIT = { conforms: 0, deviates: 1, refused: 2 };

/** As far back as `since` may reach, less a day. In seconds. */
const LOOK_BACK = 29 * 86_400;

const { BASE_URL = '', API_KEY = '', TITLE_ID = '' } = process.env;

/** Prints a line in which the key cannot be, whatever a deployment may have answered. */
function print(line: string, write: (line: string) => void = console.log): void {
  write(API_KEY === '' ? line : line.replaceAll(API_KEY, '<API_KEY>'));
}

async function wait(seconds: number): Promise<void> {
  print(`wait  ${seconds} s, because the plan's limit is used up`);
  await delay(seconds * 1000);
}

function readEndpoint(): Endpoint {
  const base = URL.canParse(BASE_URL) ? new URL(BASE_URL) : undefined;
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new Refusal('BASE_URL must be the address of a deployment, such as https://catalog.example.com');
  }
  if (base.username !== '' || base.password !== '' || base.search !== '' || base.hash !== '') {
    throw new Refusal('BASE_URL may have a path, but no user, password, query or fragment');
  }
  if (!/^[!-~]+$/.test(API_KEY)) throw new Refusal('API_KEY must be a key of the deployment');
  return { url: `${base.origin}${base.pathname.replace(/\/$/, '')}`, key: API_KEY };
}

/** An id that the deployment's catalogue has, out of what has changed lately; undefined when nothing has. */
async function discoverTitle({ url, key }: Endpoint): Promise<string | undefined> {
  const since = Math.floor(Date.now() / 1000) - LOOK_BACK;
  const ask = () =>
    perform(`${url}/api/v1/changes?since=${since}`, { method: 'GET', headers: { authorization: `Bearer ${key}` } });
  const first = await ask().catch((error: unknown) => {
    throw new Refusal(`${url} cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
  });
  const { statusCode, body = '' } = await patience(wait)(first, ask);
  if (statusCode === 401) throw new Refusal(`${url} refuses the key: give one that is valid as API_KEY`);
  try {
    return (JSON.parse(body) as { data: { svc_id: string }[] }).data[0]?.svc_id;
  } catch {
    // The run itself will tell what is wrong with this answer.
    return undefined;
  }
}

function printResult({ exchange, verdict, reasons, durationMs }: Result): void {
  print(`${verdict.padEnd(5)} ${exchange.name}${verdict === 'skip' ? '' : ` (${durationMs} ms)`}`);
  for (const reason of reasons) print(`      ${reason}`);
}

async function main(): Promise<number> {
  const endpoint = readEndpoint();
  const titleId = TITLE_ID || (await discoverTitle(endpoint));
  print(`${endpoint.url} against version ${String(child(document, 'info').version)} of the contract`);
  const exchanges = planExchanges({ ...endpoint, titleId, owned: undefined });
  const { results } = await runContract(exchanges, { onResult: printResult, wait });
  const count = (...verdicts: string[]) => results.filter(({ verdict }) => verdicts.includes(verdict)).length;
  const deviating = count('fail', 'error');
  print(`${count('pass')} passed, ${deviating} failed, ${count('skip')} skipped`);
  return deviating === 0 ? EXIT.conforms : EXIT.deviates;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = EXIT.refused;
  print(error instanceof Refusal ? error.message : String(error instanceof Error ? error.stack : error), console.error);
}
