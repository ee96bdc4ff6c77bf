import type { Next } from 'koa';
import type { ComponentChildren, VNode } from 'preact';
import { MAX_EDITS_PER_DAY } from '../../../keys/edit-key.js';
import { KeyRefused, MAX_ACTIVE_KEYS, MAX_KEYS_PER_DAY } from '../../../keys/key-change.js';
import { Notice } from '../../parts/content/components.js';
import { Operator } from '../../parts/content/operator.js';
import type { SettingsContext } from '../guards.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { settingsPage } from '../settings-page.js';
import { noSuchKey } from './one-key.js';

/** Answers with the reason when a change of a key is refused. It stands before every page of keys. */
export async function explainRefusals(ctx: SettingsContext, next: Next): Promise<void> {
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
          {explain(error)}
        </Notice>
        <BackToKeys />
      </>,
    );
  }
}

export function BackToKeys(): VNode {
  return (
    <p>
      <a class="button" href="/settings/keys">
        Back to your keys
      </a>
    </p>
  );
}

function explain({ reason, otherPrefix = '' }: KeyRefused): ComponentChildren {
  switch (reason) {
    case 'repeated':
      return (
        <>
          This form was already submitted and created the key <code>{otherPrefix}</code>, which was shown once. If you
          no longer have that key, <RollLink prefix={otherPrefix} /> while it is still active, or <NewKeyLink />.
        </>
      );
    case 'rolled':
      return (
        <>
          This key was already replaced by <code>{otherPrefix}</code>. If you no longer have that key,{' '}
          <RollLink prefix={otherPrefix} /> while it is still active, or <NewKeyLink />.
        </>
      );
    case 'not_replaced':
      return (
        <>
          This key was replaced by <code>{otherPrefix}</code>, which is no longer active.{' '}
          <NewKeyLink text="Create a new key" />.
        </>
      );
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
      return (
        <>
          Your account is suspended. Contact <Operator />.
        </>
      );
    case 'expired':
      return (
        <>
          This key has expired. <NewKeyLink text="Create a new key" />.
        </>
      );
    case 'revoked':
    case 'unknown':
      return (
        <>
          This key is revoked. <NewKeyLink text="Create a new key" />.
        </>
      );
  }
}

function NewKeyLink({ text = 'create a new key' }: { readonly text?: string }): VNode {
  return <a href="/settings/keys/new">{text}</a>;
}

function RollLink({ prefix }: { readonly prefix: string }): VNode {
  return <a href={`/settings/keys/${prefix}/roll`}>roll it</a>;
}
