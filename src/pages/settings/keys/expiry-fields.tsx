import type { VNode } from 'preact';
import { parseExpiryTime, type Expiry } from '../../../keys/expiry.js';
import type { Submission } from '../../parts/forms/form.js';
import { Field } from '../../parts/forms/form-field.js';
import { formatTime } from '../../parts/content/values.js';

/** When a key expires, by the value of its option: after a number of days, on a date, or never. */
const LIFETIMES = [
  { value: '30', days: 30 },
  { value: '90', days: 90 },
  { value: '365', days: 365 },
  { value: 'date', label: 'On a date' },
  { value: 'none', label: 'Never' },
] as const;

/** The value of the option that keeps the present expiry of a key. */
export const KEEP = 'keep';

const DAY_SECONDS = 86_400;

/** The fields of a form that names an expiry, for its parser. */
export const EXPIRY_FIELDS = {
  lifetime: { schema: { enum: LIFETIMES.map(({ value }) => value) } },
  date: { schema: {} },
} as const;

/** What a form names as an expiry. */
export type ExpirySubmission = Submission<keyof typeof EXPIRY_FIELDS>;

/** Proposed unless the form says otherwise: long enough for work, and a key that nobody misses does not live on. */
const PROPOSED = '90';

/**
 * Reads the expiry of a form. A date beside another choice is ignored: most browsers hide it.
 *
 * @returns the expiry, null for never; or what is wrong with its date
 */
export function readExpiry({
  lifetime,
  date,
}: ExpirySubmission['values']): { readonly expires: Expiry | null } | { readonly error: string } {
  if (lifetime !== 'date') {
    return { expires: lifetime === 'none' ? null : { kind: 'after', seconds: Number(lifetime) * DAY_SECONDS } };
  }
  if (date === '') return { error: 'Enter an expiry date.' };
  const expires = parseExpiryTime(date);
  return expires === undefined
    ? { error: 'Enter a date in the future. The key expires at 00:00 UTC on that date.' }
    : { expires };
}

/** @returns the values that a form begins with: those of its address, unless no form has such values */
export function expiryValues(query: URLSearchParams, proposed: string = PROPOSED): ExpirySubmission['values'] {
  const lifetime = query.get('lifetime') ?? proposed;
  const isKept = lifetime === KEEP && proposed === KEEP;
  return {
    lifetime: isKept || LIFETIMES.some(({ value }) => value === lifetime) ? lifetime : PROPOSED,
    date: /^\d{4}-\d\d-\d\d$/.exec(query.get('date') ?? '')?.[0] ?? '',
  };
}

interface ExpiryFieldsProps {
  readonly submission: ExpirySubmission;
  /** The expiry that the key has, which may be kept. */
  readonly current?: string | null;
  /** Whether the key may live for ever. */
  readonly canBeNever?: boolean;
}

/**
 * The fields that name when a key expires. The date is hidden unless it is chosen, in browsers that can do it. Give their form
 * `noValidate`: a browser would not submit a hidden date that is half typed, and could not show why.
 */
export function ExpiryFields({
  submission: { values, errors },
  current = null,
  canBeNever = true,
}: ExpiryFieldsProps): VNode {
  const offered = LIFETIMES.filter(({ value }) => canBeNever || value !== 'none').map((option) =>
    'days' in option
      ? { value: option.value, label: `In ${option.days} days (${dayAfter(option.days)})` }
      : { value: option.value, label: option.label },
  );
  const options = current === null ? offered : [{ value: KEEP, label: `Keep: ${formatTime(current)}` }, ...offered];
  return (
    <>
      <Field
        id="lifetime"
        name="lifetime"
        label="Expires"
        hint="An expiry date limits the damage if the key leaks."
        value={values.lifetime}
        options={options}
      />
      <Field
        id="date"
        name="date"
        type="date"
        label="Expiry date"
        hint="For “On a date”. The key expires at 00:00 UTC on that date."
        value={values.date}
        error={errors.date}
      />
    </>
  );
}

function dayAfter(days: number): string {
  return new Date(Date.now() + days * DAY_SECONDS * 1_000).toISOString().slice(0, 10);
}
