import { hash, randomBytes } from 'node:crypto';

/** A slow hash would add nothing but latency: nobody can guess 256 random bits. */
const TOKEN_BYTES = 32;

const TOKEN_FORMAT = /^[0-9a-f]{64}$/;

/** A secret as it is made: the only moment at which it exists in full on our side. */
export interface NewToken {
  /** 64 hexadecimal digits: a run that the log of requests cuts, which base64url with its hyphens is not. */
  readonly token: string;
  /** Its SHA-256, 32 bytes: what is stored. */
  readonly hash: Buffer;
}

/** Makes a token of 256 random bits from the system's CSPRNG. */
export function generateToken(): NewToken {
  const token = randomBytes(TOKEN_BYTES).toString('hex');
  return { token, hash: hash('sha256', token, 'buffer') };
}

/** @returns the SHA-256 of a token; undefined for a text without the form of one, which costs no query then */
export function hashToken(text: string | undefined): Buffer | undefined {
  return text !== undefined && TOKEN_FORMAT.test(text) ? hash('sha256', text, 'buffer') : undefined;
}
