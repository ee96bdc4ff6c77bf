import { createHmac, timingSafeEqual } from 'node:crypto';
import * as client from 'openid-client';
import type { Identity } from './identities.js';
import { shareWhilePending } from '../platform/async/share-while-pending.js';
import { generateToken } from './tokens.js';

/** Bound on each request to the provider, in seconds. A sign-in takes three at most: discovery, token, keys. */
const TIMEOUT_SECONDS = 3;

/** The provider must have authenticated the person within this time, in seconds (`max_age`). */
const MAX_AGE_SECONDS = 900;

/** How a provider may take the client secret: by HTTP Basic, which is the default, or in the body. */
const [BASIC, POST] = ['client_secret_basic', 'client_secret_post'] as const;

/** Tolerated difference of the provider's clock, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 60;

/** The provider does not respond, or not correctly. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable';
}

/** The provider responds, but not to this service: its client id or secret is wrong or has expired. */
export class ClientRefused extends Error {
  override readonly name = 'ClientRefused';
}

/** The person or the provider declined, or another browser began the sign-in. */
export class SignInRefused extends Error {
  override readonly name = 'SignInRefused';

  /** @param message - for the person */
  constructor(
    message = 'Your provider refused the sign-in, or the sign-in took too long or was started in another browser. Open the sign-in page and try again.',
  ) {
    super(message);
  }
}

/** This service at a provider. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string;
}

/**
 * An identity provider (OpenID Connect): discovery, authorization code flow, PKCE, state and nonce, by openid-client.
 *
 * A sign-in in progress is a random secret in the browser's cookie, and nothing on the server. State, nonce and PKCE
 * verifier are derived from the secret, which binds them to that browser. Knowing one does not reveal another.
 *
 * The provider gets no request before somebody signs in. Its description is read once.
 */
export class OidcProvider {
  /** The provider's description. */
  #discovered: client.Configuration | undefined;
  #hasWarned = false;

  /** @param warn - logs a shortcoming of the provider, once */
  constructor(
    private readonly settings: OidcSettings,
    private readonly warn: (message: string) => void,
  ) {}

  /** Whether {@link begin} needs no request to the provider. */
  get isDiscovered(): boolean {
    return this.#discovered !== undefined;
  }

