import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type * as OpenIdClient from 'openid-client';
import type { Identity } from './identities.js';

/** Bound on each request to the provider, in seconds. A sign-in takes three at most: discovery, token, keys. */
const TIMEOUT_SECONDS = 3;

/** How long the provider's own description is used before it is asked for again, in milliseconds. */
const DISCOVERY_LIFETIME_MS = 3_600_000;

/** The most sign-ins that wait for the provider at the same time, also while it does not answer. */
const MAX_WAITING = 20;

/** The provider is asked to make sure who is there, unless it did so within this time, in seconds. */
const MAX_AGE_SECONDS = 900;

/** By how much the provider's clock may differ, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 60;

/** The provider does not answer, or with something that cannot be used. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable';
}

/** Nobody is signed in: the person or the provider said no, or this is not the browser that began. */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused';
}

/** This service at a provider. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
}

interface Discovered {
  readonly config: OpenIdClient.Configuration;
  readonly at: number;
}

/**
 * A provider of identities (OpenID Connect): discovery, authorization code flow, PKCE, state and nonce, by openid-client.
 *
 * A sign-in that is under way is a random secret in the browser's cookie, and nothing on our side. State, nonce and the
 * verifier of PKCE are derived from the secret. So they belong to that browser alone, and nobody can derive one from
 * another.
 *
 * Nothing is asked of the provider before somebody signs in.
 */
export class OidcProvider {
  #discovered: Discovered | undefined;
  #discovering: Promise<OpenIdClient.Configuration> | undefined;
  #waiting = 0;

  constructor(private readonly settings: OidcSettings) {}

  /** The name of the provider, for people. */
  get host(): string {
    return new URL(this.settings.issuer).host;
  }

  /**
   * Begins a sign-in.
   *
   * @returns the secret for the browser's cookie, and where to send the browser
   * @throws ProviderUnavailable
   */
  async begin(): Promise<{ readonly secret: string; readonly url: URL }> {
    const secret = randomBytes(32).toString('hex');
    const url = await this.#ask(async (client, config) =>
      client.buildAuthorizationUrl(config, {
        redirect_uri: this.settings.redirectUri,
        scope: 'openid',
        state: derive(secret, 'state'),
        nonce: derive(secret, 'nonce'),
        code_challenge: await client.calculatePKCECodeChallenge(derive(secret, 'verifier')),
        code_challenge_method: 'S256',
        max_age: String(MAX_AGE_SECONDS),
      }),
    );
    return { secret, url };
  }

  /**
   * Ends a sign-in.
   *
   * @param secret - from the browser's cookie
   * @param answer - the query that the provider sent the browser back with
   * @throws SignInRefused, ProviderUnavailable
   */
  async finish(secret: string | undefined, answer: URLSearchParams): Promise<Identity> {
    if (secret === undefined || !isEqual(answer.get('state') ?? '', derive(secret, 'state'))) {
      throw new SignInRefused('the sign-in did not begin in this browser');
    }
    if (answer.has('error')) throw new SignInRefused('the provider signed nobody in');
    const claims = await this.#ask(async (client, config) => {
      const tokens = await client.authorizationCodeGrant(
        config,
        new URL(`?${answer.toString()}`, this.settings.redirectUri),
        {
          pkceCodeVerifier: derive(secret, 'verifier'),
          expectedState: derive(secret, 'state'),
          expectedNonce: derive(secret, 'nonce'),
          idTokenExpected: true,
        },
      );
      return tokens.claims();
    });
    if (claims === undefined) throw new ProviderUnavailable('there was no ID token');
    const { iss, sub, auth_time: authenticatedAt } = claims;
    // Providers that do not know max_age leave the time out.
    const longest = MAX_AGE_SECONDS + CLOCK_TOLERANCE_SECONDS;
    if (authenticatedAt !== undefined && authenticatedAt < Date.now() / 1_000 - longest) {
      throw new SignInRefused('the provider did not make sure who is there');
    }
    return { issuer: iss, subject: sub };
  }

  /** Bounds how many wait for the provider, and gives all its errors one type. */
  async #ask<T>(act: (client: typeof OpenIdClient, config: OpenIdClient.Configuration) => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) throw new ProviderUnavailable('too many sign-ins wait for the provider');
    this.#waiting += 1;
    try {
      // Loaded where it is used: most servers have no provider.
      const client = await import('openid-client');
      return await act(client, await this.#configuration(client));
    } catch (error) {
      throw toError(error);
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Sign-ins share one discovery. A failed one is tried again by the next sign-in. */
  async #configuration(client: typeof OpenIdClient): Promise<OpenIdClient.Configuration> {
    const known = this.#discovered;
    if (known !== undefined && Date.now() - known.at < DISCOVERY_LIFETIME_MS) return known.config;
    this.#discovering ??= this.#discover(client).finally(() => (this.#discovering = undefined));
    try {
      return await this.#discovering;
    } catch (error) {
      if (known === undefined) throw error;
      return known.config;
    }
  }

  async #discover(client: typeof OpenIdClient): Promise<OpenIdClient.Configuration> {
    const { issuer, clientId, clientSecret } = this.settings;
    const config = await client.discovery(
      new URL(issuer),
      clientId,
      clientSecret,
      // RFC 6749, section 2.3.1: every provider takes it.
      client.ClientSecretBasic(clientSecret),
      {
        timeout: TIMEOUT_SECONDS,
        // The settings allow http for a provider on this machine alone. The package marks this only to make it stand out.
        // oxlint-disable-next-line typescript/no-deprecated
        ...(issuer.startsWith('http:') && { execute: [client.allowInsecureRequests] }),
      },
    );
    this.#discovered = { config, at: Date.now() };
    return config;
  }
}

/** HMAC: what the provider and the browser's history see of a secret does not tell the secret. */
function derive(secret: string, purpose: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', secret).update(purpose).digest('base64url');
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

/** The message of an error may be logged. Its cause may not: it holds codes and answers of the provider. */
function toError(error: unknown): Error {
  if (error instanceof ProviderUnavailable || error instanceof SignInRefused) return error;
  if (!(error instanceof Error)) return new ProviderUnavailable('unknown');
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  const reason = 'error' in error && typeof error.error === 'string' ? ` (${error.error})` : '';
  // A code that is spent, or not for this client.
  if (reason === ' (invalid_grant)') return new SignInRefused('the provider refused the code');
  return new ProviderUnavailable(`${code}${error.message}${reason}`);
}
