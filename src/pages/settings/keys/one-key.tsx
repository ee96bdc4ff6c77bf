import type { Knex } from 'knex';
import type { Next } from 'koa';
import type { VNode, ComponentChildren } from 'preact';
import { isKeyPrefix } from '../../../keys/api-key.js';
import { MAX_EDITS_PER_DAY, requireAccepted } from '../../../keys/edit-key.js';
import { KeyRefused, MAX_ACTIVE_KEYS, MAX_KEYS_PER_DAY } from '../../../keys/key-change.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { findKeyOf } from '../../../keys/keys.js';
import { Notice, Operator } from '../../parts/content/components.js';
import { PageError } from '../../parts/frame/error-page.js';
import { keyPath } from '../../parts/keys.js';
import { settingsPage, type SettingsContext } from '../settings-page.js';

/** Where the keys of a developer are listed. */
export const KEYS_PATH = '/settings/keys';

/** The form that creates a key. */
export const NEW_KEY = `${KEYS_PATH}/new`;

/** The page of a key. The forms that change the key stand below it. */
export const KEY_PATH = `${KEYS_PATH}/:prefix`;

/** Finds the key of the developer that the path names. @throws PageError 404 */
export async function loadKey(db: Knex, ctx: SettingsContext): Promise<KeyRecord> {
  const record = await findKeyOf(db, ctx.state.session.developerId, prefixOf(ctx));
  if (record === undefined) throw noSuchKey();
  return record;
}

/** The same for a key that may be changed. @throws also KeyRefused, for a key that is no longer accepted */
export async function loadAcceptedKey(db: Knex, ctx: SettingsContext): Promise<KeyRecord> {
  const record = await loadKey(db, ctx);
  requireAccepted(record);
  return record;
}

/** @throws PageError 404 for a text that cannot be a prefix */
export function prefixOf(ctx: SettingsContext): string {
  const { prefix = '' } = ctx.params as { prefix?: string };
  if (!isKeyPrefix(prefix)) throw noSuchKey();
  return prefix;
}

/** The error for a key that the developer does not have. */
function noSuchKey(): PageError {
  return new PageError(404, 'Key not found', 'You have no key with this prefix. The keys page lists all of your keys.');
}

/** Answers with a form about a key, below the page of the key. @param wrong - the form as it was sent, with its faults */
export function formPage(
  ctx: SettingsContext,
  { prefix }: KeyRecord,
  title: string,
  form: VNode,
  wrong?: object,
): void {
  const status = wrong === undefined ? 200 : 422;
  settingsPage(ctx, { title, tab: 'keys', status, trail: { path: keyPath(prefix), label: prefix } }, form);
}

/** Answers with the reason when a change of a key is refused. It stands before every page of keys. */
export async function answerRefusals(ctx: SettingsContext, next: Next): Promise<void> {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof KeyRefused)) throw error;
    if (error.reason === 'unknown') throw noSuchKey();
    throw new PageError(409, ctx.path === NEW_KEY ? 'Key not created' : 'Key not changed', textOf(error));
  }
}

function textOf({ reason, otherPrefix = '' }: KeyRefused): ComponentChildren {
  const other = <code>{otherPrefix}</code>;
  const create = <a href="/settings/keys/new">Create a new key</a>;
  const replace = (
    <>
      If you no longer have that key, <a href={`${keyPath(otherPrefix)}/roll`}>roll it</a> while it is still active, or{' '}
      <a href="/settings/keys/new">create a new key</a>.
    </>
  );
  switch (reason) {
    case 'repeated':
      return ['This form was already submitted and created the key ', other, ', which was shown once. ', replace];
    case 'rolled':
      return ['This key was already replaced by ', other, '. ', replace];
    case 'not_replaced':
      return ['This key was replaced by ', other, ', which is no longer active. ', create, '.'];
    case 'too_many':
      return `You have reached the limit of ${MAX_ACTIVE_KEYS} active keys. Revoke one that you no longer need, then try again.`;
    case 'too_many_rolled':
      return `You have reached the limit of ${MAX_ACTIVE_KEYS} rolled keys that are still active. Revoke one that you no longer need, then try again.`;
    case 'too_many_today':
      return (
        <>
          You have reached the limit of {MAX_KEYS_PER_DAY} new keys in 24 hours, including keys created by rolling. Try
          again later, or ask <Operator /> to create a key.
        </>
      );
    case 'too_many_edits':
      return `You have reached the limit of ${MAX_EDITS_PER_DAY} changes of labels and expiries in 24 hours. Try again later.`;
    case 'suspended':
      return ['Your account is suspended. Contact ', <Operator />, '.'];
    case 'expired':
      return ['This key has expired. ', create, '.'];
    case 'revoked':
    case 'unknown':
      return ['This key is revoked. ', create, '.'];
  }
}

/** Replaces the link or form that would create one more key. */
export function NoRoom(): VNode {
  return (
    <Notice tone="info">
      <strong>
        You have {MAX_ACTIVE_KEYS} of {MAX_ACTIVE_KEYS} keys in use.
      </strong>{' '}
      To create another one, first revoke a key that you no longer need. Rolled keys that are still active do not count
      toward this limit.
    </Notice>
  );
}
