import { isIP } from 'node:net';
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';

/** How long the browser waits for the person, in milliseconds. A challenge outlives it. */
const TIMEOUT_MS = 300_000;

/** Ed25519, ES256 and RS256, as every Node.js and every authenticator has at least one of them. */
const ALGORITHMS = [-8, -7, -257];

/** The longest credential id that WebAuthn allows, 1,023 bytes, in base64url. */
const CREDENTIAL_ID = /^[\w-]{1,1364}$/;

/** The service as browsers see it: a passkey works only for the host name that it was made for. */
export interface RelyingParty {
  /** The host name. */
  readonly id: string;
  /** The public URL of the service. */
  readonly origin: string;
}

/** How browsers reach authenticators. */
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const;

type Transport = (typeof TRANSPORTS)[number];

/** A public key of an authenticator. */
export interface PublicKey {
  readonly credentialId: Buffer;
  /** In COSE. */
  readonly publicKey: Buffer;
  /** How often the authenticator has used it, or 0. */
  readonly signCount: number;
  readonly transports: readonly Transport[];
  /** Whether a password manager keeps a copy beyond the device. */
  readonly isSynced: boolean;
}

/** Why a passkey is refused. */
export type PasskeyRefusal =
  /** The challenge is unknown, spent or too old, or belongs to another browser or session. */
  | 'expired'
  /** The response of the browser is malformed, or does not verify. */
  | 'invalid'
  /** Unknown: it was removed, or belongs to another service. */
  | 'unknown'
  | 'duplicate'
  /** The session that adds it has ended, or its developer is suspended. */
  | 'no_session'
  /** The developer has reached the maximum. */
  | 'too_many';

/** A passkey is refused. Pages have a text for each reason. */
export class PasskeyRefused extends Error {
  override readonly name = 'PasskeyRefused';

  constructor(readonly reason: PasskeyRefusal) {
    super(`passkey refused: ${reason}`);
  }
}

/**
 * @param publicUrl - an origin: https, or http on this machine
 * @returns undefined for an IP address: browsers allow passkeys for host names only
 */
export function relyingPartyOf(publicUrl: string): RelyingParty | undefined {
  const { hostname: id, origin } = new URL(publicUrl);
  return id.startsWith('[') || isIP(id) > 0 ? undefined : { id, origin };
}

/** The library, which takes 70 ms of CPU time and 5 MB. A server loads it at its start. */
export const loadWebAuthn = async () => ({
  ...(await import('@simplewebauthn/server')),
  ...(await import('@simplewebauthn/server/helpers')),
});

/**
 * Makes the options for a new passkey: kept by the authenticator (discoverable) and used only by a person whom the
 * authenticator has verified, by fingerprint or PIN.
 *
 * @param existing - the developer's passkeys, which an authenticator does not create again
 */
export function creationOptions(
  { id }: RelyingParty,
  challenge: string,
  developer: { readonly id: number; readonly projectName: string },
  existing: readonly Pick<PublicKey, 'credentialId' | 'transports'>[],
): PublicKeyCredentialCreationOptionsJSON {
  return {
    rp: { name: 'Catalog Lookup Service', id },
    user: { id: encoded(userHandle(developer.id)), name: developer.projectName, displayName: developer.projectName },
    challenge: encoded(challenge),
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ alg, type: 'public-key' })),
    timeout: TIMEOUT_MS,
    excludeCredentials: existing.map(({ credentialId, transports }) => ({
      id: encoded(credentialId),
      type: 'public-key',
      transports: [...transports],
    })),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
  };
}

/** Makes the options for a sign-in by any passkey of this service that the browser finds. */
export function requestOptions({ id }: RelyingParty, challenge: string): PublicKeyCredentialRequestOptionsJSON {
  return { rpId: id, challenge: encoded(challenge), timeout: TIMEOUT_MS, userVerification: 'required' };
}

/**
 * Verifies the response of a browser to {@link creationOptions}.
 *
 * @param answer - JSON
 * @throws PasskeyRefused
 */
