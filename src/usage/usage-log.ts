import type { Knex } from 'knex';
import { removeRows } from '../platform/postgres/rows.js';
import { COUNTED, eachKind, IS_OF_KIND, sumByKind, type Outcome } from './outcome.js';

/** How long usage is kept, in days: the 30 that are shown, and a few for operators. */
export const KEPT_DAYS = 35;

/** How long the totals of developers are kept by the hour, in days. The overview reads two of them. */
const HOURS_KEPT_DAYS = 3;

/**
 * Pairs of an operation and an error of the client that a key has in an hour, or in a day. Further ones count as the
 * error `other`: no client can make its usage expensive to read.
 */
const MOST_ERRORS = 8;

/** The last use of a key is written when the stored time is older than this. */
const LAST_USE = `interval '5 minutes'`;

/** The outcome of a request whose key has ended. No other request has it and is counted. */
const ENDED = `outcome = 'invalid_api_key'`;

/**
 * The errors of which a key has no more than {@link MOST_ERRORS}. Those after its end keep their name: there are few
 * operations, and their number is shown.
 */
const IS_BOUNDED = `(${IS_OF_KIND.clientErrors} and not ${ENDED})`;

/** Requests of a key within an hour that ended alike, as counted by one process. */
export interface UsageRow {
  readonly keyId: number;
  /** Hours since 1970. */
  readonly hour: number;
  /** The operation's id in the contract; empty for any other path. */
  readonly operation: string;
  readonly outcome: Outcome;
  readonly requests: number;
  /** The time since the last of them, in milliseconds. */
  readonly msAgo: number;
}

/**
 * Appends counts to the log, and notes when their keys were last accepted, and when they were refused after their end.
 * An hour that has not begun by the database's clock counts as the present one: the process's clock is ahead. Servers
 * never wait for each other: a key that another one is writing is left out until it is used again.
 *
 * @throws the database's error; when only the reply was lost, the counts are written
 */
export async function appendUsage(db: Knex, rows: readonly UsageRow[]): Promise<void> {
  await db.raw(
    `with counted as (
       select * from unnest(?::integer[], ?::integer[], ?::text[], ?::text[], ?::bigint[], ?::float8[])
                       as counted (id, hours, operation, outcome, requests, ms_ago)),
     used as (
       select id, now() - min(ms_ago) filter (where not ${ENDED}) * interval '1 ms' as at,
              now() - min(ms_ago) filter (where ${ENDED}) * interval '1 ms' as refused_at
         from counted group by id),
     outdated as (
       select id from api_keys
        where id in (select id from counted where ${ENDED})
           or id in (select id from counted) and (last_used_at is null or last_used_at < now() - ${LAST_USE})
          for no key update skip locked),
     noted as (
       update api_keys
          set last_used_at = greatest(last_used_at, at), last_refused_at = greatest(last_refused_at, refused_at)
         from used join outdated using (id)
        where api_keys.id = used.id)
     insert into usage_log (key_id, hour, operation, outcome, requests)
     select id, least(to_timestamp(3600.0 * hours), date_trunc('hour', now(), 'UTC')), operation, outcome, requests
       from counted`,
    [
      rows.map(({ keyId }) => keyId),
      rows.map(({ hour }) => hour),
      rows.map(({ operation }) => operation),
      rows.map(({ outcome }) => outcome),
      rows.map(({ requests }) => requests),
      rows.map(({ msAgo }) => msAgo),
    ],
  );
}

/** Adds rows of `counted` to the hours or days of the keys, where errors that a key already has keep their names. */
const ADD_TO_KEYS = `
  compared as (
    select counted.*, ${IS_BOUNDED} and not exists (
                        select from api_key_outcomes o
                         where (o.key_id, o.hour, o.operation, o.outcome)
                               = (counted.key_id, counted.hour, counted.operation, counted.outcome)) as is_new
      from counted),
  placed as (
    select compared.*, row_number() over (partition by key_id, hour, is_new order by requests desc) as place
      from compared),
  named as (
    select key_id, hour, operation, requests,
           case when is_new and ${MOST_ERRORS} < place + (
                       select count(*) from api_key_outcomes o
                        where (o.key_id, o.hour) = (placed.key_id, placed.hour)
                          and ${IS_BOUNDED.replaceAll('outcome', 'o.outcome')} and o.outcome <> 'other')
                then 'other' else outcome end as outcome
      from placed),
  added as (
    insert into api_key_outcomes as u (key_id, hour, operation, outcome, requests)
    select key_id, hour, operation, outcome, sum(requests) from named group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (key_id, hour, operation, outcome) do update set requests = u.requests + excluded.requests)`;

