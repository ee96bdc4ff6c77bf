import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { findKeyPrefix, KEY_AS_LABEL } from '../../../keys/api-key.js';
import { requireAccepted, setKeyLabel, setKeyExpiry } from '../../../keys/edit-key.js';
import { MOST_DAYS, parseExpiryTime, type Expiry } from '../../../keys/expiry.js';
import { stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { MAX_LABEL, findPredecessor } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import { formatTime, RelativeTime, Time } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { formParser, ErrorSummary, Field, Form, type Submission } from '../../parts/forms/form.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { keyPath, KeyReference, RevokeForm } from '../../parts/keys.js';
import { queryOf } from '../../parts/web/addresses.js';
import type { Guards, SettingsContext, SettingsRouter } from '../settings-page.js';
import { formPage, KEY_PATH, recordOf, prefixOf } from './one-key.js';

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

const LABEL_TITLE = 'Change the label';

/** @throws PageError 404; KeyRefused for a key that is no longer accepted */
async function acceptedKeyOf(ctx: SettingsContext, db: Knex): Promise<KeyRecord> {
  const record = await recordOf(ctx, db);
  requireAccepted(record);
  return record;
}

/** Adds the form that changes the label of a key. */
export function addLabel(router: SettingsRouter, { db, changeCallers }: SiteParts, { notSuspended }: Guards): void {
  router.get(`${KEY_PATH}/label`, notSuspended, async (ctx) => {
    const record = await acceptedKeyOf(ctx, db);
    const label = newLabelOf(queryOf(ctx)) ?? record.label ?? '';
    const submission = { values: { label }, errors: {} };
    formPage(ctx, record, LABEL_TITLE, <LabelForm prefix={record.prefix} submission={submission} />);
  });

  router.post(`${KEY_PATH}/label`, notSuspended, async (ctx) => {
    const record = await acceptedKeyOf(ctx, db);
    const { developerId, prefix } = record;
    const submission = parseLabelForm(ctx);
    const { label } = submission.values;
    if (submission.errors.label !== undefined) {
      formPage(ctx, record, LABEL_TITLE, <LabelForm prefix={prefix} submission={submission} />, 422);
      return;
    }
    const by = { kind: 'developer', developerId } as const;
    const set = () => setKeyLabel(db, prefix, label === '' ? null : label, by);
    const { before, after } = await changeCallers(set, nobody);
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
 * Reads the expiry of a form. A date beside another choice is an error: either of them may be the one that is meant.
 *
 * @returns the expiry, null for never; or what is wrong with its date
 */
export function expiryOf({
  lifetime,
  date,
}: ExpirySubmission['values']): { readonly expires: Expiry | null } | { readonly error: string } {
  if (lifetime !== 'date') {
    if (date !== '') return { error: 'To use this date, choose “On a date”. Otherwise clear it.' };
    return { expires: lifetime === 'none' ? null : { kind: 'after', seconds: Number(lifetime) * DAY_SECONDS } };
  }
  if (date === '') return { error: 'Enter an expiry date.' };
  const expires = parseExpiryTime(date);
  return expires === undefined
    ? {
        error: `Enter a date from ${dayAfter(1)} to ${dayAfter(MOST_DAYS)}. The key expires at 00:00 UTC on that date.`,
      }
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

const EXPIRY_TITLE = 'Change the expiry';

/** Adds the form that changes when a key expires. */
export function addExpiry(router: SettingsRouter, { db, changeCallers }: SiteParts, guards: Guards): void {
  router.get(`${KEY_PATH}/expiry`, guards.requireRecentSignIn, async (ctx) => {
    const record = await acceptedKeyOf(ctx, db);
    const values = expiryValues(queryOf(ctx), record.expiresAt === null ? 'none' : KEEP);
    formPage(ctx, record, EXPIRY_TITLE, <ExpiryForm record={record} submission={{ values, errors: {} }} />);
  });

  router.post(`${KEY_PATH}/expiry`, guards.requireRecentSignIn, async (ctx) => {
    const record = await acceptedKeyOf(ctx, db);
    const { developerId, prefix } = record;
    const { values } = parseExpiry(ctx);
    const chosen = expiryOf(values);
    if ('error' in chosen) {
      const form = <ExpiryForm record={record} submission={{ values, errors: { date: chosen.error } }} />;
      formPage(ctx, record, EXPIRY_TITLE, form, 422);
      return;
    }
    if (values.lifetime === KEEP || isChosenAgain(record, chosen.expires)) {
      redirectAndConfirm(ctx, keyPath(prefix), 'unchanged');
      return;
    }
    const { before, after } = await changeCallers(
      () => setKeyExpiry(db, prefix, chosen.expires, { kind: 'developer', developerId }),
      () => [developerId],
    );
    redirectAndConfirm(ctx, keyPath(prefix), before.expiresAt === after.expiresAt ? 'unchanged' : 'expiry_changed');
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

/** Adds the form that revokes a key. */
export function addRevokeKey(router: SettingsRouter, { db, changeCallers }: SiteParts, { notSuspended }: Guards): void {
  router.get(`${KEY_PATH}/revoke`, notSuspended, async (ctx) => {
    const record = await recordOf(ctx, db);
    const { prefix } = record;
    const { kind } = stateOf(record);
    if (kind === 'revoked' || kind === 'expired') {
      redirectAndConfirm(ctx, keyPath(prefix), kind === 'revoked' ? 'already_revoked' : 'already_ended');
      return;
    }
    const predecessor = await findPredecessor(db, prefix);
    const replaced = predecessor && stateOf(predecessor).kind === 'rolled' ? predecessor : undefined;
    formPage(ctx, record, `Revoke ${prefix}`, <RevokeForm record={record} replaced={replaced} />);
  });

  router.post(`${KEY_PATH}/revoke`, notSuspended, async (ctx) => {
    const prefix = prefixOf(ctx);
    const { developerId } = ctx.state.session;
    const { wasRevoked } = await changeCallers(
      () => revokeKey(db, prefix, { kind: 'developer', developerId }),
      () => [developerId],
    );
    redirectAndConfirm(ctx, keyPath(prefix), wasRevoked ? 'already_revoked' : 'revoked');
  });
}
