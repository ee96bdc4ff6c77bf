import type { VNode } from 'preact';
import { requireAccepted, setKeyExpiry } from '../../../keys/edit-key.js';
import { parseExpiryTime, type Expiry } from '../../../keys/expiry.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { formatTime, RelativeTime, Time } from '../../parts/content/values.js';
import type { SiteParts } from '../../parts/context.js';
import { formParser, type Submission } from '../../parts/forms/form.js';
import { ErrorSummary, Field, Form } from '../../parts/forms/form-elements.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { keyPath, KeyReference } from '../../parts/keys/key-name.js';
import { queryOf } from '../../parts/web/page-address.js';
import type { Guards, SettingsRouter } from '../guards.js';
import { formPage, KEY_PATH, recordOf } from './one-key.js';

/** When a key expires, by the value of its option: after a number of days, on a date, or never. */
const LIFETIMES = [
  { value: '30', days: 30 },
  { value: '90', days: 90 },
  { value: '365', days: 365 },
  { value: 'date', label: 'On a date' },
  { value: 'none', label: 'Never' },
] as const;

/** The value of the option that keeps the present expiry of a key. */
const KEEP = 'keep';

const DAY_SECONDS = 86_400;

/** The fields of a form that names an expiry, for its parser. */
export const EXPIRY_FIELDS = {
  lifetime: { schema: { enum: LIFETIMES.map(({ value }) => value) } },
  date: { schema: {} },
} as const;

/** What a form names as an expiry. */
type ExpirySubmission = Submission<keyof typeof EXPIRY_FIELDS>;

/** Proposed unless the form says otherwise: long enough for work, and a key that nobody misses does not live on. */
const PROPOSED = '90';

/**
 * Reads the expiry of a form. A date beside another choice is ignored: most browsers hide it.
 *
 * @returns the expiry, null for never; or what is wrong with its date
 */
export function expiryOf({
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

const { lifetime, date } = EXPIRY_FIELDS;

const parseExpiry = formParser({ lifetime: { schema: { enum: [KEEP, ...lifetime.schema.enum] } }, date });

const TITLE = 'Change the expiry';

/** Adds the form that changes when a key expires. */
export function addExpiry(router: SettingsRouter, { db, beginChange }: SiteParts, guards: Guards): void {
  router.get(`${KEY_PATH}/expiry`, guards.requireRecentSignIn, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireAccepted(record);
    const values = expiryValues(queryOf(ctx), record.expiresAt === null ? 'none' : KEEP);
    formPage(ctx, record, TITLE, <ExpiryForm record={record} submission={{ values, errors: {} }} />);
  });

  router.post(`${KEY_PATH}/expiry`, guards.requireRecentSignIn, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireAccepted(record);
    const { developerId, prefix } = record;
    const { values } = parseExpiry(ctx);
    const chosen = expiryOf(values);
    if ('error' in chosen) {
      const form = <ExpiryForm record={record} submission={{ values, errors: { date: chosen.error } }} />;
      formPage(ctx, record, TITLE, form, 422);
      return;
    }
    if (values.lifetime === KEEP || isChosenAgain(record, chosen.expires)) {
      redirectAndConfirm(ctx, keyPath(prefix), 'unchanged');
      return;
    }
    const endChange = beginChange();
    const { before, after } = await setKeyExpiry(db, prefix, chosen.expires, { kind: 'developer', developerId });
    const isChanged = before.expiresAt !== after.expiresAt;
    const propagation = await endChange(isChanged);
    if (isChanged) redirectAndConfirm(ctx, keyPath(prefix), 'expiry_changed', propagation);
    else redirectAndConfirm(ctx, keyPath(prefix), 'unchanged');
  });
}

/** How far apart two expiries are that count as the same, in milliseconds: a person sends a form twice in that time. */
const SAME_EXPIRY_MS = 60_000;

/** Whether a lifetime from now on ends about when the key already does. */
function isChosenAgain({ expiresAt }: KeyRecord, expires: Expiry | null): boolean {
  if (expires?.kind !== 'after' || expiresAt === null) return false;
  return Math.abs(Date.now() + expires.seconds * 1_000 - Date.parse(expiresAt)) < SAME_EXPIRY_MS;
}

function ExpiryForm({
  record,
  submission,
}: {
  readonly record: KeyRecord;
  readonly submission: ExpirySubmission;
}): VNode {
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
  /** Whether the key may live for ever. */
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
        hint="An expiry date limits the damage if the key leaks."
        value={values.lifetime}
        options={options}
      />
      <Field
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