/**
 * Makes a function that moves a part of the log to the hours of the keys and to the totals of the developers. It goes
 * through the keys in order, so that rows which a long transaction keeps alive are passed once in a round.
 *
 * @returns whether there may be more
 */
export function logRollUp(): (db: Knex, most: number) => Promise<boolean> {
  let after = 0;
  return async (db, most) => {
    const { rows } = await db.raw<{ rows: { count: number; last: number | null }[] }>(
      `with taken as (
         delete from usage_log
          where key_id > :after and key_id <= coalesce(
                  (select key_id from usage_log where key_id > :after order by key_id offset :most limit 1), 2147483647)
         returning *),
       counted as (
         select key_id, hour, operation, outcome, developer_id, sum(requests) as requests
           from taken join api_keys on id = key_id group by 1, 2, 3, 4, 5),
       ${ADD_TO_KEYS},
       totals as (
         insert into developer_usage as u (developer_id, period, start, ${COUNTED})
         select coalesce(developer_id, 0), period, date_trunc(period, hour, 'UTC'), ${sumByKind('requests')}
           from counted, (values ('hour'), ('day')) as periods (period)
          group by grouping sets ((developer_id, 2, 3), (2, 3)) order by 1, 2, 3
         on conflict (developer_id, period, start) do update
           set ${eachKind((name) => `${name} = u.${name} + excluded.${name}`)})
       select count(*)::integer as count, max(key_id) as last from taken`,
      { after, most: most - 1 },
    );
    const { count = 0, last = null } = rows[0] ?? {};
    const isMore = last !== null && count >= most;
    after = isMore ? last : 0;
    return isMore;
  };
}

/**
 * Moves a part of the oldest hour that is no longer shown by the hour to its day, in the row of the first hour. Reading
 * 30 days then takes 30 rows and those of a day.
 *
 * @returns whether there may be more
 */
export async function mergeOldHours(db: Knex, most: number): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { count: number }[] }>(
    `with recursive hours (hour) as (
       select min(hour) from api_key_outcomes
       union all
       select (select min(o.hour) from api_key_outcomes o where o.hour > hours.hour) from hours where hour is not null),
     oldest as (
       select min(hour) as hour from hours
        where hour < date_trunc('hour', now(), 'UTC') - interval '24 hours' and hour <> date_trunc('day', hour, 'UTC')),
     taken as (
       delete from api_key_outcomes where ctid = any(array(
         select ctid from api_key_outcomes where hour = (select hour from oldest) limit ? for update skip locked))
       returning *),
     counted as (
       select key_id, date_trunc('day', hour, 'UTC') as hour, operation, outcome, requests from taken),
     ${ADD_TO_KEYS}
     select count(*)::integer as count from taken`,
    [most],
  );
  return (rows[0]?.count ?? 0) > 0;
}

/** Removes usage older than {@link KEPT_DAYS}, and hours of developers that are no longer read. */
export async function removeOldUsage(db: Knex, most: number): Promise<boolean> {
  const isOld = (time: string, days: number): string => `${time} < now() - interval '${days} days'`;
  const isMore = [
    await removeRows(db, 'api_key_outcomes', isOld('hour', KEPT_DAYS), most),
    await removeRows(db, 'developer_usage', `period = 'day' and ${isOld('start', KEPT_DAYS)}`, most),
    await removeRows(db, 'developer_usage', `period = 'hour' and ${isOld('start', HOURS_KEPT_DAYS)}`, most),
  ];
  return isMore.includes(true);
}
