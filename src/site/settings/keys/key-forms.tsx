import type { ComponentChildren, VNode } from 'preact';
import { generateToken, hashToken } from '../../../accounts/tokens.js';
import { parseExpiryTime, type Expiry } from '../../../keys/expiry.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import type { PageContext } from '../../context.js';
import { formParser, incompleteForm, type Submission } from '../../delivery/form.js';
import { Notice } from '../../layout/components.js';
import { Field, FormActions } from '../../layout/form-field.js';
import { Time, UserText } from '../../layout/values.js';

/** When a new key expires, by the value of its option: after a number of days, or on a date. */
const LIFETIMES = [
  { value: 'none', label: 'Never', days: undefined },
  { value: '30', label: 'In 30 days', days: 30 },
  { value: '90', label: 'In 90 days', days: 90 },
  { value: '365', label: 'In 365 days', days: 365 },
  { value: 'date', label: 'On a date', days: undefined },
] as const;

/** How long a rolled key stays active, by the value of its option. */
const OVERLAPS = [
  { value: 'now', label: 'Expire immediately', seconds: 0 },
  { value: '1h', label: '1 hour', seconds: 3_600 },
  { value: '24h', label: '24 hours', seconds: 86_400 },
  { value: '7d', label: '7 days', seconds: 604_800 },
] as const;

/** The longest label, in characters as PostgreSQL counts them. */
const MAX_LABEL = 200;

const DAY_SECONDS = 86_400;

const KEYS_PATH = '/settings/keys';

const parseNewKey = formParser({
  form: { schema: {} },
  label: {
    schema: { maxLength: MAX_LABEL, format: 'plain-text' },
    message: `Use at most ${MAX_LABEL} characters, without line breaks or other control characters.`,
  },
  lifetime: { schema: { enum: LIFETIMES.map(({ value }) => value) } },
  date: { schema: {} },
});

const parseRoll = formParser({
  form: { schema: {} },
  overlap: { schema: { enum: OVERLAPS.map(({ value }) => value) } },
});

type NewKeySubmission = Submission<'label' | 'lifetime' | 'date'>;

/** What a form for a new key requests; undefined details when a value must be corrected. */
interface NewKeyRequest {
  readonly submission: NewKeySubmission;
  readonly details: { label: string | null; expires: Expiry | undefined; formHash: Buffer } | undefined;
}

/** Reads the form for a new key. @throws PageError 400 for a form that no browser sends */
export function readNewKey(ctx: PageContext): NewKeyRequest {
  const { values, errors } = parseNewKey(ctx);
  const { form, label, lifetime, date } = values;
  const option = LIFETIMES.find(({ value }) => value === lifetime);
  const onDate = lifetime === 'date' ? parseExpiryTime(date) : undefined;
  const dateError =
    lifetime !== 'date'
      ? date !== '' && `You chose "${option?.label}" but also entered a date. Choose "On a date", or clear the date.`
      : onDate === undefined && 'Choose a date in the future. The key expires at 00:00 UTC on that date.';
  const submission = { values, errors: { ...errors, ...(dateError !== false && { date: dateError }) } };
  if (Object.keys(submission.errors).length > 0) return { submission, details: undefined };
  const expires =
    option?.days === undefined ? onDate : ({ kind: 'after', seconds: option.days * DAY_SECONDS } as const);
  return { submission, details: { label: label === '' ? null : label, expires, formHash: hashOf(form) } };
}

/** Reads the form that rolls a key. @throws PageError 400 for a form that no browser sends */
export function readRoll(ctx: PageContext): { overlapSeconds: number; formHash: Buffer } {
  const { form, overlap } = parseRoll(ctx).values;
  const option = OVERLAPS.find(({ value }) => value === overlap);
  return { overlapSeconds: option?.seconds ?? incompleteForm(), formHash: hashOf(form) };
}

function hashOf(token: string): Buffer {
  return hashToken(token) ?? incompleteForm();
}

