import { setTimeout as delay } from 'node:timers/promises';
import { patientClient, runContract, type Result } from './contract-run.js';
import { child, document } from './document/document.js';
import { planExchanges, type Endpoint, type Target } from './exchanges.js';

/** A mistake in the settings, or a deployment that refuses the key. */
class CannotCompare extends Error {}

const EXIT = { conforms: 0, deviates: 1, refused: 2 };

/** As far back as `since` may reach, less a day. In seconds. */
const LOOK_BACK = 29 * 86_400;

/** What the program reads of its environment. */
export interface Settings {
  readonly BASE_URL?: string | undefined;
  readonly CATALOG_API_KEY?: string | undefined;
  readonly TITLE_ID?: string | undefined;
}

/** Where a program writes its lines. */
export interface Output {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
}

function readEndpoint({ BASE_URL = '', CATALOG_API_KEY = '' }: Settings): Endpoint {
  const base = URL.canParse(BASE_URL) ? new URL(BASE_URL) : undefined;
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new CannotCompare('BASE_URL must be the address of a deployment, such as https://catalog.example.com');
  }
  if (base.username !== '' || base.password !== '' || base.search !== '' || base.hash !== '') {
    throw new CannotCompare('BASE_URL may have a path, but no user, password, query or fragment');
  }
  if (!/^[!-~]+$/.test(CATALOG_API_KEY)) throw new CannotCompare('CATALOG_API_KEY must be a key of the deployment');
  return { url: `${base.origin}${base.pathname.replace(/\/$/, '')}`, key: CATALOG_API_KEY };
}

type Wait = (seconds: number) => Promise<void>;

/** What the feed of a deployment shows of it. */
type Found = Pick<Target, 'titleId' | 'oldestSince'>;

/** Reads the feed from as far back as it goes, for the id of a title that has changed lately. */
async function readFeed({ url, key }: Endpoint, wait: Wait, oldestSince?: number): Promise<Found> {
  const since = oldestSince ?? Math.floor(Date.now() / 1000) - LOOK_BACK;
  const { status, body } = await patientClient(wait)({
    method: 'GET',
    url: `${url}/api/v1/changes?since=${since}`,
    headers: { authorization: `Bearer ${key}` },
  }).catch((error: unknown) => {
    throw new CannotCompare(`${url} cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
  });
  if (status === 401) throw new CannotCompare(`${url} refuses the key: give one that is valid as CATALOG_API_KEY`);
  try {
    const answer = JSON.parse(body) as { data?: { svc_id: string }[]; oldest_since?: number };
    // The feed was restarted since then.
    if (oldestSince === undefined && answer.oldest_since !== undefined) {
      return await readFeed({ url, key }, wait, answer.oldest_since);
    }
    return { titleId: answer.data?.[0]?.svc_id, oldestSince };
  } catch (error) {
    if (error instanceof CannotCompare) throw error;
    // The run reports what is wrong with this answer.
    return { titleId: undefined, oldestSince };
  }
}

/**
 * Compares a deployment with the contract, by the requests that somebody with a key can send.
 *
 * @returns the exit code: 0 when all answers are as documented, 1 when one is not, and 2 when nothing could be compared
 */
export async function compareDeployment(settings: Settings, { out, err }: Output): Promise<number> {
  const { CATALOG_API_KEY = '', TITLE_ID = '' } = settings;
  // A deployment might repeat the key.
  const withoutKey = (line: string): string =>
    CATALOG_API_KEY === '' ? line : line.replaceAll(CATALOG_API_KEY, '<CATALOG_API_KEY>');
  const print = (line: string): void => out(withoutKey(line));
  const wait = async (seconds: number): Promise<void> => {
    print(`wait  ${seconds} s, because the plan's limit is used up`);
    await delay(seconds * 1000);
  };
  const onResult = ({ exchange, verdict, reasons, durationMs }: Result): void => {
    print(`${verdict} ${exchange.name}${verdict === 'skip' ? '' : ` (${durationMs} ms)`}`);
    for (const reason of reasons) print(`      ${reason}`);
  };
  try {
    const endpoint = readEndpoint(settings);
    const { titleId, oldestSince } = await readFeed(endpoint, wait);
    print(`${endpoint.url} against version ${String(child(document, 'info').version)} of the contract`);
    const exchanges = planExchanges({ ...endpoint, titleId: TITLE_ID || titleId, oldestSince, owned: undefined });
    const results = await runContract(exchanges, { onResult, wait });
    const count = (verdict: Result['verdict']) => results.filter((result) => result.verdict === verdict).length;
    print(`${count('pass')} passed, ${count('fail')} failed, ${count('skip')} skipped`);
    return count('fail') === 0 ? EXIT.conforms : EXIT.deviates;
  } catch (error) {
    const text = error instanceof CannotCompare ? error.message : String(error instanceof Error ? error.stack : error);
    err(withoutKey(text));
    return EXIT.refused;
  }
}
