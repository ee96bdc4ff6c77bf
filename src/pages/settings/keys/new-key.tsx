import type { VNode } from 'preact';
import type { Expiry } from '../../../keys/expiry.js';
import { MAX_LABEL } from '../../../keys/keys.js';
import type { PageContext } from '../../parts/context.js';
import { formParser, type Submission } from '../../parts/forms/form.js';
import { ErrorSummary, FormActions } from '../../parts/forms/form-field.js';
import { FormOnce, hashOfForm, ONCE_FIELD } from '../../parts/forms/form-once.js';
import { EXPIRY_FIELDS, ExpiryFields, expiryValues, readExpiry } from './expiry-fields.js';
import { KEYS_PATH } from './key-list.js';
import { DuplicateLabel, LABEL_FIELDS, LabelField } from './label-field.js';

/** Where keys are created. */
export const NEW_KEY_PATH = `${KEYS_PATH}/new`;

const parseNewKey = formParser({ ...ONCE_FIELD, ...LABEL_FIELDS, ...EXPIRY_FIELDS });

type NewKeySubmission = Submission<'label' | 'confirmed' | 'lifetime' | 'date'>;

/** What a form for a new key requests; undefined details when a value must be corrected. */
interface NewKeyRequest {
  readonly submission: NewKeySubmission;
  readonly details: { label: string | null; expires: Expiry | undefined; formHash: Buffer } | undefined;
}

/** Reads the form for a new key. @throws PageError 400 for a form that no browser sends */
export function readNewKey(ctx: PageContext): NewKeyRequest {
  const { values, errors: wrong } = parseNewKey(ctx);
  const formHash = hashOfForm(values.form);
  const expiry = readExpiry(values);
  const errors = 'error' in expiry ? { ...wrong, date: expiry.error } : wrong;
  const submission = { values, errors };
  if ('error' in expiry || Object.keys(errors).length > 0) return { submission, details: undefined };
  const { label } = values;
  return {
    submission,
    details: { label: label === '' ? null : label, expires: expiry.expires ?? undefined, formHash },
  };
}

/** @returns the values that the form begins with: those of its address, or proposals */
export function newKeyValues(query: URLSearchParams): NewKeySubmission {
  const label = query.get('label')?.slice(0, MAX_LABEL) ?? '';
  return { values: { label, confirmed: '', ...expiryValues(query) }, errors: {} };
}

interface NewKeyFormProps {
  readonly submission: NewKeySubmission;
  /** The prefix of the key that has the same label. */
  readonly duplicate?: string | undefined;
}

/** The form that creates a key. */
export function NewKeyForm({ submission, duplicate }: NewKeyFormProps): VNode {
  const { values, errors } = submission;
  return (
    <>
      <ErrorSummary
        errors={[
          { id: 'label', message: errors.label },
          { id: 'date', message: errors.date },
        ]}
      />
      {duplicate !== undefined && <DuplicateLabel label={values.label} prefix={duplicate} />}
      <FormOnce action={NEW_KEY_PATH}>
        <LabelField submission={submission} duplicate={duplicate} />
        <ExpiryFields submission={submission} />
        <FormActions label={duplicate === undefined ? 'Create key' : 'Create anyway'} cancel={KEYS_PATH} />
      </FormOnce>
    </>
  );
}
