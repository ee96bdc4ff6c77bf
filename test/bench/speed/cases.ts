import type { Knex } from 'knex';
import { fromRfc3339, toSeconds } from '../../../src/platform/time/micros.js';
import { createDeveloper } from '../../../src/developers/developers.js';
import { generateApiKey } from '../../../src/keys/api-key.js';
import { createKey } from '../../../src/keys/keys.js';
import { setPlan } from '../../../src/limits/plans.js';
import { send } from './load/send.js';

/** One of the requests of a case. */
export interface BenchRequest {
  /** Under /api/v1. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Requests that are sent in turn. */
export interface Case {
  readonly name: string;
  /** What all of them are answered with; undefined for a mixture. */
  readonly status: number | undefined;
  readonly requests: readonly BenchRequest[];
}

/** The kinds of requests that are measured. */
export const CASES = {
  me: '/me',
  stats: '/stats',
  changes: '/changes, a full page',
  tail: '/changes, the empty tail',
  title: '/titles/{title_id}',
  unchanged: '304 (/titles/{title_id})',
  invalid: '401, no such key',
  exhausted: '429, plan used up',
} as const;
export type CaseName = keyof typeof CASES;

export const CASE_NAMES = Object.keys(CASES) as readonly CaseName[];

/** @returns the cases of these names, in their own order. @throws Error when there is none of a name */
export function casesNamed(names: readonly string[]): readonly CaseName[] {
  const unknown = names.filter((name) => !CASE_NAMES.some((known) => known === name));
  if (unknown.length > 0) throw new Error(`No such case: ${unknown.join()}. There are ${CASE_NAMES.join()}`);
  return CASE_NAMES.filter((known) => names.includes(known));
}

/** Titles, and positions in the feed, that requests are spread over. */
const PLACES = 500;

/** Callers that requests are from, in turn. */
const DEVELOPERS = 20;
const KEYS_OF_EACH = 3;

/**
 * Addresses that keys fail from, each with a key of its own. An address may fail 30 times a minute, so these allow for
 * 40,000 a second.
 */
const FAILING_ADDRESSES = 80_000;

/** Requests of each kind in a mixture. */
const MIXED = 5_000;

const UNLIMITED = 2_000_000_000;

/** What requests are made from. */
export interface Ingredients {
  /** Of several developers, on a plan that nothing uses up. */
  readonly keys: readonly string[];
  /** The same, on a plan that allows a single request a day. */
  readonly spentKeys: readonly string[];
  readonly titleIds: readonly string[];
  /** Positions in the feed that a full page follows. */
  readonly positions: readonly number[];
  readonly newestPosition: number;
}

/** Makes keys, and chooses places all over a catalogue of more than a page. */
export async function prepareIngredients(db: Knex): Promise<Ingredients> {
  return { keys: await keysFor(db), spentKeys: await keysFor(db, { requestsPerDay: 1 }), ...(await choosePlaces(db)) };
}

/** @param url - of a server that is asked once for what requests depend on, such as entity tags */
export async function createCases(url: string, ingredients: Ingredients): Promise<Record<CaseName, Case>> {
  const { keys, spentKeys, titleIds, positions, newestPosition } = ingredients;
  const get = (paths: readonly string[]): BenchRequest[] =>
    paths.map((path, i) => ({ path, headers: bearer(keys[i % keys.length] ?? '') }));
  const getOne = (path: string): BenchRequest[] => get(keys.map(() => path));
  const titles = get(titleIds.map((id) => `/titles/${id}`));
  const unchanged: BenchRequest[] = [];
  for (const { path, headers } of titles) {
    const { headers: received } = await send(url, { path, headers });
    unchanged.push({ path, headers: { ...headers, 'if-none-match': received.etag ?? '' } });
  }
  const spent = spentKeys.map((key) => ({ path: '/me', headers: bearer(key) }));
  await useUpQuotas(url, spent);
  return {
    me: { name: 'me', status: 200, requests: getOne('/me') },
    stats: { name: 'stats', status: 200, requests: getOne('/stats') },
    changes: { name: 'changes', status: 200, requests: get(positions.map((since) => `/changes?since=${since}`)) },
    tail: { name: 'tail', status: 200, requests: getOne(`/changes?since=${newestPosition}`) },
    title: { name: 'title', status: 200, requests: titles },
    unchanged: { name: 'unchanged', status: 304, requests: unchanged },
    invalid: { name: 'invalid', status: 401, requests: Array.from({ length: FAILING_ADDRESSES }, failing) },
    exhausted: { name: 'exhausted', status: 429, requests: spent },
  };
}

/** Sends the requests once: the one request of each developer's day. @param url - of a server with counters of its own */
export async function useUpQuotas(url: string, requests: readonly BenchRequest[]): Promise<void> {
  for (const request of requests) await send(url, request);
}

/** Cases that the obvious code on Fastify answers as well. It has no entity tags, and does not count keys that fail. */
const OF_PEER: readonly string[] = ['me', 'stats', 'changes', 'tail', 'title', 'exhausted'] satisfies CaseName[];

/** @returns whether Fastify is measured with a case */
export function isOfPeer({ name }: Case): boolean {
  return OF_PEER.includes(name);
}

/** @returns the cases that Fastify is measured with */
export function ofPeer(cases: Readonly<Record<CaseName, Case>>): readonly Case[] {
  return Object.values(cases).filter(isOfPeer);
}

/** Requests of all cases by turns. */
export function mixtureOf(cases: readonly Case[]): Case {
  const requests = Array.from({ length: MIXED }, (_, i) =>
    cases.flatMap((one) => one.requests[i % one.requests.length] ?? []),
  ).flat();
  return { name: 'mixture', status: undefined, requests };
}

/** The header fields of a request with a key. */
export function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` };
}

function failing(_: unknown, i: number): BenchRequest {
  const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
  return { path: '/me', headers: { ...bearer(generateApiKey().key), 'x-forwarded-for': address } };
}

/** @returns keys of new developers, those of a developer apart, on a plan that by default nothing uses up */
export async function keysFor(
  db: Knex,
  { requestsPerDay = UNLIMITED, developers: count = DEVELOPERS, keysOfEach = KEYS_OF_EACH } = {},
): Promise<string[]> {
  const planId = `bench-${requestsPerDay}`;
  await setPlan(db, planId, { name: 'Bench', requestsPerMinute: UNLIMITED, requestsPerDay, commercialUse: false });
  const developers: number[] = [];
  for (let i = 0; i < count; i++) {
    developers.push((await createDeveloper(db, { projectName: 'Bench', attributionRequired: false })).id);
  }
  const keys: string[] = [];
  for (let i = 0; i < keysOfEach; i++) {
    for (const developerId of developers) keys.push((await createKey(db, { developerId, planId })).key);
  }
  return keys;
}

async function choosePlaces(db: Knex): Promise<Pick<Ingredients, 'titleIds' | 'positions' | 'newestPosition'>> {
  // The newest entry, and others all over the feed but for its last page, in random order.
  const { rows } = await db.raw<{ rows: { id: string; updated_at: string }[] }>(
    `select svc_id as id, updated_at
       from (select *, row_number() over (order by updated_at) as place, count(*) over () as titles from titles) t
      where place = titles or (place % greatest(1, titles / ?::integer) = 0 and place < titles - 200)
      order by place = titles desc, md5(svc_id)`,
    [PLACES],
  );
  const [newest, ...places] = rows.map(({ id, updated_at }) => ({ id, position: toSeconds(fromRfc3339(updated_at)) }));
  if (newest === undefined || places.length === 0) throw new Error('The catalogue has no full page');
  return {
    titleIds: places.map(({ id }) => id),
    positions: places.map(({ position }) => position),
    newestPosition: newest.position,
  };
}
