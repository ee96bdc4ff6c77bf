import { InvalidArgumentError, Option } from 'commander';
import { COLUMNS } from '../catalog/columns.js';
import { isPlainText, NOT_PLAIN } from '../platform/text/plain-text.js';
import { findKeyPrefix, KEY_AS_LABEL, KEY_AS_NAME } from '../keys/api-key.js';
import { MOST_DAYS, parseExpiryTime, type Expiry } from '../keys/expiry.js';
import { MAX_LABEL } from '../keys/keys.js';
import { MAX_PROJECT_NAME } from '../developers/developers.js';
import { OperatorError } from '../errors.js';
import type { CommandContext } from './context.js';

/** The largest integer of PostgreSQL. */
const LARGEST_INTEGER = 2_147_483_647;

/** Parses an id or a limit from the command line. @throws InvalidArgumentError, which is misuse */
export function positiveInteger(text: string): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= LARGEST_INTEGER) return value;
  if (/^\d*[1-9]\d*$/.test(text)) throw new InvalidArgumentError(`Use a whole number from 1 to ${LARGEST_INTEGER}.`);
  throw new InvalidArgumentError('Use a whole number of 1 or more.');
}

/** The argument that is the id of a developer. */
export const DEVELOPER = ['<id>', 'id of the developer', positiveInteger] as const;

/** Parses a name or a label. @throws InvalidArgumentError */
export function text(maximum: number): (value: string) => string {
  return (value) => {
    const trimmed = value.trim();
    // Characters as PostgreSQL counts them.
    const { length } = Array.from(trimmed);
    if (length < 1 || length > maximum) {
      throw new InvalidArgumentError(`Use 1 to ${maximum} characters.`);
    }
    if (!isPlainText(trimmed)) throw new InvalidArgumentError(NOT_PLAIN);
    return trimmed;
  };
}

/** @returns the option `--kind`, whose value is a kind of rows */
export function kindOption(description: string): Option {
  return new Option('--kind <kind>', description).choices(Object.keys(COLUMNS));
}

/** @returns a parser of a text that others see, and so is no key */
function notAKey(maximum: number, refusal: string): (value: string) => string {
  const parse = text(maximum);
  return (value) => {
    const read = parse(value);
    if (findKeyPrefix(read) !== undefined) throw new InvalidArgumentError(refusal);
    return read;
  };
}

/** Parses the name of a developer's project. @throws InvalidArgumentError */
export const projectName = notAKey(MAX_PROJECT_NAME, KEY_AS_NAME);

/** Parses the label of a key. @throws InvalidArgumentError */
export const label = notAKey(MAX_LABEL, KEY_AS_LABEL);

/** Parses the new label of a key. @returns null for an empty text @throws InvalidArgumentError */
export function labelOrNone(value: string): string | null {
  return value.trim() === '' ? null : label(value);
}

/** Parses a plan's id. @throws InvalidArgumentError */
export function planId(value: string): string {
  if (!/^[a-z][a-z0-9_-]{0,31}$/.test(value)) {
    throw new InvalidArgumentError('Use 1 to 32 characters of a-z, 0-9, _ and -, starting with a letter.');
  }
  return value;
}

/** Parses a position in the feed of changes, in seconds since 1970. @throws InvalidArgumentError */
export function position(value: string): number {
  if (/^\d{1,10}(?:\.\d{1,6})?$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Use Unix time in seconds, such as 1795218005 or 1795218005.123456.');
}

/** The description of the option whose value is an {@link interval}. */
export const INTERVAL =
  "pause between polls once caught up; by default 1 to 60, so as to use half of your plan's remaining requests";

/** Parses the seconds between two polls. @returns milliseconds @throws InvalidArgumentError */
export function interval(value: string): number {
  const seconds = /^\d{1,5}(?:\.\d{1,3})?$/.test(value) ? Number(value) : 0;
  if (seconds < 0.1 || seconds > 86_400) throw new InvalidArgumentError('Use seconds, from 0.1 to 86400.');
  return seconds * 1000;
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Parses a duration such as 90d, 24h, 30m or 10s. @returns seconds @throws InvalidArgumentError */
function duration(value: string): number {
  const [, count = '', unit = ''] = /^(\d{1,10})([smhd])$/.exec(value) ?? [];
  const seconds = Number(count) * (UNIT_SECONDS[unit] ?? 0);
  if (unit === '' || seconds > MOST_DAYS * 86_400) {
    throw new InvalidArgumentError(`Use a number with s, m, h or d, such as 24h; at most ${MOST_DAYS}d.`);
  }
  return seconds;
}

/** Parses how long a rolled key keeps working. @returns seconds; 0 for "now" @throws InvalidArgumentError */
export function overlap(value: string): number {
  return value === 'now' ? 0 : duration(value);
}

const EXPIRY = 'Use a duration such as 90d or 12h, or a future date or time in UTC: 2027-01-31 or 2027-01-31T18:00Z';

/** Parses when a key expires: a duration from now, a date or a time. @throws InvalidArgumentError */
export function expiryOrNever(value: string): Expiry | 'never' {
  if (value === 'never') return value;
  const seconds = /^\d+[smhd]$/.test(value) ? duration(value) : 0;
  const expiry = seconds > 0 ? ({ kind: 'after', seconds } as const) : parseExpiryTime(value);
  if (expiry !== undefined) return expiry;
  const fault = /^\d{4}-/.test(value) && Date.parse(value) <= Date.now() ? 'It is in the past. ' : '';
  throw new InvalidArgumentError(`${fault}${EXPIRY}, or "never".`);
}

/** How help texts describe {@link requireClientKey}. */
export const CLIENT_KEY_NOTE = `Set CATALOG_API_KEY to your key, or CATALOG_API_KEY_FILE to a file that contains it. This keeps the key out of the
shell's history:
  read -rs CATALOG_API_KEY && export CATALOG_API_KEY`;

/** @returns the API key for calls of a service @throws OperatorError when none is set */
export function requireClientKey({ config }: CommandContext): string {
  const { clientKey } = config();
  if (clientKey !== undefined) return clientKey;
  throw new OperatorError(
    'Set the environment variable CATALOG_API_KEY to your API key, or CATALOG_API_KEY_FILE to a file that contains it.',
  );
}
