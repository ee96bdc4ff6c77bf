import type { Knex } from 'knex';
import { linkIdentity } from '../../src/accounts/identities.js';
import { addPasskey } from '../../src/accounts/passkeys.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { ERROR_CODES, type ErrorCode } from '../../src/errors.js';
import { writeFailures } from '../../src/usage/failed-requests.js';
import { createKey, type CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { somePublicKey } from '../support/http/authenticator.js';
import { rollUp } from '../support/keys/usage.js';

const DAY_SECONDS = 86_400;

/**
 * Makes a developer whose settings have something to show: keys in every state, passkeys, and a month of usage.
 *
 * @returns its id, and the prefix of its key for staging, which is active
 */
export async function createSampleDeveloper(db: Knex): Promise<{ developerId: number; prefix: string }> {
  const { id: developerId } = await createDeveloper(db, { projectName: 'Film club', attributionRequired: false });
  const create = (label: string, days?: number): Promise<CreatedKey> => {
    const expires = days === undefined ? undefined : ({ kind: 'after', seconds: days * DAY_SECONDS } as const);
    return createKey(db, { developerId, planId: 'pro', label, expires });
  };
  const change = async ({ prefix }: { prefix: string }, ago: Readonly<Record<string, string>>): Promise<void> => {
    const columns = Object.entries(ago).map(([name, interval]) => [name, db.raw(`now() - interval '${interval}'`)]);
    await db('api_keys').where({ prefix }).update(Object.fromEntries(columns));
  };
  const [production, staging, laptop] = [await create('production'), await create('staging'), await create('laptop')];
  await revokeKey(db, laptop.prefix);
  await change(await create('nightly export'), { created_at: '200 days', last_used_at: '120 days' });
  await create('build server of the Film club in Reykjavík, which fetches the new titles of each night', 12);
  await createKey(db, { developerId, planId: 'pro', expires: { kind: 'after', seconds: 90 * DAY_SECONDS } });
  await change(await create('demo for the board', 1), { created_at: '40 days', expires_at: '10 days' });
  const replaced = await create('mobile app back end');
  await rollKey(db, replaced.prefix, 0);
  await change(replaced, { created_at: '90 days', expires_at: '2 days' });
  await linkIdentity(db, developerId, { issuer: 'https://accounts.example.com', subject: '10769150350006150715' });
  const { successor } = await rollKey(db, production.prefix, DAY_SECONDS);
  await change(production, { last_used_at: '3 hours', created_at: '14 months' });
  await change(successor, { last_used_at: '1 minute' });
  const phone = await addPasskey(
    db,
    { developerId },
    { ...somePublicKey({ isSynced: true }), name: 'Safari on iPhone' },
  );
  await db('passkeys')
    .where({ id: phone })
    .update({ last_used_at: db.raw("now() - interval '2 days'") });
  await addPasskey(db, { developerId }, { ...somePublicKey(), name: 'Security key' });
  await addUsage(db, production.prefix, 900);
  await addUsage(db, staging.prefix, 120);
  await addSomeFailures(db, developerId, staging.prefix);
  return { developerId, prefix: staging.prefix };
}

/** Adds a month of usage by the hour: mostly success, some refusals of a limit, and few errors of each side. */
async function addUsage(db: Knex, prefix: string, scale: number): Promise<void> {
  await db.raw(
    `with used as (
       select id as key_id, date_trunc('hour', now() - make_interval(hours => ago), 'UTC') as hour, operation, outcome,
              (scale * share)::bigint as requests
         from api_keys, generate_series(0, 24 * 29) as ago,
              lateral (select cast(:scale as float) * (1.2 + sin(ago / 24.0) * 0.6 + (ago % 7) / 10.0)) as scaled (scale),
              lateral (values ('getTitle', 'success', 0.7), ('getChanges', 'success', 0.3),
                              ('getTitle', 'title_not_found', 0.04),
                              ('getChanges', 'since_out_of_window', case when ago % 90 < 2 then 0.1 else 0 end),
                              ('getTitle', 'rate_limit_exceeded', case when ago % 50 < 3 then 0.2 else 0 end),
                              ('getTitle', 'service_unavailable', case when ago = 100 then 0.1 else 0 end)
              ) as ways (operation, outcome, share)
        where prefix = :prefix)
     insert into usage_log (key_id, hour, operation, outcome, requests)
     select key_id, hour, operation, outcome, requests from used where requests > 0`,
    { prefix, scale },
  );
  await rollUp(db);
}

/** Adds a failed request of each of a few kinds. */
async function addSomeFailures(db: Knex, developerId: number, prefix: string): Promise<void> {
  const keys = await db('api_keys').where({ prefix }).pluck<number[]>('id');
  await addFailures(db, developerId, keys, [
    ['/api/v1/titles/blade-runer', 'getTitle', 'title_not_found', 'No title has this id.'],
    [
      '/api/v1/changes?since=1690000000',
      'getChanges',
      'since_out_of_window',
      'since is more than 30 days in the past.',
    ],
    ['/api/v1/me', 'getMe', 'rate_limit_exceeded', "You have used up your plan's requests per minute. Wait 12 s."],
    ['/api/v1/stats', 'getStats', 'service_unavailable', 'The service is temporarily unavailable.'],
  ]);
}

type FailureText = readonly [path: string, operation: string, code: ErrorCode, detail: string];

/** Adds failed requests of keys in turn, the newest first, some time apart. */
export async function addFailures(
  db: Knex,
  developerId: number,
  keys: readonly number[],
  failures: readonly FailureText[],
): Promise<void> {
  await writeFailures(
    db,
    failures.map(([path, operation, code, detail], index) => ({
      developerId,
      keyId: keys[index % keys.length] ?? NaN,
      at: Date.now() - index * 3_000_000,
      requestId: `7d3c1f0a-5a0e-4a8e-9f7b-${String(index).padStart(12, '0')}`,
      method: 'GET',
      path,
      operation,
      status: ERROR_CODES[code].status,
      code,
      detail,
      durationMs: 1.2 + index,
    })),
  );
}
