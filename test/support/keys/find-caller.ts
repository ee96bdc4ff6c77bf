import type { Knex } from 'knex';
import { callerLoader, type Caller } from '../../../src/admission/callers.js';
import { hashOf } from './key-hash.js';

/** @returns the caller that a key belongs to, by the database; undefined unless the key is accepted */
export async function findCaller(db: Knex, key: string): Promise<Caller | undefined> {
  const found = await callerLoader(db, 1)(hashOf(key));
  return found.kind === 'caller' ? found.caller : undefined;
}
