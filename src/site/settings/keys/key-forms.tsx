import type { ComponentChildren, VNode } from 'preact';
import { generateToken } from '../../../accounts/tokens.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { Notice } from '../../layout/components.js';
import { described, Field } from '../../layout/form-field.js';
import { Time } from '../../layout/time.js';
import { UserText } from '../../layout/user-text.js';
import { LIFETIMES, MAX_LABEL, ON_A_DATE, OVERLAPS, type FieldErrors, type NewKeyFields } from './form-fields.js';

const NO_FIELDS: NewKeyFields = { label: '', lifetime: 'none', date: '' };

interface NewKeyFormProps {
  /** What was sent, where the form is shown again. */
  readonly fields?: NewKeyFields;
  readonly errors?: FieldErrors;
}

/** The form that creates a key. */
export function NewKeyForm({ fields = NO_FIELDS, errors = {} }: NewKeyFormProps): VNode {
  return (
    <FormOnce>
      <Field
        id="label"
        label="Label"
        hint="To tell your keys apart, such as production or staging."
        error={errors.label}
      >
        <input
          class="input"
          id="label"
          name="label"
          value={fields.label}
          maxLength={MAX_LABEL}
          autocomplete="off"
          {...described('label', { hint: true, error: errors.label })}
        />
      </Field>
      <Field id="lifetime" label="Expires" hint="A key that ends by itself limits what a leak can cost.">
        <select class="input" id="lifetime" name="lifetime" aria-describedby="lifetime-hint">
          {[...LIFETIMES, { value: ON_A_DATE, label: 'On a date' }].map(({ value, label }) => (
            <option key={value} value={value} selected={value === fields.lifetime}>
              {label}
            </option>
          ))}
        </select>
      </Field>
      <Field id="date" label="Date" hint="Only for a key that expires on a date, at 00:00 UTC." error={errors.date}>
        <input
          class="input"
          id="date"
          name="date"
          type="date"
          value={fields.date}
          {...described('date', { hint: true, error: errors.date })}
        />
      </Field>
      <Actions label="Create key" tone="button-primary" />
    </FormOnce>
  );
}

/** The form that rolls a key. */
export function RollForm({ record }: { readonly record: KeyRecord }): VNode {
  const { prefix, lastUsedAt, expiresAt } = record;
  return (
    <>
      <p>
        A successor takes the place of <KeyName record={record} />, with the same label and plan.{' '}
        {expiresAt === null ? 'It does not expire either.' : 'It gets as long a life as this key was made for.'}{' '}
        <LastUse at={lastUsedAt} />
      </p>
      <FormOnce>
        <fieldset class="field">
          <legend>How long shall {prefix} go on?</legend>
          <div>
            {OVERLAPS.map(({ value, label }) => (
              <label key={value} class="checkbox">
                <input type="radio" name="overlap" value={value} checked={value === '24h'} /> {label}
              </label>
            ))}
          </div>
        </fieldset>
        <Actions label="Roll key" tone="button-primary" />
      </FormOnce>
    </>
  );
}

interface RevokeFormProps {
  readonly record: KeyRecord;
  /** The rolled key that this one replaces, while it still works. */
  readonly replaced: KeyRecord | undefined;
}

/** The question before a key is revoked. */
export function RevokeForm({ record, replaced }: RevokeFormProps): VNode {
  return (
    <>
      <p>
        Every server refuses <KeyName record={record} /> from the next request on, permanently.{' '}
        <LastUse at={record.lastUsedAt} />
      </p>
      {replaced !== undefined && (
        <Notice tone="warning">
          <p>
            It replaces the rolled key <code>{replaced.prefix}</code>, which works until{' '}
            {replaced.expiresAt === null ? 'revoked' : <Time at={replaced.expiresAt} />}. No key replaces that one then.
          </p>
        </Notice>
      )}
      <form class="form" method="post">
        <Actions label={`Revoke ${record.prefix}`} tone="button-danger" />
      </form>
    </>
  );
}

/** A form that makes one key, however often it is sent. It goes to the address that shows it. */
function FormOnce({ children }: { readonly children: ComponentChildren }): VNode {
  return (
    <form class="form" method="post" data-once>
      <input type="hidden" name="form" value={generateToken().token} autocomplete="off" />
      {children}
    </form>
  );
}

function Actions({ label, tone }: { readonly label: string; readonly tone: string }): VNode {
  return (
    <div class="form-actions">
      <button class={`button ${tone}`} type="submit">
        {label}
      </button>
      <a class="button" href="/settings/keys">
        Cancel
      </a>
    </div>
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

function LastUse({ at }: { readonly at: string | null }): VNode {
  return at === null ? (
    <>It was never used.</>
  ) : (
    <>
      It was last used at <Time at={at} />, or up to ten seconds later.
    </>
  );
}
