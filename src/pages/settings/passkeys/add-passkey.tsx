import type { VNode } from 'preact';
import {
  addPasskey,
  listCredentials,
  listPasskeys,
  MAX_PASSKEY_NAME,
  MAX_PASSKEYS,
} from '../../../accounts/passkeys.js';
import {
  creationOptions,
  PasskeyRefused,
  relyingPartyOf,
  verifyCreation,
  type PasskeyRefusal,
  type RelyingParty,
} from '../../../accounts/relying-party.js';
import { printable } from '../../../platform/text/plain-text.js';
import { browserName } from '../../parts/accounts.js';
import { Notice } from '../../parts/content/components.js';
import type { PageContext, SiteParts } from '../../parts/context.js';
import { act, type Done } from '../../parts/forms/act.js';
import { Field, FormActions, formParser, type Submission } from '../../parts/forms/form.js';
import { PageError } from '../../parts/frame/error-page.js';
import { queryOf } from '../../parts/web/addresses.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from '../settings-page.js';
import { answerOptions, PasskeyForm, requireRelyingParty, takeAnswer } from '../sign-in/passkey-form.js';

/** Where the passkeys of a developer are listed. */
export const PASSKEYS = '/settings/passkeys';

const PATH = `${PASSKEYS}/new`;

const parseName = formParser({ name: { schema: {} } });

/** @returns a name for a passkey that is plain text, whatever was typed; for none, that of the browser */
function nameOf(ctx: PageContext, typed: string): string {
  return printable(typed, MAX_PASSKEY_NAME) || browserName(ctx.get('User-Agent'));
}

/** Adds the form that adds a passkey. */
export function addNewPasskey(router: SettingsRouter, { db, site }: SiteParts, { requireRecentSignIn }: Guards): void {
  router.get(PATH, requireRecentSignIn, async (ctx) => {
    if ((await listPasskeys(db, ctx.state.session.developerId)).length >= MAX_PASSKEYS) throw refusal('too_many');
    const party = relyingPartyOf(site.publicUrl());
    const name = nameOf(ctx, queryOf(ctx).get('name') ?? '');
    settingsPage(
      ctx,
      { title: 'Add a passkey', tab: 'passkeys' },
      party === undefined ? <Impossible publicUrl={site.publicUrl()} /> : <NewPasskeyPage party={party} name={name} />,
    );
  });

  router.post(`${PATH}/options`, requireRecentSignIn, async (ctx) => {
    const party = requireRelyingParty(ctx);
    const { id, developerId, projectName } = ctx.state.session;
    const existing = await listCredentials(db, developerId);
    const developer = { id: developerId, projectName };
    await answerOptions(ctx, db, id, (challenge) => creationOptions(party, challenge, developer, existing));
  });

  const add = async (ctx: SettingsContext, { values }: Submission<'name'>): Promise<Done> => {
    const party = requireRelyingParty(ctx);
    const { id: sessionId, developerId } = ctx.state.session;
    try {
      const { challenge, answer } = await takeAnswer(ctx, db, sessionId);
      const publicKey = await verifyCreation(party, challenge, answer);
      // The authenticator has created the passkey, so a name that is not plain text is corrected, not refused.
      await addPasskey(db, { developerId, sessionId }, { ...publicKey, name: nameOf(ctx, values.name) });
    } catch (error) {
      throw error instanceof PasskeyRefused ? refusal(error.reason) : error;
    }
    return { to: PASSKEYS, confirmation: 'passkey_added' };
  };

  router.post(PATH, requireRecentSignIn, act(parseName, add));
}

interface NewPasskeyProps {
  readonly party: RelyingParty;
  /** The name that is proposed. */
  readonly name: string;
}

function NewPasskeyPage({ party, name }: NewPasskeyProps): VNode {
  return (
    <>
      <p>
        Your browser will ask where to keep the passkey: on this device, in a password manager, on your phone or on a
        security key.
      </p>
      <PasskeyForm act="create" action={PATH} party={party}>
        <Field
          name="name"
          label="Name"
          hint="To tell your passkeys apart."
          value={name}
          required
          maxLength={MAX_PASSKEY_NAME}
        />
        <FormActions label="Create passkey" cancel={PASSKEYS} />
      </PasskeyForm>
      <p data-no-passkeys hidden>
        This browser does not support passkeys. Update it, or use another one.
      </p>
      <noscript>
        <p>Passkeys need JavaScript, which is off in this browser.</p>
      </noscript>
    </>
  );
}

/** Why a passkey was not added. */
const REFUSALS: Readonly<Record<PasskeyRefusal, string>> = {
  expired: 'It took too long, or you started again in another tab. Add the passkey again.',
  invalid: 'What your browser sent could not be verified. Add the passkey again.',
  unknown: 'What your browser sent could not be verified. Add the passkey again.',
  duplicate: 'This passkey was added before.',
  no_session: 'Your session has ended, or your account is suspended. Sign in, and add the passkey again.',
  too_many: `You have reached the limit of ${MAX_PASSKEYS} passkeys. Remove one you no longer need, then try again.`,
};

function refusal(reason: PasskeyRefusal): PageError {
  return new PageError(409, 'Passkey not added', REFUSALS[reason]);
}

/** Explains why there are no passkeys, and the remedy. */
export function Impossible({ publicUrl }: { readonly publicUrl: string }): VNode {
  const { hostname, port } = new URL(publicUrl);
  return (
    <Notice tone="info">
      Passkeys are off: browsers accept them only for a host name, and this service is reached at {hostname}. To turn
      them on, the operator sets <code>PUBLIC_URL</code> to an address with a host name, such as{' '}
      <code>https://catalog.example.com</code>, or <code>http://localhost{port && `:${port}`}</code> on your own
      machine.
    </Notice>
  );
}
