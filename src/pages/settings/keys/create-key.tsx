import type { VNode } from 'preact';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import { readKeySummary } from '../../../keys/key-summary.js';
import { createKey } from '../../../keys/keys.js';
import type { SiteParts } from '../../parts/context.js';
import { formParser, hashOfForm, ONCE_FIELD, type Submission } from '../../parts/forms/form.js';
import { ErrorSummary, Form } from '../../parts/forms/form-elements.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { queryOf } from '../../parts/web/page-address.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { settingsPage } from '../settings-page.js';
import { EXPIRY_FIELDS, ExpiryFields, expiryValues, expiryOf } from './expiry.js';
import { NoRoom } from './key-list.js';
import { LABEL_FIELDS, LabelField, newLabelOf } from './label.js';
import { KEYS_PATH } from './one-key.js';
import { BackToKeys } from './refusals.js';
import { ShownKey } from './shown-key.js';

const PATH = `${KEYS_PATH}/new`;

const PAGE = { title: 'Create a key', tab: 'keys' } as const;

const parseNewKey = formParser({ ...ONCE_FIELD, ...LABEL_FIELDS, ...EXPIRY_FIELDS });

/** Adds the form that creates a key. Its answer shows the key. */
export function addCreateKey(router: SettingsRouter, { db, beginChange }: SiteParts, guards: Guards): void {
  router.get(PATH, guards.requireRecentSignIn, async (ctx) => {
    const { active } = await readKeySummary(db, ctx.state.session.developerId);
    const query = queryOf(ctx);
    const values = { label: newLabelOf(query) ?? '', ...expiryValues(query) };
    const body =
      active < MAX_ACTIVE_KEYS ? (
        <NewKeyForm submission={{ values, errors: {} }} />
      ) : (
        <>
          <NoRoom />
          <BackToKeys />
        </>
      );
    settingsPage(ctx, PAGE, body);
  });

  router.post(PATH, guards.requireRecentSignIn, async (ctx) => {
    const { developerId } = ctx.state.session;
    const { values, errors: wrong } = parseNewKey(ctx);
    const formHash = hashOfForm(values.form);
    const expiry = expiryOf(values);
    const errors = 'error' in expiry ? { ...wrong, date: expiry.error } : wrong;
    if ('error' in expiry || Object.keys(errors).length > 0) {
      settingsPage(ctx, { ...PAGE, status: 422 }, <NewKeyForm submission={{ values, errors }} />);
      return;
    }
    const { label } = values;
    const details = { label: label === '' ? null : label, expires: expiry.expires ?? undefined, developerId };
    const endChange = beginChange();
    const created = await createKey(db, details, { kind: 'developer', developerId, formHash });
    await endChange(false);
    const body = <ShownKey created={created} />;
    settingsPage(ctx, { title: 'Key created', tab: 'keys', address: keyPath(created.prefix) }, body);
  });
}

function NewKeyForm({ submission }: { readonly submission: Submission<'label' | 'lifetime' | 'date'> }): VNode {
  return (
    <>
      <ErrorSummary errors={submission.errors} />
      <Form action={PATH} label="Create key" cancel={KEYS_PATH} isOnce>
        <LabelField submission={submission} />
        <ExpiryFields submission={submission} />
      </Form>
    </>
  );
}
