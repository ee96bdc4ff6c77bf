import type { Knex } from 'knex';
import { linkIdentity } from '../../src/accounts/identities.js';
import { addPasskey } from '../../src/accounts/passkeys.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey, type CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { somePublicKey } from '../support/http/authenticator.js';

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
  const change = async ({ prefix }: CreatedKey, columns: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, value] of Object.entries(columns)) {
      await db('api_keys')
        .where({ prefix })
        .update(name, db.raw(`now() - interval '${value}'`));
    }
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
  await db('api_keys')
    .where({ prefix: production.prefix })
    .update({ last_used_at: db.raw("now() - interval '3 hours'"), created_at: db.raw("now() - interval '14 months'") });
  await db('api_keys')
    .where({ prefix: successor.prefix })
    .update({ last_used_at: db.raw("now() - interval '1 minute'") });
  const phone = await addPasskey(
    db,
    { developerId },
    { ...somePublicKey({ isSynced: true }), name: 'Safari on iPhone' },
  );
  await db('passkeys')
    .where({ id: phone })
    .update({ last_used_at: db.raw("now() - interval '2 days'") });
  await addPasskey(db, { developerId }, { ...somePublicKey(), name: 'Security key' });
  for (const [{ prefix }, scale] of [
    [production, 900],
    [staging, 120],
  ] as const) {
    await db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
       select id, date_trunc('hour', now() - make_interval(hours => ago), 'UTC'),
              (? * (1.2 + sin(ago / 24.0) * 0.6 + (ago % 7) / 10.0))::bigint, case when ago % 50 < 3 then ? else 0 end, 0
         from api_keys, generate_series(0, 24 * 29) as ago where prefix = ?`,
      [scale, scale / 4, prefix],
    );
  }
  return { developerId, prefix: staging.prefix };
}
