import type { Knex } from 'knex';
import type { ErrorCode } from '../errors.js';
import { removeRows, type Part } from '../platform/postgres/rows.js';

/** How many failed requests of a developer are kept. */
export const KEPT_FAILURES = 1_000;

/** How many of each kind are kept, so that a client in a loop does not evict everything else. */
export const KEPT_OF_KIND = 100;

/** How long they are kept, in days. */
export const KEPT_FAILURE_DAYS = 7;

/** Failures that are alike: of one key, with one code, of one operation. */
export interface FailureKind {
  readonly developerId: number;
  readonly keyId: number;
  readonly code: ErrorCode;
  /** The operation's id in the contract; empty for any other path. */
  readonly operation: string;
}

/** A request with a valid key that was answered with an error. It holds no secret. */
interface Failure extends Pick<FailureKind, 'code' | 'operation'> {
  readonly requestId: string;
  readonly method: string;
  /** As in the log: without keys, and of the query only `since`. */
  readonly path: string;
  readonly status: number;
  readonly detail: string;
  readonly durationMs: number;
}

/** A failure that is not written yet. */
export interface NewFailure extends Failure, FailureKind {
  /** When it was answered, in milliseconds since 1970. */
  readonly at: number;
}

/** A failure that was written. */
export interface FailedRequest extends Failure {
  /** Its place among failures of the same time. */
  readonly id: number;
  /** RFC 3339, in UTC. */
  readonly at: string;
  readonly keyPrefix: string;
  readonly keyLabel: string | null;
}

/** Which failed requests of a developer to list. */
export interface FailuresQuery extends Part<Pick<FailedRequest, 'at' | 'id'>> {
  readonly developerId: number;
  /** The prefix of a single key; undefined for all keys of the developer. */
  readonly keyPrefix?: string | undefined;
  /** Undefined for all errors. */
  readonly code?: ErrorCode | undefined;
  /** The id of a single operation, empty for paths without one; undefined for all requests. */
  readonly operation?: string | undefined;
  /** The beginning of an hour, in RFC 3339 and UTC; undefined for any time. */
  readonly hour?: string | undefined;
  /** An id, or its beginning, as somebody has copied it: with quotes, a comma, its name. Undefined for all requests. */
  readonly requestId?: string | undefined;
}

/** @returns a slice of the failed requests of a developer that are kept, the latest first */
export async function listFailures(
  db: Knex,
  { developerId, keyPrefix, code, operation, hour, requestId, limit, after }: FailuresQuery,
): Promise<readonly FailedRequest[]> {
  const { rows } = await db.raw<{ rows: FailedRequest[] }>(
    `select f.id, f.at, f.request_id as "requestId", f.method, f.path, f.operation, f.status, f.code, f.detail,
            f.duration_ms as "durationMs", k.prefix as "keyPrefix", k.label as "keyLabel"
       from (select * from failed_requests
              where developer_id = :developerId and at > now() - interval '${KEPT_FAILURE_DAYS} days'
              order by at desc, id desc limit ${KEPT_FAILURES}) as f
       join api_keys k on k.id = f.key_id
      where (cast(:keyPrefix as text) is null or k.prefix = :keyPrefix)
        and (cast(:code as text) is null or f.code = :code)
        and (cast(:operation as text) is null or f.operation = :operation)
        and (cast(:hour as timestamptz) is null or date_trunc('hour', f.at, 'UTC') = :hour)
        and (cast(:requestId as text) is null or starts_with(lower(f.request_id), lower(:requestId)))
        and (cast(:id as bigint) is null or (f.at, f.id) < (cast(:at as timestamptz), :id))
      order by f.at desc, f.id desc
      limit :limit`,
    {
      developerId,
      keyPrefix: keyPrefix ?? null,
      code: code ?? null,
      operation: operation ?? null,
      hour: hour ?? null,
      requestId: requestId?.match(/[\w.-]+/g)?.at(-1) ?? requestId ?? null,
      at: after?.at ?? null,
      id: after?.id ?? null,
      limit,
    },
  );
  return rows;
}

/**
 * Writes failures, and removes the oldest beyond {@link KEPT_OF_KIND} of the same kinds and {@link KEPT_FAILURES} of the
 * same developers. Failures of deleted keys are left out.
 *
 * @throws the database's error; nothing is written then
 */
export async function writeFailures(db: Knex, failures: readonly NewFailure[]): Promise<void> {
  const column = <Name extends keyof NewFailure>(name: Name): NewFailure[Name][] => failures.map((each) => each[name]);
  await db.transaction(async (transaction) => {
    await transaction.raw(
      `insert into failed_requests
              (developer_id, key_id, at, request_id, method, path, operation, status, code, detail, duration_ms)
       select developer_id, id, least(to_timestamp(ms / 1000), now()), request_id, method, path, operation, status,
              code, detail, duration_ms
         from unnest(?::integer[], ?::float[], ?::text[], ?::text[], ?::text[], ?::text[], ?::smallint[], ?::text[],
                     ?::text[], ?::float[])
                as failed (id, ms, request_id, method, path, operation, status, code, detail, duration_ms)
         join api_keys using (id)`,
      [
        column('keyId'),
        column('at'),
        column('requestId'),
        column('method'),
        column('path'),
        column('operation'),
        column('status'),
        column('code'),
        column('detail'),
        column('durationMs'),
      ],
    );
    await transaction.raw(
      `delete from failed_requests where id = any(array(
         select id
           from (select older.id
                   from (select distinct * from unnest(?::integer[], ?::text[], ?::text[])) as kind (key_id, code, operation),
                        lateral (select id from failed_requests as f
                                  where (f.key_id, f.code, f.operation) = (kind.key_id, kind.code, kind.operation)
                                  order by at desc, id desc offset ${KEPT_OF_KIND}) as older
                  union
                 select older.id
                   from unnest(?::integer[]) as failing (developer),
                        lateral (select id from failed_requests where developer_id = developer
                                  order by at desc, id desc offset ${KEPT_FAILURES}) as older) as surplus
           join failed_requests using (id)
            for update of failed_requests skip locked))`,
      [column('keyId'), column('code'), column('operation'), [...new Set(column('developerId'))]],
    );
  });
}

/** Removes failures older than {@link KEPT_FAILURE_DAYS}. @returns whether there may be more @throws the database's error */
export function removeOldFailures(db: Knex, most: number): Promise<boolean> {
  return removeRows(db, 'failed_requests', `at < now() - interval '${KEPT_FAILURE_DAYS} days'`, most);
}
