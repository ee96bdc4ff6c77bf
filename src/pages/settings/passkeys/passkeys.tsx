import type { VNode } from 'preact';
import { listPasskeys, MAX_PASSKEYS, removePasskey, type Passkey } from '../../../accounts/passkeys.js';
import { relyingPartyOf } from '../../../accounts/relying-party.js';
import type { Session } from '../../../accounts/sessions.js';
import { Badge, Button, isolated, Notice, Operator, RelativeTime, UserText } from '../../parts/content/components.js';
import { Table } from '../../parts/content/table.js';
import type { SiteParts } from '../../parts/context.js';
import { act } from '../../parts/forms/act.js';
import { Form, formParser } from '../../parts/forms/form.js';
import { queryOf } from '../../parts/web/addresses.js';
import { type Guards, type SettingsContext, type SettingsRouter, settingsPage } from '../settings-page.js';
import { addNewPasskey, Impossible, PASSKEYS } from './add-passkey.js';

type Passkeys = Awaited<ReturnType<typeof loadPasskeys>>;

/** The passkeys of a developer, and whether another one can be added. */
async function loadPasskeys({ db, site }: SiteParts, session: Session) {
  const publicUrl = site.publicUrl();
  return {
    passkeys: await listPasskeys(db, session.developerId),
    publicUrl,
    isPossible: relyingPartyOf(publicUrl) !== undefined,
    isSuspended: session.suspendedAt !== null,
  };
}

/** An id fits the type of its column. */
const parseRemoval = formParser({ passkey: { schema: { pattern: '^[0-9]{1,9}$' } } });

/**
 * Adds the passkeys of a developer: their list, and the forms that add and remove one. Removing one only takes access
 * away, so any session may do it.
 */
export function addPasskeys(router: SettingsRouter, parts: SiteParts, guards: Guards): void {
  const { db } = parts;
  const { requireSession } = guards;
  addNewPasskey(router, parts, guards);

  router.get(PASSKEYS, requireSession, async (ctx) => {
    const passkeys = await loadPasskeys(parts, ctx.state.session);
    settingsPage(ctx, { title: 'Passkeys', tab: 'passkeys' }, <PasskeysPage {...passkeys} />);
  });

  router.get(`${PASSKEYS}/remove`, requireSession, async (ctx) => {
    const passkeys = await listPasskeys(db, ctx.state.session.developerId);
    const removed = passkeys.find(({ id }) => String(id) === queryOf(ctx).get('passkey'));
    settingsPage(
      ctx,
      { title: 'Remove a passkey', tab: 'passkeys', trail: { path: PASSKEYS, label: 'Passkeys' } },
      <RemovalPage removed={removed} isOnly={passkeys.length === 1} />,
    );
  });

  router.post(
    `${PASSKEYS}/remove`,
    requireSession,
    act(parseRemoval, async (ctx: SettingsContext, { values }) => {
      const isRemoved = await removePasskey(db, ctx.state.session.developerId, Number(values.passkey));
      return isRemoved ? { to: PASSKEYS, confirmation: 'passkey_removed' } : { to: PASSKEYS };
    }),
  );
}

function PasskeysPage({ passkeys, publicUrl, isPossible, isSuspended }: Passkeys): VNode {
  return (
    <>
      <p>
        A passkey lets you sign in with your fingerprint, face or screen lock, or with a security key, instead of a
        sign-in link.
      </p>
      {!isPossible && <Impossible publicUrl={publicUrl} />}
      {isPossible && !isSuspended && passkeys.length < MAX_PASSKEYS && (
        <p>
          <Button href={`${PASSKEYS}/new`} tone="primary" label="Add a passkey" />
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
            columns={['Name', 'Created', 'Last used', { label: 'Actions', kind: 'actions' }]}
            rows={passkeys.map(({ id, name, isSynced, createdAt, lastUsedAt }) => [
              <>
                <UserText text={name} /> {isSynced && <Badge tone="info">Synced</Badge>}
              </>,
              <RelativeTime at={createdAt} />,
              <RelativeTime at={lastUsedAt} />,
              <a
                class="button button-quiet danger"
                href={`${PASSKEYS}/remove?passkey=${id}`}
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
    </>
  );
}

interface RemovalProps {
  /** Undefined for a passkey that the developer does not have. */
  readonly removed: Passkey | undefined;
  /** Whether the developer has no other. */
  readonly isOnly: boolean;
}

function RemovalPage({ removed, isOnly }: RemovalProps): VNode {
  if (removed === undefined) return <p>You have no such passkey. It may already have been removed.</p>;
  const { id, name, createdAt, lastUsedAt } = removed;
  return (
    <>
      <p>
        Once removed, “<UserText text={name} />” can no longer sign in. It was created <RelativeTime at={createdAt} />{' '}
        and {lastUsedAt === null ? 'has never been used' : ['last used ', <RelativeTime at={lastUsedAt} />]}.
      </p>
      {isOnly && (
        <Notice tone="warning">
          This is your only passkey. Without it, you need another way to sign in, such as a link from <Operator />.
        </Notice>
      )}
      <Form action={`${PASSKEYS}/remove`} label="Remove passkey" tone="danger" cancel={PASSKEYS}>
        <input type="hidden" name="passkey" value={id} />
      </Form>
    </>
  );
}
