import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { generateApiKey } from '../../src/keys/api-key.js';
import type { CreatedKey } from '../../src/keys/keys.js';
import { newAddress } from '../support/http/new-address.js';
import { newKey, newPlan, UNLIMITED } from '../support/keys/new-key.js';
import { send, type Reply } from '../support/request.js';
import { addTitles } from '../support/titles.js';

/** What an answer counts as; text for what is wrong with it. */
export type Verdict = 'served' | 'refused' | 'unavailable' | { readonly wrong: string };

/** A request, and which answers to it are right. */
export interface Question {
  readonly name: string;
  readonly path: string;
  /** Made anew for each request. */
  readonly headers: () => Readonly<Record<string, string>>;
  /** @param startedAt - when it was sent, on the clock of `performance.now()` */
  judge(reply: Reply, startedAt: number): Verdict;
}

/** What servers are asked during an outage. */
export interface Questions {
  readonly all: readonly Question[];
  /** Requests a day of the key that uses up its plan. */
  readonly limit: number;
  /** The key that uses up its plan, and the one that is revoked meanwhile. */
  readonly limited: CreatedKey;
  readonly doomed: CreatedKey;
  /** Call it when the revocation has returned: from then on the key must be refused. */
  noteRevoked(): void;
}

const LIMIT = 5;

/** Fills the catalogue and makes the plans, once for a database. */
export async function prepareCatalogue(db: Knex): Promise<void> {
  await addTitles(db, 40);
  await newPlan(db, 'limited', UNLIMITED, LIMIT);
}

/**
 * Makes keys for one outage, and asks a server for the answers that are right as long as nobody writes.
 *
 * @param isElsewhere - whether the outage leaves a developer alone, if it does not strike the one whose plan is used up
 */
export async function prepareQuestions(
  db: Knex,
  url: string,
  isElsewhere?: (limited: CreatedKey, other: CreatedKey) => boolean,
): Promise<Questions> {
  const [steady, limited, doomed] = [await newKey(db), await newKey(db, { planId: 'limited' }), await newKey(db)];
  let apart = isElsewhere && (await newKey(db, { planId: 'limited' }));
  while (apart && isElsewhere?.(limited, apart) === false) apart = await newKey(db, { planId: 'limited' });
  let revokedAt = Infinity;
  const headersOf = (key: string) => () => ({ authorization: `Bearer ${key}`, 'x-forwarded-for': newAddress() });
  const steadily = async (path: string): Promise<Question> => {
    const { json } = await send(url, path, { headers: headersOf(steady.key)() });
    return { name: path, path, headers: headersOf(steady.key), judge: (reply) => served(reply, json) };
  };
  const stats = '/api/v1/stats';
  const { etag = '' } = (await send(url, stats, { headers: headersOf(steady.key)() })).headers;
  return {
    limit: LIMIT,
    limited,
    doomed,
    noteRevoked: () => (revokedAt = performance.now()),
    all: [
      await steadily('/api/v1/me'),
      await steadily(stats),
      await steadily(`/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 3600}`),
      await steadily('/api/v1/titles/title-0007'),
      {
        name: 'not modified',
        path: stats,
        headers: () => ({ ...headersOf(steady.key)(), 'if-none-match': etag }),
        judge: (reply) =>
          reply.status === 304 && reply.text === '' && reply.headers.etag === etag ? 'served' : unavailable(reply),
      },
      {
        name: 'invalid key',
        path: '/api/v1/me',
        headers: () => headersOf(generateApiKey().key)(),
        judge: (reply) => refused(reply, 401, 'invalid_api_key'),
      },
      {
        name: 'no key',
        path: '/api/v1/me',
        headers: () => ({}),
        judge(reply) {
          const verdict = refused(reply, 401, 'missing_api_key');
          return verdict === 'unavailable' ? { wrong: '503 for what needs nothing' } : verdict;
        },
      },
      ...Object.entries({ limited, ...(apart && { elsewhere: apart }) }).map(([name, { key }]): Question => {
        const judge = (reply: Reply): Verdict =>
          reply.status === 429 ? refused(reply, 429, 'rate_limit_exceeded') : served(reply);
        return { name, path: '/api/v1/me', headers: headersOf(key), judge };
      }),
      {
        name: 'doomed',
        path: '/api/v1/me',
        headers: headersOf(doomed.key),
        // A request that is in flight while the key is revoked may get either.
        judge: (reply, startedAt) =>
          startedAt > revokedAt || reply.status === 401 ? refused(reply, 401, 'invalid_api_key') : served(reply),
      },
    ],
  };
}

/** @param truth - the body; undefined for any */
function served(reply: Reply, truth?: unknown): Verdict {
  if (reply.status !== 200) return unavailable(reply);
  if (truth !== undefined && !isDeepStrictEqual(reply.json, truth)) {
    return { wrong: `200 with another body: ${reply.text.slice(0, 300)}` };
  }
  return reply.headers.ratelimit === undefined ? { wrong: '200 without RateLimit' } : 'served';
}

function refused(reply: Reply, status: 401 | 429, code: string): Verdict {
  if (reply.status !== status) return unavailable(reply);
  const field = status === 401 ? reply.headers['www-authenticate'] : reply.headers['retry-after'];
  const isWhole = isProblem(reply, code) && (status === 401 ? field?.startsWith('Bearer') : Number(field) >= 1);
  return isWhole === true ? 'refused' : { wrong: `${status} that is not whole: ${reply.text}` };
}

/** An answer that is neither right nor a refusal can only be a whole 503. */
function unavailable(reply: Reply): Verdict {
  return reply.status === 503 && isProblem(reply, 'service_unavailable') && Number(reply.headers['retry-after']) >= 1
    ? 'unavailable'
    : { wrong: `${reply.status} ${reply.text.slice(0, 300)}` };
}

function isProblem(reply: Reply, expected: string): boolean {
  const { status, code, request_id: id } = (reply.json ?? {}) as Record<string, unknown>;
  return (
    reply.headers['content-type'] === 'application/problem+json' &&
    status === reply.status &&
    code === expected &&
    id === reply.headers['x-request-id']
  );
}
