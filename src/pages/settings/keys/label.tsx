import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { findKeyPrefix, KEY_AS_LABEL } from '../../../keys/api-key.js';
import { requireAccepted, setKeyLabel } from '../../../keys/edit-key.js';
import { findPrefixByLabel, MAX_LABEL } from '../../../keys/keys.js';
import { Notice } from '../../parts/content/components.js';
import { UserText } from '../../parts/content/values.js';
import type { SiteParts } from '../../parts/context.js';
import { formParser, type Submission } from '../../parts/forms/form.js';
import { ErrorSummary, Field, Form } from '../../parts/forms/form-elements.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { keyPath, KeyReference } from '../../parts/keys/key-name.js';
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
  /** The label that the developer was warned about. */
  confirmed: { schema: {} },
} as const;

/** What a form names as a label. */
export type LabelSubmission = Submission<keyof typeof LABEL_FIELDS>;

/**
 * Finds another active key with the label of a form, unless the developer was warned about it.
 *
 * @param except - the key that gets the label, or the hash of the form that creates it, which may have done so already
 * @returns its prefix
 */
export async function findDuplicate(
  db: Knex,
  developerId: number,
  { label, confirmed }: LabelSubmission['values'],
  except: Parameters<typeof findPrefixByLabel>[3],
): Promise<string | undefined> {
  return label === '' || label === confirmed ? undefined : findPrefixByLabel(db, developerId, label, except);
}

const parseLabelForm = formParser(LABEL_FIELDS);

const TITLE = 'Change the label';

/** Adds the form that changes the label of a key. */
export function addLabel(router: SettingsRouter, { db, beginChange }: SiteParts, { notSuspended }: Guards): void {
  router.get(`${KEY_PATH}/label`, notSuspended, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireAccepted(record);
    const label = newLabelOf(queryOf(ctx)) ?? record.label ?? '';
    const submission = { values: { label, confirmed: '' }, errors: {} };
    formPage(ctx, record, TITLE, <LabelForm prefix={record.prefix} submission={submission} />);
  });

  router.post(`${KEY_PATH}/label`, notSuspended, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireAccepted(record);
    const { developerId, prefix } = record;
    const submission = parseLabelForm(ctx);
    const { label } = submission.values;
    const isWrong = submission.errors.label !== undefined;
    const duplicate = isWrong ? undefined : await findDuplicate(db, developerId, submission.values, record);
    if (isWrong || duplicate !== undefined) {
      const form = <LabelForm prefix={prefix} submission={submission} duplicate={duplicate} />;
      formPage(ctx, record, TITLE, form, isWrong ? 422 : 409);
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

function LabelForm({ prefix, submission, duplicate }: LabelFieldProps & { readonly prefix: string }): VNode {
  const { values, errors } = submission;
  return (
    <>
      <ErrorSummary errors={errors} />
      {duplicate !== undefined && <DuplicateLabel label={values.label} prefix={duplicate} />}
      <Form
        action={`${keyPath(prefix)}/label`}
        label={duplicate === undefined ? 'Save label' : 'Save anyway'}
        cancel={keyPath(prefix)}
      >
        <LabelField submission={submission} duplicate={duplicate} />
      </Form>
    </>
  );
}

interface LabelFieldProps {
  readonly submission: LabelSubmission;
  /** The prefix of the key that has the same label. */
  readonly duplicate?: string | undefined;
}

/** The field that names a label. A label that another key has is accepted once the developer was warned. */
export function LabelField({ submission: { values, errors }, duplicate }: LabelFieldProps): VNode {
  return (
    <>
      <Field
        name="label"
        label="Label"
        hint="Optional. A name that tells your keys apart, such as production or staging."
        // A key is not shown again.
        value={findKeyPrefix(values.label) === undefined ? values.label : ''}
        error={errors.label}
        maxLength={MAX_LABEL}
      />
      {duplicate !== undefined && <input type="hidden" name="confirmed" value={values.label} />}
    </>
  );
}

/** The warning about a label that another key has. */
export function DuplicateLabel({ label, prefix }: { readonly label: string; readonly prefix: string }): VNode {
  return (
    <Notice tone="warning" role="alert">
      <strong>
        You already have an active key with the label “
        <UserText text={label} />
        ”:
      </strong>{' '}
      <KeyReference prefix={prefix} label={null} />. Nothing was changed. Choose another label to tell the keys apart,
      or use this one anyway.
    </Notice>
  );
}
