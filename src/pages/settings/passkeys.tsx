import type { VNode } from 'preact';
import {
  addPasskey,
  listCredentials,
  listPasskeys,
  MAX_PASSKEY_NAME,
  MAX_PASSKEYS,
  removePasskey,
} from '../../accounts/passkeys.js';
import {
  creationOptions,
  PasskeyRefused,
  relyingPartyOf,
  verifyCreation,
  type PasskeyRefusal,
} from '../../accounts/relying-party.js';
import { printable } from '../../platform/text/plain-text.js';
import type { SiteParts } from '../parts/context.js';
import { formParser, Field, Form, FormActions } from '../parts/forms/form.js';
import { queryOf, seeOther } from '../parts/web/addresses.js';
import { Badge, Button, Notice, isolated, Operator, RelativeTime, UserText } from '../parts/content/components.js';
import { Table } from '../parts/content/table.js';
import { PageError } from '../parts/frame/error-page.js';
import { answerOptions, PasskeyForm, requireRelyingParty, takeAnswer } from './sign-in/passkey-form.js';
import { browserName } from '../parts/accounts.js';
import { type Guards, type SettingsRouter, settingsPage } from './settings-page.js';
import { redirectAndConfirm } from '../parts/frame/notices.js';

const PATH = '/settings/passkeys';

const parseName = formParser({ name: { schema: {} } });

/** An id fits the type of its column. */
const parseRemoval = formParser({ passkey: { schema: { pattern: '^[0-9]{1,9}$' } } });

/**
 * Adds the passkeys of a developer: their list, and the forms that add and remove one. Removing one only takes access
 * away, so any session may do it.
 */
