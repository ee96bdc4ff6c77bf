import type { Knex } from 'knex';
import { generateApiKey } from './api-key.js';
import type { Expiry } from './expiry.js';
import { keyFields, type KeyRecord } from './key-record.js';

/** A key that was just made. The whole key is here and never again. */
export type CreatedKey = KeyRecord & { readonly key: string };

/** Two of 62^8 public ids hardly ever meet. More than a few attempts would mean another fault. */
const ATTEMPTS_FOR_A_FREE_PREFIX = 5;

/** Inserts a key under a prefix that is free. @param columns - all that the key itself does not decide */
export async function insertKey(db: Knex, columns: Readonly<Record<string, unknown>>): Promise<CreatedKey> {
  for (let attempt = 0; attempt < ATTEMPTS_FOR_A_FREE_PREFIX; attempt += 1) {
    const { key, prefix, hash } = generateApiKey();
    const [record] = await db('api_keys')
      .insert({ ...columns, prefix, hash })
      .onConflict('prefix')
      .ignore()
      .returning<KeyRecord[]>(keyFields(db));
    if (record !== undefined) return { ...record, key };
  }
  throw new Error('no free key prefix was found');
}

export function expiresAtOf(db: Knex, expires: Expiry | undefined): Knex.Raw | null {
  if (expires === undefined) return null;
  return expires.kind === 'at'
    ? db.raw('?::timestamptz', [expires.time])
    : db.raw("now() + ? * interval '1 second'", [expires.seconds]);
}
