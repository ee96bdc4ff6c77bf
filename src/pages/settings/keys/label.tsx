import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { findKeyPrefix, KEY_AS_LABEL } from '../../../keys/api-key.js';
import { setKeyLabel } from '../../../keys/edit-key.js';
import { MAX_LABEL } from '../../../keys/keys.js';
import type { SiteParts } from '../../parts/context.js';
import { act, type Done } from '../../parts/forms/act.js';
import { formParser, ErrorSummary, Field, Form, type Submission } from '../../parts/forms/form.js';
import { keyPath } from '../../parts/keys.js';
import { queryOf } from '../../parts/web/addresses.js';
import type { Guards, SettingsContext, SettingsRouter } from '../settings-page.js';
import { formPage, KEY_PATH, loadAcceptedKey } from './one-key.js';

/** The fields of a form that names a label, for its parser. */
export const LABEL_FIELDS = {
  label: {
    schema: { maxLength: MAX_LABEL, allOf: [{ format: 'plain-text' }, { format: 'not-a-key' }] },
    message: (label: string) =>
      findKeyPrefix(label) === undefined
        ? `Labels can have up to ${MAX_LABEL} characters and no line breaks or invisible control characters.`
        : KEY_AS_LABEL,
  },
} as const;

const parseLabelForm = formParser(LABEL_FIELDS);

/** Adds the form that changes the label of a key. */
export function addLabel(router: SettingsRouter, { db, changeCallers }: SiteParts, { notSuspended }: Guards): void {
  const path = `${KEY_PATH}/label`;

  const draw = async (ctx: SettingsContext, sent?: Submission<'label'>): Promise<void> => {
    const record = await loadAcceptedKey(db, ctx);
    const submission = sent ?? { values: { label: newLabelOf(queryOf(ctx)) ?? record.label ?? '' }, errors: {} };
    formPage(ctx, record, 'Change the label', <LabelForm prefix={record.prefix} submission={submission} />, sent);
  };

  router.get(path, notSuspended, (ctx) => draw(ctx));

  const save = async (ctx: SettingsContext, { values: { label } }: Submission<'label'>): Promise<Done> => {
    const { developerId } = ctx.state.session;
    const { prefix } = await loadAcceptedKey(db, ctx);
    const by = { kind: 'developer', developerId } as const;
    const set = () => setKeyLabel(db, prefix, label === '' ? null : label, by);
    const { before, after } = await changeCallers(set, nobody);
    return { to: keyPath(prefix), confirmation: before.label === after.label ? 'unchanged' : 'label_changed' };
  };

  router.post(path, notSuspended, act(parseLabelForm, save, draw));
}

/** @returns the label that the address of a form has, undefined without one */
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
