import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { findKeyPrefix, KEY_AS_LABEL } from '../../../keys/api-key.js';
import { findPrefixByLabel, MAX_LABEL } from '../../../keys/keys.js';
import { Notice } from '../../parts/content/components.js';
import { Field } from '../../parts/forms/form-field.js';
import type { Submission } from '../../parts/forms/form.js';
import { UserText } from '../../parts/content/values.js';
import { KeyReference } from '../../parts/keys/key-name.js';

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

interface LabelFieldProps {
  readonly submission: LabelSubmission;
  /** The prefix of the key that has the same label. */
  readonly duplicate: string | undefined;
}

/** The field that names a label. A label that another key has is accepted once the developer was warned. */
export function LabelField({ submission: { values, errors }, duplicate }: LabelFieldProps): VNode {
  return (
    <>
      <Field
        id="label"
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
