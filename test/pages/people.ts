import type { Knex } from 'knex';
import { addPasskey } from '../../src/accounts/passkeys.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { writeFailures } from '../../src/usage/failed-requests.js';
import { somePublicKey } from '../support/http/authenticator.js';
import { addHistory } from '../support/keys/many-keys.js';
import { addUsage, rollUp } from '../support/keys/usage.js';
import { createSampleDeveloper } from './sample-developer.js';

/** A developer of the database, with the prefix of one of their keys. */
export interface Person {
  readonly developerId: number;
  readonly prefix: string;
}

/** More than one page of a list. */
const MANY = 60;

async function create(db: Knex, projectName: string): Promise<number> {
  return (await createDeveloper(db, { projectName, attributionRequired: false })).id;
}

async function addFailures(db: Knex, developerId: number, number: number, keys: readonly number[]): Promise<void> {
  await writeFailures(
    db,
    Array.from({ length: number }, (_, index) => ({
      developerId,
      keyId: keys[index % keys.length] ?? NaN,
      at: Date.now() - index * 1_000,
      requestId: `7d3c1f0a-5a0e-4a8e-9f7b-${String(index).padStart(12, '0')}`,
      method: 'GET',
      path: `/api/v1/titles/t${index}`,
      operation: 'getTitle',
      status: 404,
      code: 'title_not_found',
      detail: 'No title has this id.',
      durationMs: 1,
    })),
  );
}

/** Developers in the states that pages must show. */
export const PEOPLE = {
  async nothing(db: Knex) {
    return { developerId: await create(db, 'Nothing'), prefix: 'svc_ZZZZZZZZ' };
  },

  /** One of everything that is counted, in words too: one day until a key expires. */
  async one(db: Knex) {
    const developerId = await create(db, 'Single');
    const expires = { kind: 'after', seconds: 1.5 * 86_400 } as const;
    const { prefix } = await createKey(db, { developerId, planId: 'free', label: 'only', expires });
    const keys = await db('api_keys').where({ prefix }).pluck<number[]>('id');
    await addPasskey(db, { developerId }, { ...somePublicKey(), name: 'Security key' });
    await addUsage(db, prefix, 1, { rateLimited: 1 });
    await rollUp(db);
    await addFailures(db, developerId, 1, keys);
    return { developerId, prefix };
  },

  /** More than one page of each list, with keys in each state. */
  async many(db: Knex) {
    const { developerId, prefix } = await createSampleDeveloper(db);
    await addHistory(db, developerId, MANY);
    const keys = await db('api_keys').where({ developer_id: developerId }).orderBy('prefix').pluck<number[]>('id');
    await addFailures(db, developerId, 2 * MANY, [keys[0] ?? NaN, keys.at(-1) ?? NaN]);
    return { developerId, prefix };
  },
} satisfies Readonly<Record<string, (db: Knex) => Promise<Person>>>;
