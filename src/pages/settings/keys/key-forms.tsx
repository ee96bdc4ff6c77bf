import type { VNode } from 'preact';
import type { Expiry } from '../../../keys/expiry.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import type { PageContext } from '../../parts/context.js';
import { formParser, incompleteForm } from '../../parts/forms/form.js';
import { ErrorSummary, FormActions } from '../../parts/forms/form-field.js';
import { FormOnce, hashOfForm, ONCE_FIELD } from '../../parts/forms/form-once.js';
import { formatTime, RelativeTime, Time } from '../../parts/content/values.js';
import { EXPIRY_FIELDS, ExpiryFields, KEEP, readExpiry, type ExpirySubmission } from './expiry-fields.js';
import { keyPath, KeyReference } from '../../parts/keys/key-name.js';
import { LastUse } from '../../parts/keys/revoke-form.js';
import { DuplicateLabel, LABEL_FIELDS, LabelField, type LabelSubmission } from './label-field.js';

/** How long a rolled key stays active, by the value of its option. */
const OVERLAPS = [
  { value: 'now', label: 'Not at all: end it now', seconds: 0 },
  { value: '1h', label: '1 hour', seconds: 3_600 },
  { value: '24h', label: '24 hours', seconds: 86_400 },
  { value: '7d', label: '7 days', seconds: 604_800 },
] as const;

const PROPOSED_OVERLAP = '24h';

const parseRoll = formParser({
  ...ONCE_FIELD,
  overlap: { schema: { enum: OVERLAPS.map(({ value }) => value) } },
});

/** Reads the form that changes a label. @throws PageError 400 for a form that no browser sends */
export const readLabel = formParser(LABEL_FIELDS);

const { lifetime, date } = EXPIRY_FIELDS;

const parseExpiry = formParser({ lifetime: { schema: { enum: [KEEP, ...lifetime.schema.enum] } }, date });

/** Reads the form that rolls a key. @throws PageError 400 for a form that no browser sends */
export function readRoll(ctx: PageContext): { overlapSeconds: number; formHash: Buffer } {
  const { form, overlap } = parseRoll(ctx).values;
  const option = OVERLAPS.find(({ value }) => value === overlap);
  return { overlapSeconds: option?.seconds ?? incompleteForm(), formHash: hashOfForm(form) };
}

/** What a form makes of an expiry. */
type ExpiryChange =
  | { readonly kind: 'keep' }
  /** Null for never. */
  | { readonly kind: 'set'; readonly expires: Expiry | null }
  /** The date must be corrected. */
  | { readonly kind: 'wrong'; readonly submission: ExpirySubmission };

/** Reads the form that changes an expiry. @throws PageError 400 for a form that no browser sends */
export function readNewExpiry(ctx: PageContext): ExpiryChange {
  const { values } = parseExpiry(ctx);
  if (values.lifetime === KEEP) return { kind: 'keep' };
  const expiry = readExpiry(values);
  return 'error' in expiry
    ? { kind: 'wrong', submission: { values, errors: { date: expiry.error } } }
    : { kind: 'set', expires: expiry.expires };
}

interface KeyFormProps {
  readonly record: KeyRecord;
}

interface RollFormProps extends KeyFormProps {
  /** The option that is chosen, if there is such an option. */
  readonly overlap: string | null;
}

/** The form that rolls a key. It names when the new key expires, and the overlaps that the old key does not live to see. */
export function RollForm({ record, overlap }: RollFormProps): VNode {
  const { prefix, createdAt, expiresAt } = record;
  const chosen = OVERLAPS.some(({ value }) => value === overlap) ? overlap : PROPOSED_OVERLAP;
  return (
    <>
      <p>
        Rolling replaces <KeyReference {...record} /> with a new key that has the same label and plan.{' '}
        {expiresAt === null ? (
          'Like the old key, the new key does not expire.'
        ) : (
          <>
            The new key gets the full lifetime of the old one: it expires on{' '}
            <Time at={new Date(Date.now() + Date.parse(expiresAt) - Date.parse(createdAt)).toISOString()} />.
          </>
        )}{' '}
        <LastUse record={record} />
      </p>
      <FormOnce action={`${keyPath(prefix)}/roll`}>
        <fieldset class="field">
          <legend>Keep the old key for</legend>
          <div>
            {OVERLAPS.map(({ value, label, seconds }) => (
              <label key={value} class="checkbox">
                <input type="radio" name="overlap" value={value} checked={value === chosen} /> {label}
                {expiresAt !== null &&
                  Date.parse(expiresAt) < Date.now() + seconds * 1_000 &&
                  ` (the key expires sooner, on ${formatTime(expiresAt)})`}
              </label>
            ))}
          </div>
        </fieldset>
        <FormActions label="Roll key" cancel={keyPath(prefix)} />
      </FormOnce>
    </>
  );
}

interface LabelFormProps extends KeyFormProps {
  readonly submission: LabelSubmission;
  /** The prefix of another key that has the same label. */
  readonly duplicate?: string | undefined;
}

/** The form that changes the label of a key. */
export function LabelForm({ record: { prefix }, submission, duplicate }: LabelFormProps): VNode {
  const { values, errors } = submission;
  return (
    <>
      <ErrorSummary errors={[{ id: 'label', message: errors.label }]} />
      {duplicate !== undefined && <DuplicateLabel label={values.label} prefix={duplicate} />}
      <form class="form" method="post" action={`${keyPath(prefix)}/label`}>
        <LabelField submission={submission} duplicate={duplicate} />
        <FormActions label={duplicate === undefined ? 'Save label' : 'Save anyway'} cancel={keyPath(prefix)} />
      </form>
    </>
  );
}

interface ExpiryFormProps extends KeyFormProps {
  readonly submission: ExpirySubmission;
}

/** The form that changes when a key expires. */
export function ExpiryForm({ record, submission }: ExpiryFormProps): VNode {
  const { prefix, expiresAt, successor } = record;
  return (
    <>
      <ErrorSummary errors={[{ id: 'date', message: submission.errors.date }]} />
      <p>
        <KeyReference {...record} />{' '}
        {expiresAt === null ? (
          'does not expire.'
        ) : (
          <>
            expires <RelativeTime at={expiresAt} /> (<Time at={expiresAt} />
            ).
          </>
        )}{' '}
        To end this key now, <a href={`${keyPath(prefix)}/revoke`}>revoke it</a>.
      </p>
      <form class="form" method="post" action={`${keyPath(prefix)}/expiry`} noValidate>
        <ExpiryFields submission={submission} current={expiresAt} canBeNever={successor === null} />
        <FormActions label="Save expiry" cancel={keyPath(prefix)} />
      </form>
    </>
  );
}