export async function verifyCreation(party: RelyingParty, challenge: string, answer: string): Promise<PublicKey> {
  const { verifyRegistrationResponse, decodeAttestationObject, isoBase64URL, isoCBOR } = await loadWebAuthn();
  return orInvalid(async () => {
    const response = JSON.parse(answer) as RegistrationResponseJSON;
    // No attestation was requested, so attestations are not trusted. To verify one, the library would fetch the lists
    // of revoked certificates from URLs in it, which anybody may choose.
    const attested = decodeAttestationObject(isoBase64URL.toBuffer(response.response.attestationObject));
    const unattested = { fmt: 'none', attStmt: new Map(), authData: attested.get('authData') };
    response.response.attestationObject = isoBase64URL.fromBuffer(isoCBOR.encode(new Map(Object.entries(unattested))));
    const { registrationInfo } = await verifyRegistrationResponse({
      response,
      ...expectationsOf(party, challenge),
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (registrationInfo === undefined) throw new PasskeyRefused('invalid');
    const { credential, credentialBackedUp } = registrationInfo;
    return {
      credentialId: Buffer.from(credential.id, 'base64url'),
      publicKey: Buffer.from(credential.publicKey),
      signCount: credential.counter,
      transports: knownTransports(credential.transports),
      isSynced: credentialBackedUp,
    };
  });
}

/** The response of a browser to {@link requestOptions}, before it is verified. */
export interface Assertion {
  readonly credentialId: Buffer;
  readonly response: AuthenticationResponseJSON;
}

/** @param answer - JSON @throws PasskeyRefused */
export function parseAssertion(answer: string): Promise<Assertion> {
  return orInvalid(() => {
    const response = JSON.parse(answer) as AuthenticationResponseJSON;
    if (!CREDENTIAL_ID.test(response.id)) throw new PasskeyRefused('invalid');
    return { credentialId: Buffer.from(response.id, 'base64url'), response };
  });
}

/**
 * Verifies that the owner of a passkey has signed a challenge.
 *
 * @returns the state of the passkey that the authenticator reports
 * @throws PasskeyRefused also when an authenticator that counts has counted backwards, since it may have been copied
 */
export async function verifyAssertion(
  party: RelyingParty,
  challenge: string,
  { response }: Assertion,
  passkey: Pick<PublicKey, 'publicKey' | 'signCount'> & { readonly developerId: number },
): Promise<Pick<PublicKey, 'signCount' | 'isSynced'>> {
  const { verifyAuthenticationResponse } = await loadWebAuthn();
  return orInvalid(async () => {
    const { publicKey, signCount, developerId } = passkey;
    if (response.response.userHandle !== encoded(userHandle(developerId))) {
      throw new PasskeyRefused('invalid');
    }
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response,
      ...expectationsOf(party, challenge),
      credential: { id: response.id, publicKey: new Uint8Array(publicKey), counter: signCount },
    });
    if (!verified) throw new PasskeyRefused('invalid');
    return { signCount: authenticationInfo.newCounter, isSynced: authenticationInfo.credentialBackedUp };
  });
}

function expectationsOf({ id, origin }: RelyingParty, challenge: string) {
  return {
    expectedChallenge: encoded(challenge),
    expectedOrigin: origin,
    expectedRPID: id,
    requireUserVerification: true,
  };
}

/** Authenticators store it and return it with a passkey. A developer's new passkey replaces the old one. */
function userHandle(developerId: number): string {
  return `catalog-developer-${developerId}`;
}

function encoded(content: string | Buffer): string {
  return (typeof content === 'string' ? Buffer.from(content) : content).toString('base64url');
}

/** @param transports - from the browser, which may send anything */
function knownTransports(transports: unknown): readonly Transport[] {
  return TRANSPORTS.filter((known) => Array.isArray(transports) && transports.includes(known));
}

/** The library throws a plain Error for every fault of an answer. */
async function orInvalid<T>(act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch {
    throw new PasskeyRefused('invalid');
  }
}
