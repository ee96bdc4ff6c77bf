import type { Knex } from 'knex';
import { fromRfc3339, toSeconds } from '../../src/platform/time/micros.js';
import { newDeveloper, newKey } from '../support/keys/new-key.js';

/** One of the requests of a case. */
export interface BenchRequest {
  /** Under /api/v1. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Requests that are sent in turn. All of them are answered with 200. */
export interface Case {
  readonly name: string;
  readonly requests: readonly BenchRequest[];
}

/** The kinds of requests that are measured. */
export const CASES = {
  me: '/me',
  stats: '/stats',
  changes: '/changes, a full page',
  tail: '/changes, the empty tail',
  title: '/titles/{title_id}',
} as const;
export type CaseName = keyof typeof CASES;

export const CASE_NAMES = Object.keys(CASES) as readonly CaseName[];

/** The number of titles and of feed positions that requests are spread over. */
const PLACES = 500;

/** The developers that requests come from in turn. */
const DEVELOPERS = 20;
const KEYS_OF_EACH = 3;

/** Makes the cases: creates keys, and chooses places all over a catalogue of more than one page. */
export async function createCases(db: Knex): Promise<Record<CaseName, Case>> {
  const keys = await keysFor(db, DEVELOPERS, KEYS_OF_EACH);
  const { titleIds, positions, newestPosition } = await choosePlaces(db);
  const toCase = (name: CaseName, paths: readonly string[]): Case => ({
    name,
    requests: paths.map((path, i) => ({ path, headers: bearer(keys[i % keys.length] ?? '') })),
  });
  const toCaseOfOne = (name: CaseName, path: string): Case => toCase(name, Array<string>(keys.length).fill(path));
  return {
    me: toCaseOfOne('me', '/me'),
    stats: toCaseOfOne('stats', '/stats'),
    changes: toCase('changes', positions.map(changesSince)),
    tail: toCaseOfOne('tail', changesSince(newestPosition)),
    title: toCase(
      'title',
      titleIds.map((id) => `/titles/${id}`),
    ),
  };
}

/** The header fields of a request with a key. */
export function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` };
}

/** Creates developers and keys on an unlimited plan. @returns the keys; neighbours belong to different developers */
export async function keysFor(db: Knex, developers: number, keysOfEach: number): Promise<string[]> {
  const ids: number[] = [];
  for (let i = 0; i < developers; i++) ids.push(await newDeveloper(db));
  const keys: string[] = [];
  for (let i = 0; i < keysOfEach; i++) {
    for (const developerId of ids) keys.push((await newKey(db, { developerId })).key);
  }
  return keys;
}

function changesSince(position: number): string {
  return `/changes?since=${position}`;
}

async function choosePlaces(db: Knex): Promise<{ titleIds: string[]; positions: number[]; newestPosition: number }> {
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
