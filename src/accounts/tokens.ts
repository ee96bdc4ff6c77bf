import { hash, randomBytes } from 'node:crypto';

/** A slow hash would only add latency: nobody can guess 256 random bits. */
const TOKEN_BYTES = 32;

const TOKEN_FORMAT = /^[0-9a-f]{64}$/;

/** A new secret: the only place where the whole token appears on the server. */
export interface NewToken {
  /** 64 hexadecimal digits. The request log redacts such a run; hyphens, as in base64url, would break it. */
  readonly token: string;
  /** Its SHA-256, 32 bytes; only this is stored. */
  readonly hash: Buffer;
}

/** Makes a token of 256 random bits from the system's CSPRNG. */
export function generateToken(): NewToken {
  const token = randomBytes(TOKEN_BYTES).toString('hex');
  return { token, hash: hash('sha256', token, 'buffer') };
}

/** @returns the SHA-256 of a token; undefined for a malformed text, which then costs no query */
export function hashToken(text: string | undefined): Buffer | undefined {
  return text !== undefined && TOKEN_FORMAT.test(text) ? hash('sha256', text, 'buffer') : undefined;
}
