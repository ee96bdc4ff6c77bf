import type { Knex } from 'knex';
import type { KeyHash } from '../keys/api-key.js';
import { IS_ACTIVE } from '../keys/key-record.js';
import { PLAN_COLUMNS, type Plan } from '../limits/plans.js';
import { batchLoader } from '../platform/async/batch-loader.js';
import { Semaphore } from '../platform/async/semaphore.js';
import { DatabaseTimeout } from '../platform/postgres/errors.js';
import { Statement } from '../platform/postgres/database.js';
import { STEADY_CLOCK, type SteadyClock } from '../platform/time/steady-clock.js';

/** A key, and whose it is. */
interface OwnedKey {
  readonly keyId: number;
  readonly keyPrefix: string;
  readonly developerId: number;
}

/** Who is calling: the key, its developer and its plan, as read from the database. */
export interface Caller extends OwnedKey {
  readonly projectName: string;
  readonly attributionRequired: boolean;
  readonly plan: Plan;
  /** The earliest time at which the key may expire, on the clock that the caller was read by; Infinity for never. */
  readonly expiresAt: number;
}

/** Why a key is not accepted. A suspended account comes first: then none of its keys is. */
export type EndReason = 'suspended' | 'revoked' | 'expired';

/** A key that is no longer accepted, or not while its developer is suspended. */
export interface EndedKey extends OwnedKey {
  readonly reason: EndReason;
  /** Since when it is not accepted, in RFC 3339 and UTC. */
  readonly endedAt: string;
  /** The prefix of its successor; null if it was not rolled. */
  readonly replacedBy: string | null;
}

/** The record of the database under the hash of a key. Only a caller may be admitted. */
export type KeyLookup =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'ended_key'; readonly key: EndedKey }
  | { readonly kind: 'unknown_key' };

const UNKNOWN: KeyLookup = { kind: 'unknown_key' };

interface CallerRow extends Omit<Caller, 'expiresAt'> {
  /** In base64. */
  readonly hash: string;
  /** Milliseconds until the key expires; null for never. */
  readonly msLeft: number | null;
  /** Null for a caller. */
  readonly end: Pick<EndedKey, 'reason' | 'endedAt' | 'replacedBy'> | null;
}

const PLAN_MEMBERS = Object.entries(PLAN_COLUMNS).map(([member, column]) => `'${member}', ${column}`);

const FIND_CALLERS = new Statement<CallerRow, [hashes: readonly Buffer[]]>(
  'find-callers',
  `select encode(k.hash, 'base64') as hash, k.id as "keyId", k.prefix as "keyPrefix", k.developer_id as "developerId",
          d.project_name as "projectName", d.attribution_required as "attributionRequired",
          (select json_build_object(${PLAN_MEMBERS.join(', ')}) from plans where plans.id = k.plan_id) as plan,
          extract(epoch from k.expires_at - clock_timestamp())::float8 * 1000 as "msLeft",
          case when ${IS_ACTIVE} and d.suspended_at is null then null
               else json_build_object(
                 'reason', case when d.suspended_at is not null then 'suspended'
                                when k.revoked_at is not null then 'revoked' else 'expired' end,
                 'endedAt', to_char(coalesce(d.suspended_at, k.revoked_at, k.expires_at) at time zone 'UTC',
                                   'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                 'replacedBy', (select prefix from api_keys successor where successor.id = k.successor_id))
          end as end
     from api_keys k
     join developers d on d.id = k.developer_id
    where k.hash = any ((select $1)::bytea[])`,
);

/**
 * Finds the callers that keys belong to, and keys that have ended, in one query.
 *
 * The database decides whether a key has expired, and returns the time that it has left. That time is counted from
 * before the query was sent, so it ends no later than in the database.
 *
 * @param hashes - the SHA-256 of each whole key, in base64
 * @returns the record with the hash of the key
 */
async function findKeys(
  db: Knex,
  hashes: readonly string[],
  clock: SteadyClock,
): Promise<ReadonlyMap<string, KeyLookup>> {
  const found = new Map<string, KeyLookup>();
  if (hashes.length === 0) return found;
  const distinct = [...new Set(hashes)].map((hash) => Buffer.from(hash, 'base64'));
  const sentAt = clock.now();
  for (const { hash, msLeft, end, ...caller } of await FIND_CALLERS.rows(db, distinct)) {
    const { keyId, keyPrefix, developerId } = caller;
    if (end !== null) found.set(hash, { kind: 'ended_key', key: { keyId, keyPrefix, developerId, ...end } });
    else {
      const expiresAt = msLeft === null ? Infinity : sentAt + msLeft;
      found.set(hash, { kind: 'caller', caller: { ...caller, expiresAt } });
    }
  }
  return found;
}

/**
 * Reads the caller that a key belongs to from the database.
 *
 * @throws the database's error; DatabaseTimeout if no query was free in time
 */
export type LoadCaller = (hash: KeyHash) => Promise<KeyLookup>;

interface Load {
  readonly hash: KeyHash;
  /** On the clock of `performance.now()`. */
  readonly queuedAt: number;
}

/** The most loads that share a query. Few queries run at a time, so a flood of unknown keys needs large ones. */
const MAX_BATCH_SIZE = 64;

/**
 * Creates a loader that sends few queries at a time. Loads that arrive meanwhile share the next query, also those of
 * the same key. A load cannot distinguish a valid key from an unknown one beforehand, so a flood of unknown keys
 * occupies only these connections, and leaves the others to requests whose caller is cached.
 *
 * @param queriesAtOnce - the most connections that the loads occupy
 * @param clock - the clock that `expiresAt` is measured on
 * @param maxWaitMs - after waiting this long for a query, a load fails: its request has timed out
 */
export function callerLoader(db: Knex, queriesAtOnce: number, clock = STEADY_CLOCK, maxWaitMs = 1_000): LoadCaller {
  const queries = new Semaphore(queriesAtOnce);

  async function loadAll(loads: readonly Load[]): Promise<(KeyLookup | Error)[]> {
    try {
      const oldest = performance.now() - maxWaitMs;
      const due = loads.filter(({ queuedAt }) => queuedAt >= oldest).map(({ hash }) => hash);
      const found = await findKeys(db, due, clock);
      return loads.map(({ hash, queuedAt }) =>
        queuedAt >= oldest
          ? (found.get(hash) ?? UNKNOWN)
          : new DatabaseTimeout('no query was free in time to look up a key'),
      );
    } finally {
      queries.release();
    }
  }

  const load = batchLoader(loadAll, { maxBatchSize: MAX_BATCH_SIZE, waitForTurn: () => queries.acquire() });
  return (hash) => load({ hash, queuedAt: performance.now() });
}
