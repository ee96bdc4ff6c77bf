import { hash, randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ID_LENGTH = 8;
const SECRET_LENGTH = 32;
/** 62^6 exceeds 2^32, so six characters hold any CRC-32. */
const CHECKSUM_LENGTH = 6;

/** The public part of a key. */
const PREFIX_FORMAT = /^svc_[0-9A-Za-z]{8}$/;

const KEY_FORMAT = /^svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}[0-9A-Za-z]{6}$/;

const KEY_START = /^svc_[0-9A-Za-z]+(?:_[0-9A-Za-z]*)?$/;

const KEY_LENGTH = 'svc_'.length + ID_LENGTH + '_'.length + SECRET_LENGTH + CHECKSUM_LENGTH;

/**
 * The beginning of a key anywhere in a text, in capitals or not, and all that follows. That may be the rest of a key
 * with something put into it, or a second key.
 */
const KEY_AND_REST = /(svc_[0-9a-z]{8})_.*/is;

/** The number of consecutive characters of a secret that must not be logged: 71 of its 190 bits. */
const TELLING_LENGTH = 12;

/** Letters and digits in a row that may be part of a secret. Their form does not differ from that of a long word. */
const TELLING_RUN = new RegExp(`[0-9A-Za-z]{${TELLING_LENGTH},}`, 'g');

const ONLY_DIGITS = /^[0-9]+$/;

/** The beginning of a key, or most of a secret: more letters in a row than a word has, with a digit among them. */
const KEY_OR_SECRET = /svc_[0-9a-z]{8}_|(?=[a-z]{0,23}[0-9])[0-9a-z]{24}/i;

/** The prefix of a key, and what separates it from the secret. */
const KEY_LIKE = /(svc_[0-9A-Za-z]{8})_/;

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
  /** SHA-256 of the whole key, 32 bytes: what is stored. */
  readonly hash: Buffer;
}

/** Makes a key of 190 random bits from the system's CSPRNG. */
export function generateApiKey(): NewApiKey {
  const prefix = `svc_${randomBase62(ID_LENGTH)}`;
  const body = `${prefix}_${randomBase62(SECRET_LENGTH)}`;
  const key = body + checksum(body);
  return { key, prefix, hash: hash('sha256', key, 'buffer') };
}

/**
 * Checks the form and the checksum of a key, and hashes it. Costs no I/O.
 *
 * @returns undefined for a text that is mistyped, cut off, or not a key of this service
 */
export function hashApiKey(text: string): KeyHash | undefined {
  const isWellFormed = KEY_FORMAT.test(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_LENGTH)));
  return isWellFormed ? (hash('sha256', text, 'base64') as KeyHash) : undefined;
}

/** What a text that {@link hashApiKey} refuses seems to be: a mistyped key, the beginning of a key, or no key. */
export function formOf(text: string): 'mistyped' | 'cut_off' | 'other' {
  if (KEY_FORMAT.test(text)) return 'mistyped';
  return KEY_START.test(text) && text.length < KEY_LENGTH ? 'cut_off' : 'other';
}

/** Whether a text has the form of the public part of a key. */
export function isKeyPrefix(text: string): boolean {
  return PREFIX_FORMAT.test(text);
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
 * Cuts from a text what may be a key or a part of one. That is all that follows a key's prefix, and every run of
 * {@link TELLING_LENGTH} or more letters and digits, unless all are digits: no secret has so many in a row.
 */
export function redactApiKeys(text: string): string {
  const withoutKeys = text.replace(KEY_AND_REST, `$1_${REDACTED}`);
  return withoutKeys.replace(TELLING_RUN, (run) => (ONLY_DIGITS.test(run) ? run : REDACTED));
}

/** Cuts the secrets of keys from a text that repeats arguments, and leaves what follows them. */
export function redactSecrets(text: string): string {
  return text.replaceAll(/(svc_[0-9A-Za-z]{8})_[0-9A-Za-z]+/g, `$1_${REDACTED}`);
}

/**
 * Cuts from a text of our own what it repeats of another text. It cuts each run of letters and digits that shares
 * {@link TELLING_LENGTH} characters in a row, in any case. Long words of our own stay.
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
 * Finds what may be a key in a text that is not for keys, such as a label.
 *
 * @returns its prefix; undefined for none
 */
export function findKeyPrefix(text: string): string | undefined {
  return KEY_LIKE.exec(text)?.[1];
}
