import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { isKeyPrefix } from '../../../keys/api-key.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { findKeyOf } from '../../../keys/keys.js';
import { PageError } from '../../parts/frame/error-page.js';
import { keyPath } from '../../parts/keys/key-name.js';
import type { SettingsContext } from '../guards.js';
import { settingsPage } from '../settings-page.js';

/** Where the keys of a developer are listed. */
export const KEYS_PATH = '/settings/keys';

/** The page of a key. The forms that change the key stand below it. */
export const KEY_PATH = `${KEYS_PATH}/:prefix`;

/** Finds the key of the developer that the path names. @throws PageError 404 */
export async function recordOf(ctx: SettingsContext, db: Knex): Promise<KeyRecord> {
  const record = await findKeyOf(db, ctx.state.session.developerId, prefixOf(ctx));
  if (record === undefined) throw noSuchKey();
  return record;
}

/** @throws PageError 404 for what cannot be a prefix */
export function prefixOf(ctx: SettingsContext): string {
  const { prefix = '' } = ctx.params as { prefix?: string };
  if (!isKeyPrefix(prefix)) throw noSuchKey();
  return prefix;
}

/** The error for a key that the developer does not have. */
export function noSuchKey(): PageError {
  return new PageError(404, 'Key not found', 'You have no key with this prefix. The keys page lists all of your keys.');
}

/** Answers with a form about a key, below the page of the key. */
export function formPage(
  ctx: SettingsContext,
  { prefix }: KeyRecord,
  title: string,
  form: VNode,
  status?: number,
): void {
  settingsPage(ctx, { title, tab: 'keys', status, trail: { path: keyPath(prefix), label: prefix } }, form);
}