export function addPasskeys(router: SettingsRouter, { db, site }: SiteParts, guards: Guards): void {
  router.get(PATH, guards.requireSession, async (ctx) => {
    const { developerId, suspendedAt } = ctx.state.session;
    const passkeys = await listPasskeys(db, developerId);
    const isPossible = relyingPartyOf(site.publicUrl()) !== undefined;
    settingsPage(
      ctx,
      { title: 'Passkeys', tab: 'passkeys' },
      <>
        <p>
          A passkey lets you sign in with your fingerprint, face or screen lock, or with a security key, instead of a
          sign-in link.
        </p>
        {!isPossible && <Impossible publicUrl={site.publicUrl()} />}
        {isPossible && suspendedAt === null && passkeys.length < MAX_PASSKEYS && (
          <p>
            <Button href={`${PATH}/new`} tone="primary" label="Add a passkey" />
          </p>
        )}
        {passkeys.length >= MAX_PASSKEYS && (
          <p>You have {passkeys.length} passkeys, the most that you can have. To add another, remove one.</p>
        )}
        {passkeys.length === 0 ? (
          <p class="empty">You have no passkeys</p>
        ) : (
          <>
            <Table
              caption="Passkeys"
              hasCards
              columns={['Name', 'Created', 'Last used', { label: 'Actions', actions: true }]}
              rows={passkeys.map(({ id, name, isSynced, createdAt, lastUsedAt }) => [
                <>
                  <UserText text={name} /> {isSynced && <Badge tone="info">Synced</Badge>}
                </>,
                <RelativeTime at={createdAt} />,
                <RelativeTime at={lastUsedAt} />,
                <a
                  class="button button-quiet danger"
                  href={`${PATH}/remove?passkey=${id}`}
                  aria-label={`Remove passkey ${isolated(name)}`}
                >
                  Remove
                </a>,
              ])}
            />
            <p class="small muted">
              A password manager shares “synced” passkeys between your devices. You can remove every passkey: sign-in
              links still work. Removing one does not end <a href="/settings/sessions">sessions</a> that it started.
            </p>
          </>
        )}
      </>,
    );
  });

  router.get(`${PATH}/new`, guards.requireRecentSignIn, async (ctx) => {
    if ((await listPasskeys(db, ctx.state.session.developerId)).length >= MAX_PASSKEYS) throw refusal('too_many');
    const party = relyingPartyOf(site.publicUrl());
    settingsPage(
      ctx,
      { title: 'Add a passkey', tab: 'passkeys' },
      party === undefined ? (
        <Impossible publicUrl={site.publicUrl()} />
      ) : (
        <>
          <p>
            Your browser will ask where to keep the passkey: on this device, in a password manager, on your phone or on
            a security key.
          </p>
          <PasskeyForm act="create" action={`${PATH}/new`} party={party}>
            <Field
              name="name"
              label="Name"
              hint="To tell your passkeys apart."
              value={printable(queryOf(ctx).get('name') ?? '', MAX_PASSKEY_NAME) || browserName(ctx.get('User-Agent'))}
              required
              maxLength={MAX_PASSKEY_NAME}
            />
            <FormActions label="Create passkey" cancel={PATH} />
          </PasskeyForm>
          <p data-no-passkeys hidden>
            This browser does not support passkeys. Update it, or use another one.
          </p>
          <noscript>
            <p>Passkeys need JavaScript, which is off in this browser.</p>
          </noscript>
        </>
      ),
    );
  });

  router.post(`${PATH}/new/options`, guards.requireRecentSignIn, async (ctx) => {
    const party = requireRelyingParty(ctx);
    const { id, developerId, projectName } = ctx.state.session;
    const existing = await listCredentials(db, developerId);
    const developer = { id: developerId, projectName };
    await answerOptions(ctx, db, id, (challenge) => creationOptions(party, challenge, developer, existing));
  });

  router.post(`${PATH}/new`, guards.requireRecentSignIn, async (ctx) => {
    const party = requireRelyingParty(ctx);
    const { id: sessionId, developerId } = ctx.state.session;
    // The authenticator has created the passkey, so a name that is not plain text is mended in place of being refused.
    const name = printable(parseName(ctx).values.name, MAX_PASSKEY_NAME) || browserName(ctx.get('User-Agent'));
    try {
      const { challenge, answer } = await takeAnswer(ctx, db, sessionId);
      const publicKey = await verifyCreation(party, challenge, answer);
      await addPasskey(db, { developerId, sessionId }, { ...publicKey, name });
      redirectAndConfirm(ctx, PATH, 'passkey_added');
    } catch (error) {
      throw error instanceof PasskeyRefused ? refusal(error.reason) : error;
    }
  });

  router.get(`${PATH}/remove`, guards.requireSession, async (ctx) => {
    const passkeys = await listPasskeys(db, ctx.state.session.developerId);
    const removed = passkeys.find(({ id }) => String(id) === queryOf(ctx).get('passkey'));
    settingsPage(
      ctx,
      { title: 'Remove a passkey', tab: 'passkeys', trail: { path: PATH, label: 'Passkeys' } },
      removed === undefined ? (
        <p>You have no such passkey. It may already have been removed.</p>
      ) : (
        <>
          <p>
            Once removed, “<UserText text={removed.name} />” can no longer sign in. It was created{' '}
            <RelativeTime at={removed.createdAt} /> and{' '}
            {removed.lastUsedAt === null
              ? 'has never been used'
              : ['last used ', <RelativeTime at={removed.lastUsedAt} />]}
            .
          </p>
          {passkeys.length === 1 && (
            <Notice tone="warning">
              This is your only passkey. Without it, you need another way to sign in, such as a link from <Operator />.
            </Notice>
          )}
          <Form action={`${PATH}/remove`} label="Remove passkey" tone="danger" cancel={PATH}>
            <input type="hidden" name="passkey" value={removed.id} />
          </Form>
        </>
      ),
    );
  });

  router.post(`${PATH}/remove`, guards.requireSession, async (ctx) => {
    const { developerId } = ctx.state.session;
    const isRemoved = await removePasskey(db, developerId, Number(parseRemoval(ctx).values.passkey));
    if (isRemoved) redirectAndConfirm(ctx, PATH, 'passkey_removed');
    else seeOther(ctx, PATH);
  });
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

/** Says why there are no passkeys, and what changes that. */
function Impossible({ publicUrl }: { readonly publicUrl: string }): VNode {
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
