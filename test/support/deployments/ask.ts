import { Agent } from 'node:http';
import { send } from '../request.js';

/** What tests look at in an answer. */
export interface Answer {
  readonly status: number;
  /** What is left of the minute and of the day; empty if the answer has no such field. */
  readonly remaining: readonly number[];
  readonly retryAfter: number | undefined;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1_000, maxFreeSockets: 1_000 });

/**
 * Asks for `/me` with a key, on one of many kept connections.
 *
 * @param address - of the client, as a proxy would report it: keys that fail are counted by it
 */
export async function ask(url: string, key: string, address = '192.0.2.1'): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': address };
  const reply = await send(url, '/api/v1/me', { headers, agent });
  const { ratelimit = '', 'retry-after': retryAfter } = reply.headers;
  return {
    status: reply.status,
    remaining: [...String(ratelimit).matchAll(/;r=(\d+);/g)].map(([, left]) => Number(left)),
    retryAfter: retryAfter === undefined ? undefined : Number(retryAfter),
  };
}

/** Counts answers by their status. */
export function tally(answers: readonly Answer[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
