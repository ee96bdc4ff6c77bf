import { hashToken } from '../../../accounts/tokens.js';
import { parseExpiryTime, type Expiry } from '../../../keys/expiry.js';
import { PageError } from '../../layout/error-page.js';
import { isPlainText, NOT_PLAIN } from '../../../platform/text/plain-text.js';

/** How long a new key may live, by the value of its option: in days. */
export const LIFETIMES = [
  { value: 'none', label: 'Never', days: undefined },
  { value: '30', label: 'In 30 days', days: 30 },
  { value: '90', label: 'In 90 days', days: 90 },
  { value: '365', label: 'In 365 days', days: 365 },
] as const;

/** The option of a new key that expires on a date. */
export const ON_A_DATE = 'date';

/** How long a rolled key goes on, by the value of its option: in seconds. */
export const OVERLAPS = [
  { value: 'now', label: 'Not at all: it ends now', seconds: 0 },
  { value: '1h', label: '1 hour', seconds: 3_600 },
  { value: '24h', label: '24 hours', seconds: 86_400 },
  { value: '7d', label: '7 days', seconds: 604_800 },
] as const;

/** The longest label, in characters as PostgreSQL counts them. */
export const MAX_LABEL = 200;

const DAY_SECONDS = 86_400;

/** The fields of the form for a new key, as they were sent. */
export interface NewKeyFields {
  readonly label: string;
  readonly lifetime: string;
  readonly date: string;
}

/** What is wrong with a field, in a sentence. */
export type FieldErrors = Partial<Record<keyof NewKeyFields, string>>;

/** What a form for a new key asks for. */
export type NewKeyRequest =
  | { readonly kind: 'valid'; readonly label: string | null; readonly expires: Expiry | undefined }
  | { readonly kind: 'invalid'; readonly errors: FieldErrors };

/** @returns the fields of the form for a new key */
export function newKeyFieldsOf(form: URLSearchParams): NewKeyFields {
  return {
    label: form.get('label') ?? '',
    lifetime: form.get('lifetime') ?? '',
    date: form.get('date') ?? '',
  };
}

/** Reads the fields of a form. @throws PageError 400 for a lifetime that the form does not offer */
export function readNewKey({ label, lifetime, date }: NewKeyFields): NewKeyRequest {
  const name = label.trim();
  const errors: FieldErrors = {
    ...(Array.from(name).length > MAX_LABEL && { label: `Use at most ${MAX_LABEL} characters.` }),
    ...(!isPlainText(name) && { label: NOT_PLAIN }),
  };
  const option = LIFETIMES.find(({ value }) => value === lifetime);
  if (option === undefined && lifetime !== ON_A_DATE) throw incomplete();
  const onDate = lifetime === ON_A_DATE ? parseExpiryTime(date) : undefined;
  if (lifetime === ON_A_DATE && onDate === undefined) {
    errors.date = 'Choose a date after today. The key ends at 00:00 UTC of that date.';
  } else if (option !== undefined && date !== '') {
    errors.date = `You chose "${option.label}" but also gave a date. Choose "On a date" above, or remove the date.`;
  }
  if (Object.keys(errors).length > 0) return { kind: 'invalid', errors };
  const days = option?.days;
  const expires = days === undefined ? onDate : ({ kind: 'after', seconds: days * DAY_SECONDS } as const);
  return { kind: 'valid', label: name === '' ? null : name, expires };
}

/** @returns how long a rolled key goes on, in seconds @throws PageError 400 for a value that is not offered */
export function readOverlap(form: URLSearchParams): number {
  const overlap = OVERLAPS.find(({ value }) => value === form.get('overlap'));
  if (overlap === undefined) throw incomplete();
  return overlap.seconds;
}

/** @returns the hash of a form's token @throws PageError 400 where there is none */
export function readFormHash(form: URLSearchParams): Buffer {
  const hash = hashToken(form.get('form') ?? undefined);
  if (hash === undefined) throw incomplete();
  return hash;
}

function incomplete(): PageError {
  return new PageError(400, 'Form incomplete', 'The form did not arrive whole. Open its page again and send it anew.');
}