const EMPTY: NewKeySubmission = { values: { label: '', lifetime: 'none', date: '' }, errors: {} };

/** The form that creates a key. @param submission - what was sent, when the form is shown again */
export function NewKeyForm({ submission: { values, errors } = EMPTY }: { readonly submission?: NewKeySubmission }) {
  return (
    <FormOnce>
      <Field
        id="label"
        name="label"
        label="Label"
        hint="Optional. A name that tells your keys apart, such as production or staging."
        value={values.label}
        error={errors.label}
        maxLength={MAX_LABEL}
      />
      <Field
        id="lifetime"
        name="lifetime"
        label="Expires"
        hint="An expiry date limits the damage if the key leaks."
        value={values.lifetime}
        options={LIFETIMES}
      />
      <Field
        id="date"
        name="date"
        type="date"
        label="Expiry date"
        hint="Choose “On a date” to use this. The key expires at 00:00 UTC on that date."
        value={values.date}
        error={errors.date}
      />
      <FormActions label="Create key" cancel={KEYS_PATH} />
    </FormOnce>
  );
}

/** The form that rolls a key. */
export function RollForm({ record }: { readonly record: KeyRecord }): VNode {
  const { prefix, expiresAt } = record;
  return (
    <>
      <p>
        Rolling replaces <KeyName record={record} /> with a new key that has the same label and plan.{' '}
        {expiresAt === null ? 'Like the old key, the new key does not expire.' : 'The new key gets the same lifetime.'}{' '}
        <LastUse record={record} />
      </p>
      <FormOnce>
        <fieldset class="field">
          <legend>How long should {prefix} keep working?</legend>
          <div>
            {OVERLAPS.map(({ value, label }) => (
              <label key={value} class="checkbox">
                <input type="radio" name="overlap" value={value} checked={value === '24h'} /> {label}
              </label>
            ))}
          </div>
        </fieldset>
        <FormActions label="Roll key" cancel={KEYS_PATH} />
      </FormOnce>
    </>
  );
}

interface RevokeFormProps {
  readonly record: KeyRecord;
  /** The rolled key that this one replaces, while it is still active. */
  readonly replaced: KeyRecord | undefined;
}

/** Asks for confirmation before a key is revoked. */
export function RevokeForm({ record, replaced }: RevokeFormProps): VNode {
  return (
    <>
      <p>
        Revoking <KeyName record={record} /> cannot be undone. After that, every request that uses it fails.{' '}
        <LastUse record={record} />
      </p>
      {replaced !== undefined && (
        <Notice tone="warning">
          This key replaces <code>{replaced.prefix}</code>, which stays active until{' '}
          {replaced.expiresAt === null ? 'you revoke it' : <Time at={replaced.expiresAt} />}. If you revoke this key,{' '}
          <code>{replaced.prefix}</code> will have no replacement.
        </Notice>
      )}
      <form class="form" method="post">
        <FormActions label={`Revoke ${record.prefix}`} tone="danger" cancel={KEYS_PATH} />
      </form>
    </>
  );
}

/** A form that creates one key, however often it is submitted to the path that shows it. */
function FormOnce({ children }: { readonly children: ComponentChildren }): VNode {
  return (
    <form class="form" method="post" data-once>
      <input type="hidden" name="form" value={generateToken().token} autocomplete="off" />
      {children}
    </form>
  );
}

/** The prefix of a key, and its label. */
function KeyName({ record: { prefix, label } }: { readonly record: KeyRecord }): VNode {
  return (
    <>
      <code>{prefix}</code>
      {label !== null && (
        <>
          {' '}
          (<UserText text={label} />)
        </>
      )}
    </>
  );
}

function LastUse({ record: { prefix, lastUsedAt } }: { readonly record: KeyRecord }): VNode {
  return lastUsedAt === null ? (
    <>
      <code>{prefix}</code> has never been used.
    </>
  ) : (
    <>
      <code>{prefix}</code> was last used on <Time at={lastUsedAt} />.
    </>
  );
}
