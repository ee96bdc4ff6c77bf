import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 8;
const SECRET_LENGTH = 32;
/** 62^6 exceeds 2^32, so six characters hold any CRC-32. */
const CHECKSUM_LENGTH = 6;

/** The beginning of each key. Scanners find leaked keys by it. */
export const KEY_START = 'svc_';

export const KEY_LENGTH = KEY_START.length + ID_LENGTH + '_'.length + SECRET_LENGTH + CHECKSUM_LENGTH;

/** The form of the public part of a key, for people. */
export const PREFIX_IN_WORDS = `${KEY_START} and ${ID_LENGTH} letters and digits`;

/** A letter or digit in a pattern, and the public part of a key. */
const CHARACTER = '[0-9A-Za-z]';
const PREFIX = `${KEY_START}${CHARACTER}{${ID_LENGTH}}`;

const ONLY_PREFIX = new RegExp(`^${PREFIX}$`);
const ONLY_KEY = new RegExp(`^${PREFIX}_${CHARACTER}{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);
const BEGINNING = new RegExp(`^${KEY_START}${CHARACTER}+(?:_${CHARACTER}*)?$`);

/** The prefix of a key anywhere in a text, and the separator before the secret. */
const KEY_LIKE = new RegExp(`(${PREFIX})_`);

/** A prefix with the secret, or a part of it. */
const PREFIX_AND_SECRET = new RegExp(`(${PREFIX})_${CHARACTER}+`, 'g');

/**
 * The beginning of a key anywhere in a text, in capitals or not, and all that follows. That may be the rest of a key
 * with something put into it, or a second key.
 */
const KEY_AND_REST = new RegExp(`(${PREFIX})_.*`, 'is');

/** The number of consecutive characters of a secret that must not be logged: 71 of its 190 bits. */
const TELLING_LENGTH = 12;

/** Letters and digits in a row that may be part of a secret. Their form does not differ from that of a long word. */
const TELLING_RUN = new RegExp(`${CHARACTER}{${TELLING_LENGTH},}`, 'g');

const ONLY_DIGITS = /^[0-9]+$/;

/** The beginning of a key, or most of a secret: more letters in a row than a word has, with a digit among them. */
const KEY_OR_SECRET = new RegExp(`${PREFIX}_|(?=[a-z]{0,23}[0-9])${CHARACTER}{24}`, 'i');

/** The error for a key entered as a label. Labels are stored in plain text. */
export const KEY_AS_LABEL = 'This looks like an API key. Labels are not secret: use a name.';

/** Why a whole key is refused as the name of a project. */
export const KEY_AS_NAME = 'This looks like an API key. Project names are not secret: use another name.';

const REDACTED = '[redacted]';

declare const keyHash: unique symbol;

/** SHA-256 of a whole well-formed key, in base64. Only this goes past the HTTP edge. */
export type KeyHash = string & { readonly [keyHash]: true };

/** A new key: the only place where the whole key appears on the server. */
export interface NewApiKey {
  /** The whole key, `svc_<id>_<secret><checksum>`. Shown once, never stored. */
  readonly key: string;
  /** `svc_<id>`: public, names the key in lists, logs and `/me`. */
  readonly prefix: string;
  /** SHA-256 of the whole key, 32 bytes. Only this is stored. */
  readonly hash: Buffer;
}

/** Makes a key of 190 random bits from the system's CSPRNG. */
export function generateApiKey(): NewApiKey {
  const prefix = `${KEY_START}${randomBase62(ID_LENGTH)}`;
  const body = `${prefix}_${randomBase62(SECRET_LENGTH)}`;
  const key = body + checksum(body);
  return { key, prefix, hash: hash('sha256', key, 'buffer') };
}

/** A text in place of a key: a key, a mistyped one, the beginning of one, or something else. */
export type ParsedKey =
  | { readonly form: 'key'; readonly hash: KeyHash }
  | { readonly form: 'mistyped' | 'cut_off' | 'other' };

/** Checks the form and the checksum of a key, and hashes it. Costs no I/O. */
export function parseKey(text: string): ParsedKey {
  if (!ONLY_KEY.test(text)) return { form: BEGINNING.test(text) && text.length < KEY_LENGTH ? 'cut_off' : 'other' };
  if (!text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)))) return { form: 'mistyped' };
  return { form: 'key', hash: hash('sha256', text, 'base64') as KeyHash };
}

/** Whether a text has the form of the public part of a key. */
export function isKeyPrefix(text: string): boolean {
  return ONLY_PREFIX.test(text);
}

/** Whether a text may hold a key, or as much of a secret as must not be written down. */
export function mayHoldSecret(text: string): boolean {
  return redactApiKeys(text) !== text;
}

/**
 * Whether a text that is not for keys, such as a search, seems to hold one. Unlike {@link mayHoldSecret} it leaves long
 * words alone.
 */
export function looksLikeKey(text: string): boolean {
  return KEY_OR_SECRET.test(text);
}

/**
 * Cuts from a text anything that may be part of a key: all that follows a key's prefix, and every run of
 * {@link TELLING_LENGTH} or more letters and digits. A run of digits stays: no secret has so many in a row.
 */
export function redactApiKeys(text: string): string {
  const withoutKeys = text.replace(KEY_AND_REST, `$1_${REDACTED}`);
  return withoutKeys.replace(TELLING_RUN, (run) => (ONLY_DIGITS.test(run) ? run : REDACTED));
}

/** Cuts the secrets of keys from a text that repeats arguments, and leaves the text after them. */
export function redactSecrets(text: string): string {
  return text.replaceAll(PREFIX_AND_SECRET, `$1_${REDACTED}`);
}

/**
 * Cuts from our text anything that it repeats of another text. It cuts each run of letters and digits that shares
 * {@link TELLING_LENGTH} characters in a row, in any case. Our own long words stay.
 */
export function redactRepeated(text: string, others: string): string {
  const source = others.toLowerCase();
  return text.replace(TELLING_RUN, (run) => {
    if (ONLY_DIGITS.test(run)) return run;
    const lower = run.toLowerCase();
    for (let at = 0; at + TELLING_LENGTH <= lower.length; at += 1) {
      if (source.includes(lower.slice(at, at + TELLING_LENGTH))) return REDACTED;
    }
    return run;
  });
}

/** randomInt draws without modulo bias. */
function randomBase62(length: number): string {
  return Array.from({ length }, () => BASE62.charAt(randomInt(BASE62.length))).join('');
}

function checksum(body: string): string {
  let rest = crc32(body);
  let digits = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i += 1) {
    digits = BASE62.charAt(rest % BASE62.length) + digits;
    rest = Math.floor(rest / BASE62.length);
  }
  return digits;
}

/**
 * Finds a possible key in a text that is not for keys, such as a label.
 *
 * @returns its prefix; undefined without one
 */
export function findKeyPrefix(text: string): string | undefined {
  return KEY_LIKE.exec(text)?.[1];
}
