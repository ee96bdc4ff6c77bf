import type { Knex } from 'knex';
import { LRUCache } from 'lru-cache';
import { poolOf } from './database.js';

/** Runs a query whose answer may be a little behind the primary. */
export interface Read {
  /** @param isEnough - whether an answer of the replica is recent enough; otherwise the query runs on the primary */
  <T>(query: (db: Knex) => Promise<T>, isEnough?: (result: T) => boolean): Promise<T>;
  /** Whether a replica may answer, and so may be behind the primary. */
  readonly mayLag: boolean;
}

/** Reads only from the primary. */
export function readFrom(primary: Knex): Read {
  return Object.assign(<T>(query: (db: Knex) => Promise<T>) => query(primary), { mayLag: false });
}

/** Reads from a replica while it answers, and keeps track of whether it does. */
export interface ReplicaRead extends Read {
  /** Tries the replica, in bounded time: only this ends its loss, so no query waits for a replica that is lost. */
  readonly check: () => Promise<void>;
}

/**
 * Reads from a replica of the database as long as it answers, and from the primary otherwise.
 *
 * After any error of the replica the query runs on the primary. The error may be an outage, a cancellation by replay
 * (SQLSTATE 40001), or a migration that has not arrived yet. A bug of ours then fails on the primary as well.
 *
 * The replica's bounds must leave the primary time to answer within the bound of a request.
 *
 * @param onChange - called when the replica is lost, with the reason, and each time that a check succeeds
 */
export function readFromReplica(
  primary: Knex,
  replica: Knex,
  onChange: (state: 'lost' | 'up', error?: unknown) => void,
): ReplicaRead {
  let isLost = false;

  function lose(error: unknown): void {
    isLost = true;
    onChange('lost', error);
  }

  async function read<T>(query: (db: Knex) => Promise<T>, isEnough: (result: T) => boolean = () => true): Promise<T> {
    if (isLost) return query(primary);
    let result;
    try {
      result = await query(replica);
    } catch (error) {
      lose(error);
      return query(primary);
    }
    return isEnough(result) ? result : query(primary);
  }

  async function check(): Promise<void> {
    try {
      await poolOf(replica).check();
      isLost = false;
      onChange('up');
    } catch (error) {
      lose(error);
    }
  }

  return Object.assign(read, { mayLag: true, check });
}

/**
 * Makes a function that measures how far a replica is behind, in seconds: how long ago the primary had what the replica
 * has now. It is undefined while one of them does not answer.
 *
 * While nobody writes, the age of the last change that was replayed grows, but the replica has everything. After such a
 * time the age of the next change says too much, until the replica has caught up once more: the time since it last had
 * everything is a bound. It is of one server: the address may lead to several replicas.
 */
export function lagOf(primary: Knex, replica: Knex): () => Promise<number | undefined> {
  const caughtUpAt = new LRUCache<string, number>({ max: MOST_REPLICAS });
  return async () => {
    try {
      const now = performance.now();
      const { rows } = await primary.raw<{ rows: [{ position: string }] }>(
        'select pg_current_wal_lsn()::text as position',
      );
      const [{ server, isCaughtUp, age }] = (await replica.raw<{ rows: [Replayed] }>(REPLAYED, rows[0])).rows;
      if (isCaughtUp) caughtUpAt.set(server, now);
      return isCaughtUp ? 0 : Math.min(age, (now - (caughtUpAt.get(server) ?? -Infinity)) / 1_000);
    } catch {
      return undefined;
    }
  };
}

/** Replicas whose delay is measured, more than anybody has. */
const MOST_REPLICAS = 100;

interface Replayed {
  /** Which replica it is. One that was restarted counts as another. */
  readonly server: string;
  readonly isCaughtUp: boolean;
  /** Of the last change that was replayed, in seconds. */
  readonly age: number;
}

/** A replica that has replayed no change since its start has no time of the last one. */
const REPLAYED = `
  select concat_ws(' ', inet_server_addr(), inet_server_port(), pg_postmaster_start_time()) as server,
         pg_last_wal_replay_lsn() >= :position::pg_lsn as "isCaughtUp",
         extract(epoch from clock_timestamp()
                   - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time()))::float8 as age`;
