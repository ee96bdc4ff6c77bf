import type { VNode } from 'preact';
import { findKeyPrefix, KEY_AS_LABEL } from '../../../keys/api-key.js';
import { requireAccepted, setKeyLabel } from '../../../keys/edit-key.js';
import { MAX_LABEL } from '../../../keys/keys.js';
import type { SiteParts } from '../../parts/context.js';
import { formParser, type Submission } from '../../parts/forms/form.js';
import { ErrorSummary, Field, Form } from '../../parts/forms/form-elements.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { queryOf } from '../../parts/web/page-address.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { formPage, KEY_PATH, recordOf } from './one-key.js';

/** The fields of a form that names a label, for its parser. */
export const LABEL_FIELDS = {
  label: {
    schema: { maxLength: MAX_LABEL, allOf: [{ format: 'plain-text' }, { format: 'not-a-key' }] },
    message: (label: string) =>
      findKeyPrefix(label) === undefined
        ? `Use at most ${MAX_LABEL} characters for the label, without line breaks or other control characters.`
        : KEY_AS_LABEL,
  },
} as const;

const parseLabelForm = formParser(LABEL_FIELDS);

const TITLE = 'Change the label';

/** Adds the form that changes the label of a key. */
export function addLabel(router: SettingsRouter, { db, beginChange }: SiteParts, { notSuspended }: Guards): void {
  router.get(`${KEY_PATH}/label`, notSuspended, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireAccepted(record);
    const label = newLabelOf(queryOf(ctx)) ?? record.label ?? '';
    const submission = { values: { label }, errors: {} };
    formPage(ctx, record, TITLE, <LabelForm prefix={record.prefix} submission={submission} />);
  });

  router.post(`${KEY_PATH}/label`, notSuspended, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireAccepted(record);
    const { developerId, prefix } = record;
    const submission = parseLabelForm(ctx);
    const { label } = submission.values;
    if (submission.errors.label !== undefined) {
      formPage(ctx, record, TITLE, <LabelForm prefix={prefix} submission={submission} />, 422);
      return;
    }
    const endChange = beginChange();
    const by = { kind: 'developer', developerId } as const;
    const { before, after } = await setKeyLabel(db, prefix, label === '' ? null : label, by);
    await endChange(false);
    redirectAndConfirm(ctx, keyPath(prefix), before.label === after.label ? 'unchanged' : 'label_changed');
  });
}

/** @returns the label that the address of a form has, undefined for none */
export function newLabelOf(query: URLSearchParams): string | undefined {
  return query.get('label')?.slice(0, MAX_LABEL);
}

interface LabelFieldProps {
  readonly submission: Submission<'label'>;
}

function LabelForm({ prefix, submission }: LabelFieldProps & { readonly prefix: string }): VNode {
  return (
    <>
      <ErrorSummary errors={submission.errors} />
      <Form action={`${keyPath(prefix)}/label`} label="Save label" cancel={keyPath(prefix)}>
        <LabelField submission={submission} />
      </Form>
    </>
  );
}

/** The field that names a label. */
export function LabelField({ submission: { values, errors } }: LabelFieldProps): VNode {
  return (
    <Field
      name="label"
      label="Label"
      hint="Optional. A name that tells your keys apart, such as production or staging."
      // A key is not shown again.
      value={findKeyPrefix(values.label) === undefined ? values.label : ''}
      error={errors.label}
      maxLength={MAX_LABEL}
    />
  );
}
