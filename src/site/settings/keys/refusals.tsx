import type { ComponentChildren, VNode } from 'preact';
import { KeyRefused, MOST_ACTIVE_KEYS, MOST_KEYS_A_DAY } from '../../../keys/key-change.js';
import { Notice } from '../../layout/components.js';
import { PageError } from '../../layout/error-page.js';
import type { SettingsContext } from '../context.js';
import { settingsPage } from '../settings-page.js';

/** Answers with the reason of a refusal. @throws what is no refusal, and PageError 404 for an unknown key */
export function answerRefusal(ctx: SettingsContext, error: unknown, title = 'Nothing was changed'): void {
  if (!(error instanceof KeyRefused)) throw error;
  if (error.reason === 'unknown') throw noSuchKey();
  settingsPage(
    ctx,
    { title, tab: 'keys', status: 409 },
    <>
      <Notice tone="warning">
        <p>{explain(error)}</p>
      </Notice>
      <p>
        <a class="button" href="/settings/keys">
          Back to the keys
        </a>
      </p>
    </>,
  );
}

/** The answer for a key that the developer does not have. */
export function noSuchKey(): PageError {
  return new PageError(404, 'No such key', 'You have no key of this prefix. The list of your keys shows all of them.');
}

function explain({ reason, otherPrefix = '' }: KeyRefused): ComponentChildren {
  switch (reason) {
    case 'repeated':
      return (
        <>
          This form was sent before, and has made the key <code>{otherPrefix}</code>. The whole key stood in the answer
          to the first time only. If you do not have it, <RollLink prefix={otherPrefix} />.
        </>
      );
    case 'rolled':
      return (
        <>
          This key was replaced by <code>{otherPrefix}</code> before. If you do not have the whole of that,{' '}
          <RollLink prefix={otherPrefix} />.
        </>
      );
    case 'not_replaced':
      return (
        <>
          This key was replaced by <code>{otherPrefix}</code>, which no longer works. <NewKeyLink />
        </>
      );
    case 'too_many':
      return `At most ${MOST_ACTIVE_KEYS} keys work at the same time, and as many rolled ones. Revoke a key, or end a rolled one, and try again.`;
    case 'too_many_today':
      return `You have made ${MOST_KEYS_A_DAY} keys in the last 24 hours, which is the most, successors included. Try again when the first of them is a day old. The operator of this service can make more.`;
    case 'suspended':
      return 'Your account is suspended. Ask the operator of this service.';
    case 'expired':
      return (
        <>
          This key has expired. <NewKeyLink />
        </>
      );
    case 'revoked':
    case 'unknown':
      return (
        <>
          This key is revoked. <NewKeyLink />
        </>
      );
  }
}

function NewKeyLink(): VNode {
  return <a href="/settings/keys/new">Create a new one.</a>;
}

function RollLink({ prefix }: { readonly prefix: string }): VNode {
  return <a href={`/settings/keys/${prefix}/roll`}>roll it</a>;
}
