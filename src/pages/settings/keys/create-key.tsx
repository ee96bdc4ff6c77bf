import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { readKeySummary } from '../../../keys/key-summary.js';
import { createKey, type CreatedKey } from '../../../keys/keys.js';
import { Button, Notice, Time, UserText } from '../../parts/content/components.js';
import { PlanName } from '../../parts/content/plan-name.js';
import type { PageContext, SiteParts } from '../../parts/context.js';
import { act } from '../../parts/forms/act.js';
import { formParser, hashOfForm, ONCE_FIELD, ErrorSummary, Form, type Submission } from '../../parts/forms/form.js';
import { keyPath, KeyReference } from '../../parts/keys.js';
import { queryOf } from '../../parts/web/addresses.js';
import { FirstCall } from '../first-call.js';
import { settingsPage, type Guards, type SettingsContext, type SettingsRouter } from '../settings-page.js';
import { checkDate, EXPIRY_FIELDS, ExpiryFields, expiryOf, expiryValues } from './expiry.js';
import { LABEL_FIELDS, LabelField, newLabelOf } from './label.js';
import { KEYS_PATH, NEW_KEY, NoRoom } from './one-key.js';

const PAGE = { title: 'Create a key', tab: 'keys' } as const;

const parseFields = formParser({ ...ONCE_FIELD, ...LABEL_FIELDS, ...EXPIRY_FIELDS });

type NewKey = ReturnType<typeof parseNewKey>;

function parseNewKey(ctx: PageContext) {
  const form = checkDate(parseFields(ctx));
  return { ...form, formHash: hashOfForm(form.values.form) };
}

/** Adds the form that creates a key. Its answer shows the key. */
export function addCreateKey(router: SettingsRouter, { db, changeCallers }: SiteParts, guards: Guards): void {
  router.get(NEW_KEY, guards.requireRecentSignIn, async (ctx) => {
    const { active } = await readKeySummary(db, ctx.state.session.developerId);
    const query = queryOf(ctx);
    const values = { label: newLabelOf(query) ?? '', ...expiryValues(query) };
    const form = <NewKeyForm submission={{ values, errors: {} }} />;
    settingsPage(ctx, PAGE, active < MAX_ACTIVE_KEYS ? form : <NoRoom />);
  });

  const create = async (ctx: SettingsContext, { values, formHash }: NewKey): Promise<undefined> => {
    const { developerId } = ctx.state.session;
    const label = values.label === '' ? null : values.label;
    const details = { label, expires: expiryOf(values) ?? undefined, developerId };
    const by = { kind: 'developer', developerId, formHash } as const;
    showNewKey(ctx, 'Key created', { created: await changeCallers(() => createKey(db, details, by), nobody) });
  };

  const drawAgain = (ctx: SettingsContext, form: NewKey): void =>
    settingsPage(ctx, { ...PAGE, status: 422 }, <NewKeyForm submission={form} />);

  router.post(NEW_KEY, guards.requireRecentSignIn, act(parseNewKey, create, drawAgain));
}

function NewKeyForm({ submission }: { readonly submission: Submission<'label' | 'lifetime' | 'date'> }): VNode {
  return (
    <>
      <ErrorSummary errors={submission.errors} />
      <Form action={NEW_KEY} label="Create key" cancel={KEYS_PATH} isOnce>
        <LabelField submission={submission} />
        <ExpiryFields submission={submission} />
      </Form>
    </>
  );
}

interface NewKeyProps {
  readonly created: CreatedKey;
  /** The key that this one replaces. */
  readonly replaced?: KeyRecord;
}

/** Answers with a new key, shown here once and never again. */
export function showNewKey(ctx: SettingsContext, title: string, props: NewKeyProps): void {
  settingsPage(ctx, { title, tab: 'keys', address: keyPath(props.created.prefix) }, <NewKeyPage {...props} />);
}

function NewKeyPage({ created, replaced }: NewKeyProps): VNode {
  const { key, prefix, label, planId, expiresAt } = created;
  return (
    <>
      <Notice tone="warning" role="status">
        <strong>Copy this key now.</strong> You will not be able to see it again, because we store only a hash. Keep it
        out of client-side code and repositories.
      </Notice>
      <div data-secret>
        <figure class="new-key secret">
          <figcaption>Your key{label !== null && [' (', <UserText text={label} />, ')']}</figcaption>
          <code>{key}</code>
          <div class="cluster">
            <button type="button" class="button button-primary scripted" data-copy autofocus>
              Copy key
            </button>
            <Button href={keyPath(prefix)} label="Done, I’ve saved it" />
          </div>
        </figure>
      </div>
      <p>
        The key is on the <PlanName id={planId} /> plan{' '}
        {expiresAt === null ? 'and does not expire.' : ['and expires on ', <Time at={expiresAt} />, '.']}{' '}
        {replaced !== undefined && <Replaced record={replaced} />}
      </p>
      <FirstCall keyPrefix={prefix} />
    </>
  );
}

function Replaced({ record }: { readonly record: KeyRecord }): VNode {
  const { expiresAt, isExpired } = record;
  return (
    <>
      It replaces <KeyReference {...record} />, which{' '}
      {!isExpired && expiresAt !== null ? ['stays active until ', <Time at={expiresAt} />, '.'] : 'no longer works.'}
    </>
  );
}
