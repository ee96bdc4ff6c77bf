import type { VNode } from 'preact';
import { setKeyExpiry } from '../../../keys/edit-key.js';
import { MOST_DAYS, parseExpiryTime, type Expiry } from '../../../keys/expiry.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { formatTime, RelativeTime, Time } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { act, type Done } from '../../parts/forms/act.js';
import { formParser, ErrorSummary, Field, Form, incompleteForm, type Submission } from '../../parts/forms/form.js';
import { keyPath, KeyReference } from '../../parts/keys.js';
import { queryOf } from '../../parts/web/addresses.js';
import type { Guards, SettingsContext, SettingsRouter } from '../settings-page.js';
import { formPage, KEY_PATH, loadAcceptedKey } from './one-key.js';

/** When a key expires, by the value of its option: after a number of days, on a date, or never. */
const LIFETIMES = [
  { value: '30', days: 30 },
  { value: '90', days: 90 },
  { value: '365', days: 365 },
  { value: 'date', label: 'Custom date' },
  { value: 'none', label: 'Never expires' },
] as const;

/** The value of the option that keeps the present expiry of a key. */
const KEEP = 'keep';

const DAY_SECONDS = 86_400;

/** The fields of a form that names an expiry, for its parser. */
export const EXPIRY_FIELDS = {
  lifetime: { schema: { enum: LIFETIMES.map(({ value }) => value) } },
  date: { schema: {} },
} as const;

/** The expiry in a form. */
type ExpirySubmission = Submission<keyof typeof EXPIRY_FIELDS>;

/** Proposed unless the form says otherwise: long enough for work, and forgotten keys expire. */
const PROPOSED = '90';

/** @returns the expiry that a form without a fault names; null for never */
export function expiryOf({ lifetime, date }: ExpirySubmission['values']): Expiry | null {
  if (lifetime === 'none') return null;
  if (lifetime === 'date') return parseExpiryTime(date) ?? incompleteForm();
  return { kind: 'after', seconds: Number(lifetime) * DAY_SECONDS };
}

/** Adds the fault of the date to a form. A date with another choice is one: either of them may be meant. */
export function checkDate<Sent extends ExpirySubmission>(form: Sent): Sent {
  const date = dateFault(form.values);
  return date === undefined ? form : { ...form, errors: { ...form.errors, date } };
}

function dateFault({ lifetime, date }: ExpirySubmission['values']): string | undefined {
  if (lifetime !== 'date') {
    return date === '' ? undefined : 'To use this date, choose “Custom date”. Otherwise clear it.';
  }
  if (date === '') return 'Enter an expiry date.';
  if (parseExpiryTime(date) !== undefined) return undefined;
  return `Enter a date from ${dayAfter(1)} to ${dayAfter(MOST_DAYS)}. The key expires at 00:00 UTC on that date.`;
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

const { lifetime, date } = EXPIRY_FIELDS;

const parseExpiry = formParser({ lifetime: { schema: { enum: [KEEP, ...lifetime.schema.enum] } }, date });

/** Adds the form that changes when a key expires. */
export function addExpiry(router: SettingsRouter, { db, changeCallers }: SiteParts, guards: Guards): void {
  const path = `${KEY_PATH}/expiry`;

  const draw = async (ctx: SettingsContext, sent?: ExpirySubmission): Promise<void> => {
    const record = await loadAcceptedKey(db, ctx);
    const begin = () => expiryValues(queryOf(ctx), record.expiresAt === null ? 'none' : KEEP);
    const submission = sent ?? { values: begin(), errors: {} };
    formPage(ctx, record, 'Change the expiry', <ExpiryForm record={record} submission={submission} />, sent);
  };

  router.get(path, guards.requireRecentSignIn, (ctx) => draw(ctx));

  const save = async (ctx: SettingsContext, { values }: ExpirySubmission): Promise<Done> => {
    const { developerId, prefix } = await loadAcceptedKey(db, ctx);
    const to = keyPath(prefix);
    if (values.lifetime === KEEP) return { to, confirmation: 'unchanged' };
    const { before, after } = await changeCallers(
      () => setKeyExpiry(db, prefix, expiryOf(values), { kind: 'developer', developerId }),
      () => [developerId],
    );
    return { to, confirmation: before.expiresAt === after.expiresAt ? 'unchanged' : 'expiry_changed' };
  };

  router.post(
    path,
    guards.requireRecentSignIn,
    act((ctx) => checkDate(parseExpiry(ctx)), save, draw),
  );
}

interface ExpiryFormProps {
  readonly record: KeyRecord;
  readonly submission: ExpirySubmission;
}

function ExpiryForm({ record, submission }: ExpiryFormProps): VNode {
  const { prefix, expiresAt, successor } = record;
  return (
    <>
      <ErrorSummary errors={submission.errors} />
      <p>
        <KeyReference {...record} />{' '}
        {expiresAt === null
          ? 'does not expire.'
          : ['expires ', <RelativeTime at={expiresAt} />, ' (', <Time at={expiresAt} />, ').']}{' '}
        To end this key now, <a href={`${keyPath(prefix)}/revoke`}>revoke it</a>.
      </p>
      <Form action={`${keyPath(prefix)}/expiry`} label="Save expiry" cancel={keyPath(prefix)} noValidate>
        <ExpiryFields submission={submission} current={expiresAt} canBeNever={successor === null} />
      </Form>
    </>
  );
}

interface ExpiryFieldsProps {
  readonly submission: ExpirySubmission;
  /** The expiry that the key has, which may be kept. */
  readonly current?: string | null;
  /** Whether the key may have no expiry. */
  readonly canBeNever?: boolean;
}

/**
 * The fields that name when a key expires. The date is hidden unless it is chosen, in browsers that can do it. Give
 * their form `noValidate`: a browser would not submit a hidden date that is half typed, and could not show why.
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
        name="lifetime"
        label="Expires"
        hint="Keys that expire limit the damage of a leak."
        value={values.lifetime}
        options={options}
      />
      <Field
        name="date"
        type="date"
        label="Expiry date"
        hint="For “Custom date”. The key expires at 00:00 UTC on that date."
        value={values.date}
        error={errors.date}
        min={dayAfter(1)}
        max={dayAfter(MOST_DAYS)}
      />
    </>
  );
}

/** @returns the date a number of days from now, in UTC */
function dayAfter(days: number): string {
  return new Date(Date.now() + days * DAY_SECONDS * 1_000).toISOString().slice(0, 10);
}
