import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { createDeveloper } from '../../src/developers/developers.js';
import { generateApiKey } from '../../src/keys/api-key.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import type { Reply } from '../support/request.js';

/** What an answer is counted as; text for what is wrong with it. */
export type Verdict = 'served' | 'refused' | 'unavailable' | { readonly wrong: string };

/** A request, and the truth about it. */
export interface Question {
  readonly name: string;
  readonly path: string;
  /** Made anew for each request. */
  headers(): Readonly<Record<string, string>>;
  /** @param startedAt - when it was sent, on the clock of `performance.now()` */
  judge(reply: Reply, startedAt: number): Verdict;
}

/** What is asked of servers during an outage, and what is known of it. */
export interface Questions {
  readonly all: readonly Question[];
  /** Requests a minute of the key that uses up its plan. */
  readonly limit: number;
  /** The prefix of the key that is revoked meanwhile. */
  readonly doomedPrefix: string;
  /** To be called when its revocation has returned: from now on it must be refused. */
  noteRevoked(): void;
}

/** Requests a minute of the plan that is used up at once. */
const LIMIT = 5;

/** More than any test asks for. */
const UNLIMITED = 2_000_000_000;

const MOVIES = 25;
const SERIES = 15;

/** Fills the catalogue and makes the plans. Once for a database. */
export async function prepareCatalogue(db: Knex): Promise<void> {
  await db.raw(
    `insert into titles (svc_id, media_type, title)
     select 'title-' || i, case when i <= ?::integer then 'movie' else 'series' end, 'Title ' || i
       from generate_series(1, ?::integer) as i`,
    [MOVIES, MOVIES + SERIES],
  );
  const plan = { name: 'Plan', requestsPerDay: UNLIMITED, commercialUse: true };
  await setPlan(db, 'unlimited', { ...plan, requestsPerMinute: UNLIMITED });
  await setPlan(db, 'limited', { ...plan, requestsPerMinute: LIMIT });
}

/**
 * Makes keys for one outage and says what every answer must be. The truth is taken from the database itself, never from a
 * server's answers.
 */
export async function prepareQuestions(db: Knex): Promise<Questions> {
  const steady = await newKey(db, 'unlimited');
  const limited = await newKey(db, 'limited');
  const doomed = await newKey(db, 'unlimited');
  const titles = await db('titles')
    .select<{ svc_id: string }[]>('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles')
    .orderBy('updated_at');
  const title = await db('titles').select<Record<string, unknown>[]>('*').where({ svc_id: 'title-7' }).first();
  const [newest] = await db('titles').select<{ seconds: string }[]>(
    db.raw('max(extract(epoch from updated_at)) as seconds'),
  );
  const since = Math.floor(Date.now() / 1000) - 3600;
  const stats = {
    data: {
      titles: MOVIES + SERIES,
      movies: MOVIES,
      series: SERIES,
      available_in_library: 0,
      people: 0,
      svc_collections: 0,
    },
  };
  let revokedAt = Infinity;
  let tag = '*';

  const ask = (
    name: string,
    path: string,
    key: string,
    judge: Question['judge'],
    more: Readonly<Record<string, string>> = {},
  ): Question => ({ name, path, headers: () => ({ authorization: `Bearer ${key}`, ...more }), judge });

  return {
    limit: LIMIT,
    doomedPrefix: doomed.prefix,
    noteRevoked: () => (revokedAt = performance.now()),
    all: [
      ask('me', '/api/v1/me', steady.key, served(steady.me)),
      ask('stats', '/api/v1/stats', steady.key, (reply) => {
        const verdict = served(stats)(reply);
        if (verdict === 'served') tag = reply.headers.etag ?? '';
        return verdict;
      }),
      ask(
        'changes',
        `/api/v1/changes?since=${since}`,
        steady.key,
        served({ data: titles, meta: { has_more: false, next_since: Number(newest?.seconds) } }),
      ),
      ask('title', '/api/v1/titles/title-7', steady.key, served({ data: title })),
      {
        name: 'not modified',
        path: '/api/v1/stats',
        headers: () => ({ authorization: `Bearer ${steady.key}`, 'if-none-match': tag }),
        judge: (reply) =>
          reply.status === 304 && reply.text === '' && (tag === '*' || reply.headers.etag === tag)
            ? 'served'
            : unavailable(reply),
      },
      {
        name: 'invalid key',
        path: '/api/v1/me',
        headers: () => ({ 'x-api-key': generateApiKey().key, 'x-forwarded-for': newAddress() }),
        judge: refused(401, 'invalid_api_key'),
      },
      {
        name: 'no key',
        path: '/api/v1/me',
        headers: () => ({}),
        judge: (reply) => neverUnavailable(refused(401, 'missing_api_key')(reply)),
      },
      ask('limited', '/api/v1/me', limited.key, (reply) =>
        reply.status === 429 ? refused(429, 'rate_limit_exceeded')(reply) : served(limited.me)(reply),
      ),
      {
        name: 'doomed',
        path: '/api/v1/me',
        headers: () => ({ authorization: `Bearer ${doomed.key}`, 'x-forwarded-for': newAddress() }),
        judge: (reply, startedAt) => {
          if (startedAt > revokedAt) return refused(401, 'invalid_api_key')(reply);
          // Under way while it is revoked, it may be answered either way.
          return reply.status === 401 ? refused(401, 'invalid_api_key')(reply) : served(doomed.me)(reply);
        },
      },
    ],
  };
}

