import { isDeepStrictEqual } from 'node:util';
import type { Case } from './cases.js';
import { send, type Received } from './load/send.js';

/** Requests of each case that are compared. */
const SAMPLES = 5;

/**
 * Sends the same requests to two servers, and compares the answers byte by byte. It leaves out what every request has of
 * its own: its id, the date, and how much of a quota is left.
 *
 * @returns what differs, in words; nothing when all is the same, and as the case says
 */
export async function differences(
  [one, other]: readonly [url: string, url: string],
  cases: readonly Case[],
): Promise<string[]> {
  const found: string[] = [];
  for (const { name, status, requests } of cases) {
    for (const request of requests.slice(0, SAMPLES)) {
      const answer = await send(one, request);
      const what = `${name} (${request.path})`;
      if (answer.status !== status) found.push(`${what}: ${answer.status}, not ${status ?? ''}\n${steady(answer)}`);
      const [left, right] = [steady(answer), steady(await send(other, request))];
      if (left !== right) found.push(`${what}: the answers differ\n${left}\n--- and ---\n${right}`);
    }
  }
  return found;
}

/**
 * Sends the same requests to two servers and compares status and data. Refusals are compared by their status alone.
 *
 * @returns what differs, in words; nothing when all is the same
 */
export async function dataDifferences(
  [one, other]: readonly [url: string, url: string],
  cases: readonly Case[],
): Promise<string[]> {
  const found: string[] = [];
  for (const { name, requests } of cases) {
    for (const request of requests.slice(0, SAMPLES)) {
      const [left, right] = [dataOf(await send(one, request)), dataOf(await send(other, request))];
      if (!isDeepStrictEqual(left, right)) {
        found.push(`${name} (${request.path}): ${JSON.stringify(left)}\n--- and ---\n${JSON.stringify(right)}`);
      }
    }
  }
  return found;
}

function dataOf({ status, body }: Received): { readonly status: number; readonly data?: unknown } {
  return status === 200 ? { status, data: JSON.parse(body) } : { status };
}

/** An answer without what changes: status, header fields in the order of their names, body. */
function steady({ status, headers, body }: Received): string {
  const fields = Object.entries(headers)
    .filter(([name]) => name !== 'date')
    .map(([name, value]) => `${name}: ${String(value)}`)
    .map((field) => field.replace(/^(x-request-id|retry-after): .+/, '$1: …').replace(/;([rt])=\d+/g, ';$1=…'))
    .sort();
  const text = body.replace(/"request_id":"[0-9a-f-]{36}"/, '"request_id":"…"').replace(/\b[Ww]ait \d+ s/, 'wait … s');
  return [status, ...fields, '', text].join('\n');
}
