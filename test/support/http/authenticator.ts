import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';
import type { PublicKey } from '../../../src/accounts/relying-party.js';

/** The options that a service sends for a new passkey. */
interface CreationOptions {
  readonly challenge: string;
  readonly rp: { readonly id?: string };
  readonly user: { readonly id: string };
}

/** The options that a service sends for a sign-in. */
interface RequestOptions {
  readonly challenge: string;
  readonly rpId?: string;
}

/** The options of either kind. */
export type Options = CreationOptions & RequestOptions;

/** What a dishonest or faulty authenticator or browser does differently. */
export interface Deviation {
  readonly type?: string;
  readonly origin?: string;
  readonly challenge?: string;
  readonly rpId?: string;
  /** Of the authenticator data: 1 present, 4 verified, 8 may be synced, 16 synced, 64 with a new key. */
  readonly flags?: number;
  readonly count?: number;
  readonly userHandle?: string | undefined;
  readonly credentialId?: string;
  readonly format?: string;
  readonly signedBy?: KeyObject;
}

const PRESENT_AND_VERIFIED = 1 | 4;
const WITH_KEY = 64;

/** A passkey with its private key, and the browser that uses it. It returns what `toJSON()` of a browser returns. */
export class Authenticator {
  readonly credentialId = randomBytes(16).toString('base64url');
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  #userHandle = '';
  /** How often it has signed; stays 0 for one that does not count. */
  count = 0;

  constructor(private readonly origin: string) {}

  /** Creates the passkey. */
  create(options: CreationOptions, deviation: Deviation = {}): string {
    this.#userHandle = options.user.id;
    const { x = '', y = '' } = this.#keys.publicKey.export({ format: 'jwk' });
    const key = isoCBOR.encode(
      new Map<number, number | Uint8Array>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x, 'base64url')],
        [-3, Buffer.from(y, 'base64url')],
      ]),
    );
    const id = Buffer.from(deviation.credentialId ?? this.credentialId, 'base64url');
    const data = Buffer.concat([
      this.#data(deviation.rpId ?? options.rp.id ?? '', deviation.flags ?? PRESENT_AND_VERIFIED | WITH_KEY, deviation),
      Buffer.alloc(16),
      Buffer.from([0, id.length]),
      id,
      key,
    ]);
    const attestation = isoCBOR.encode(
      new Map<string, string | Map<string, never> | Uint8Array>([
        ['fmt', deviation.format ?? 'none'],
        ['attStmt', new Map<string, never>()],
        ['authData', data],
      ]),
    );
    return this.#answer(deviation, {
      clientDataJSON: this.#client('webauthn.create', options, deviation).toString('base64url'),
      attestationObject: Buffer.from(attestation).toString('base64url'),
      transports: ['internal'],
    });
  }

  /** Signs in with the passkey. */
  get(options: RequestOptions, deviation: Deviation = {}): string {
    const data = this.#data(deviation.rpId ?? options.rpId ?? '', deviation.flags ?? PRESENT_AND_VERIFIED, deviation);
    const client = this.#client('webauthn.get', options, deviation);
    const signed = Buffer.concat([data, sha256(client)]);
    return this.#answer(deviation, {
      clientDataJSON: client.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, deviation.signedBy ?? this.#keys.privateKey).toString('base64url'),
      userHandle: 'userHandle' in deviation ? deviation.userHandle : this.#userHandle,
    });
  }

  #answer({ credentialId = this.credentialId }: Deviation, response: object): string {
    return JSON.stringify({
      id: credentialId,
      rawId: credentialId,
      type: 'public-key',
      clientExtensionResults: {},
      response,
    });
  }

  #data(rpId: string, flags: number, { count = this.count }: Deviation): Buffer {
    const head = Buffer.alloc(5);
    head.writeUInt8(flags);
    head.writeUInt32BE(count, 1);
    return Buffer.concat([sha256(rpId), head]);
  }

  #client(type: string, { challenge }: { readonly challenge: string }, deviation: Deviation): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: deviation.type ?? type,
        challenge: deviation.challenge ?? challenge,
        origin: deviation.origin ?? this.origin,
        crossOrigin: false,
      }),
    );
  }
}

/** A public key that nobody can sign for, for lists. */
export function somePublicKey({ isSynced = false } = {}): PublicKey {
  return {
    credentialId: randomBytes(16),
    publicKey: randomBytes(77),
    signCount: 0,
    transports: ['internal'],
    isSynced,
  };
}

function sha256(content: string | Buffer): Buffer {
  return createHash('sha256').update(content).digest();
}