  /**
   * Begins a sign-in.
   *
   * @returns the secret for the browser's cookie, and where to send the browser
   * @throws ProviderUnavailable
   */
  async begin(): Promise<{ readonly secret: string; readonly url: URL }> {
    const secret = generateToken().token;
    const url = await this.#ask(async (config) =>
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
   * Whether the returning browser has begun the sign-in. Check this first: it costs nothing.
   *
   * @param secret - from the browser's cookie
   * @param answer - the query that the provider sent the browser back with
   */
  isReturn(secret: string, answer: URLSearchParams): boolean {
    const state = Buffer.from(answer.get('state') ?? '');
    const expected = Buffer.from(derive(secret, 'state'));
    return state.length === expected.length && timingSafeEqual(state, expected);
  }

  /**
   * Ends a sign-in that {@link isReturn} accepts.
   *
   * @param secret - from the browser's cookie
   * @param answer - the query that the provider sent the browser back with
   * @throws SignInRefused, ProviderUnavailable, ClientRefused
   */
  async finish(secret: string, answer: URLSearchParams): Promise<Identity> {
    if (answer.has('error')) throw new SignInRefused();
    const { claims, listsAuthTime } = await this.#ask(async (config) => {
      const metadata = config.serverMetadata();
      if (!isCodeResponse(answer, metadata)) throw new SignInRefused();
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
      return { claims: tokens.claims(), listsAuthTime: metadata.claims_supported?.includes('auth_time') === true };
    });
    if (claims === undefined) throw new ProviderUnavailable('there was no ID token');
    this.#requireRecent(claims.auth_time, listsAuthTime);
    return { issuer: claims.iss, subject: claims.sub };
  }

  /**
   * OpenID Connect requires `auth_time` in reply to `max_age`. A provider that does not support the claim is trusted to
   * have checked. If a provider lists it among its claims but omits it, somebody has probably removed `max_age` from the
   * address in the browser.
   */
  #requireRecent(authTime: number | undefined, listsAuthTime: boolean): void {
    if (authTime === undefined && !this.#hasWarned) {
      this.#hasWarned = true;
      this.warn(
        listsAuthTime
          ? 'refused a sign-in: the identity provider lists auth_time among its claims but omitted it; if this affects everybody, configure it to send auth_time'
          : 'the identity provider does not support auth_time: every sign-in by it counts as recent, however old the session there is',
      );
    }
    const earliest = Date.now() / 1_000 - MAX_AGE_SECONDS - CLOCK_TOLERANCE_SECONDS;
    if (authTime === undefined ? listsAuthTime : authTime < earliest) {
      throw new SignInRefused(
        'Your provider did not confirm that you signed in there within the last 15 minutes. Sign out at your provider, then try again.',
      );
    }
  }

  /** Turns every error into {@link ProviderUnavailable}, {@link ClientRefused} or {@link SignInRefused}. */
  async #ask<T>(act: (config: client.Configuration) => Promise<T>): Promise<T> {
    try {
      return await act((this.#discovered ??= await this.#discover()));
    } catch (error) {
      throw toError(error);
    }
  }

  readonly #discover = shareWhilePending(async (): Promise<client.Configuration> => {
    const { issuer, clientId, clientSecret } = this.settings;
    const [basic, post] = [client.ClientSecretBasic(clientSecret), client.ClientSecretPost(clientSecret)];
    // Basic, unless the provider takes only the other (Discovery, section 3).
    const authentication: client.ClientAuth = (server, ...rest) => {
      const methods = server.token_endpoint_auth_methods_supported ?? [BASIC];
      const authenticate = !methods.includes(BASIC) && methods.includes(POST) ? post : basic;
      authenticate(server, ...rest);
    };
    return client.discovery(new URL(issuer), clientId, clientSecret, authentication, {
      timeout: TIMEOUT_SECONDS,
      // The settings allow http only for a provider on this machine. The package deprecates this only to make it stand
      // out.
      // oxlint-disable-next-line typescript/no-deprecated
      ...(issuer.startsWith('http:') && { execute: [client.allowInsecureRequests] }),
    });
  });
}

/**
 * Whether a query can come from the provider. openid-client checks this too, but its errors do not distinguish a forged
 * query from a fault of the provider. Only the latter belongs in the log.
 */
function isCodeResponse(answer: URLSearchParams, provider: client.ServerMetadata): boolean {
  const names = [...answer.keys()];
  const isNamed = provider.authorization_response_iss_parameter_supported === true;
  return (
    new Set(names).size === names.length &&
    (answer.get('code') ?? '') !== '' &&
    !['response', 'token', 'id_token'].some((name) => answer.has(name)) &&
    (answer.get('iss') ?? (isNamed ? '' : provider.issuer)) === provider.issuer
  );
}

/** HMAC: the values that the provider and the browser's history see do not reveal the secret. */
function derive(secret: string, purpose: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', secret).update(purpose).digest('base64url');
}

/** The message of an error may be logged. Its cause may not: it has codes and responses of the provider. */
function toError(error: unknown): Error {
  if ([ProviderUnavailable, ClientRefused, SignInRefused].some((known) => error instanceof known))
    return error as Error;
  if (!(error instanceof Error)) return new ProviderUnavailable('unknown');
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  // Only an error code of OAuth, no other text of the provider.
  const reason = /^[a-z_]{1,40}$/.exec(('error' in error && String(error.error)) || '')?.[0];
  // The code was used before, or belongs to another client.
  if (reason === 'invalid_grant') return new SignInRefused();
  // A challenge answers a client that authenticates by HTTP Basic.
  if (reason === 'invalid_client' || reason === 'unauthorized_client' || code.includes('WWW_AUTHENTICATE')) {
    return new ClientRefused('the provider does not accept OIDC_CLIENT_ID and OIDC_CLIENT_SECRET');
  }
  return new ProviderUnavailable(`${code}${error.message}${reason === undefined ? '' : ` (${reason})`}`);
}
