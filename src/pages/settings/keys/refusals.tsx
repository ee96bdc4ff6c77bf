import type { Next } from 'koa';
import type { ComponentChildren, VNode } from 'preact';
import { MAX_EDITS_PER_DAY } from '../../../keys/edit-key.js';
import { KeyRefused, MAX_ACTIVE_KEYS, MAX_KEYS_PER_DAY } from '../../../keys/key-change.js';
import { Button, Notice } from '../../parts/content/components.js';
import type { SettingsContext } from '../guards.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { settingsPage } from '../settings-page.js';
import { noSuchKey } from './one-key.js';
import { Operator } from '../../parts/content/values.js';

/** Answers with the reason when a change of a key is refused. It stands before every page of keys. */
export async function answerRefusals(ctx: SettingsContext, next: Next): Promise<void> {
  try {
    await next();
  } catch (error) {
    if (!(error instanceof KeyRefused)) throw error;
    if (error.reason === 'unknown') throw noSuchKey();
    const { prefix } = ctx.params as { prefix?: string };
    const form = ctx.path.endsWith('/roll') ? 'roll' : 'change';
    settingsPage(
      ctx,
      {
        title: ctx.method === 'POST' ? 'Nothing was changed' : `You cannot ${form} this key`,
        tab: 'keys',
        status: 409,
        ...(prefix !== undefined && { trail: { path: keyPath(prefix), label: prefix } }),
      },
      <>
        <Notice tone="warning" role="alert">
          {textOf(error)}
        </Notice>
        <BackToKeys />
      </>,
    );
  }
}

export function BackToKeys(): VNode {
  return (
    <p>
      <Button href="/settings/keys" label="Back to your keys" />
    </p>
  );
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
