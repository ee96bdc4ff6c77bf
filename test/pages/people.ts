import type { Knex } from 'knex';
import { addPasskey } from '../../src/accounts/passkeys.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { somePublicKey } from '../support/http/authenticator.js';
import { addHistory } from '../support/keys/many-keys.js';
import { addUsage, rollUp } from '../support/keys/usage.js';
import { addFailures, createSampleDeveloper } from './sample-developer.js';

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

/** @returns as many failed requests */
const failures = (number: number) =>
  Array.from(
    { length: number },
    (_, index) => [`/api/v1/titles/t${index}`, 'getTitle', 'title_not_found', 'No title has this id.'] as const,
  );

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
    await addFailures(db, developerId, keys, failures(1));
    return { developerId, prefix };
  },

  /** More than one page of each list, with keys in each state. */
  async many(db: Knex) {
    const { developerId, prefix } = await createSampleDeveloper(db);
    await addHistory(db, developerId, MANY);
    const keys = await db('api_keys').where({ developer_id: developerId }).orderBy('prefix').pluck<number[]>('id');
    await addFailures(db, developerId, [keys[0] ?? NaN, keys.at(-1) ?? NaN], failures(2 * MANY));
    return { developerId, prefix };
  },
} satisfies Readonly<Record<string, (db: Knex) => Promise<Person>>>;