/** Makes a developer with a key, and says what `/me` must answer to it. */
async function newKey(db: Knex, planId: string): Promise<{ key: string; prefix: string; me: unknown }> {
  const developer = await createDeveloper(db, { projectName: `On ${planId}`, attributionRequired: true });
  const { key, prefix } = await createKey(db, { developerId: developer.id, planId });
  const plan = {
    id: planId,
    name: 'Plan',
    requests_per_minute: planId === 'limited' ? LIMIT : UNLIMITED,
    requests_per_day: UNLIMITED,
    commercial_use: true,
  };
  const data = { project_name: `On ${planId}`, key_prefix: prefix, plan, attribution_required: true };
  return { key, prefix, me: { data } };
}

let addresses = 0;

/** Refusals are limited by address: each comes from another one. */
function newAddress(): string {
  addresses += 1;
  return ['10', addresses >> 16, (addresses >> 8) & 255, addresses & 255].join('.');
}

function served(truth: unknown): (reply: Reply) => Verdict {
  return (reply) => {
    if (reply.status !== 200) return unavailable(reply);
    if (!isDeepStrictEqual(reply.json, truth)) return { wrong: `200 with another body: ${reply.text.slice(0, 300)}` };
    return reply.headers.ratelimit === undefined ? { wrong: '200 without RateLimit' } : 'served';
  };
}

function refused(status: 401 | 429, code: string): (reply: Reply) => Verdict {
  return (reply) => {
    if (reply.status !== status) return unavailable(reply);
    const field = status === 401 ? reply.headers['www-authenticate'] : reply.headers['retry-after'];
    const isWhole = isProblem(reply, code) && (status === 401 ? field?.startsWith('Bearer') : Number(field) >= 1);
    return isWhole === true ? 'refused' : { wrong: `${status} that is not whole: ${reply.text}` };
  };
}

/** What is neither the answer nor the refusal that it should be can only be a 503, and a whole one. */
function unavailable(reply: Reply): Verdict {
  return reply.status === 503 && isProblem(reply, 'service_unavailable') && Number(reply.headers['retry-after']) >= 1
    ? 'unavailable'
    : { wrong: `${reply.status} ${reply.text.slice(0, 300)}` };
}

function neverUnavailable(verdict: Verdict): Verdict {
  return verdict === 'unavailable' ? { wrong: '503 for what needs nothing' } : verdict;
}

function isProblem(reply: Reply, code: string): boolean {
  const { status, code: told, request_id: id } = (reply.json ?? {}) as Record<string, unknown>;
  return (
    reply.headers['content-type'] === 'application/problem+json' &&
    status === reply.status &&
    told === code &&
    id === reply.headers['x-request-id']
  );
}
