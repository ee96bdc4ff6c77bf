import assert from 'node:assert/strict';
import { Visitor } from '../../support/http/visitor.js';
import { freePort } from '../../support/programs/free-port.js';
import {
  startIdentityProvider,
  type ClientAuth,
  type IdentityProvider,
} from '../../support/pages/identity-provider.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

/** Where the provider sends the browser back to. */
export const CALLBACK = '/sign-in/oidc/callback';

/**
 * Starts a provider.
 *
 * @param host - by which people reach the service; passkeys need a name
 * @returns it and the settings of a service that signs developers in by it
 */
export async function startProvider(
  signUp: 'on' | 'off',
  host: '127.0.0.1' | 'localhost' = '127.0.0.1',
  clientAuth?: ClientAuth,
): Promise<{ provider: IdentityProvider; settings: Record<string, string> }> {
  const port = await freePort();
  const url = `http://${host}:${port}`;
  const provider = await startIdentityProvider(url + CALLBACK, clientAuth);
  return {
    provider,
    settings: {
      PORT: String(port),
      PUBLIC_URL: url,
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: provider.clientSecret,
      OIDC_SIGN_UP: signUp,
    },
  };
}

/**
 * A service that signs developers in by a provider. Stop both.
 *
 * @param signUp - whether an unknown identity may sign up
 */
export async function startWithProvider(
  signUp: 'on' | 'off',
  clientAuth?: ClientAuth,
): Promise<{ service: TestService; provider: IdentityProvider }> {
  const { provider, settings } = await startProvider(signUp, undefined, clientAuth);
  return { service: await startService({ trustedProxies: 1, settings }), provider };
}

/** A person with a browser, who is at the service and at the provider. Each has an address of its own. */
export class Person {
  static #last = 0;

  readonly here: Visitor;
  readonly there: Visitor;

  constructor(
    service: { readonly url: string },
    private readonly provider: IdentityProvider,
    readonly subject: string,
  ) {
    this.here = new Visitor(service.url, from((Person.#last += 1)));
    this.there = new Visitor(provider.issuer);
  }

  /** @returns where the service sends the browser */
  async begin(): Promise<URL> {
    const { status, headers } = await this.here.get('/sign-in/oidc');
    assert.equal(status, 303);
    return new URL(headers.location ?? '');
  }

  /** Signs in at the provider. @returns the path and query with which the browser comes back */
  async answer(url: URL): Promise<string> {
    this.provider.subject = this.subject;
    let path = url.pathname + url.search;
    for (let step = 0; step < 8; step += 1) {
      const { headers, text } = await this.there.get(path);
      const next = new URL(headers.location ?? assert.fail(text), this.provider.issuer);
      path = next.pathname + next.search;
      if (next.origin !== this.provider.issuer) return path;
    }
    return assert.fail('the provider does not come to an end');
  }

  async signIn(): Promise<Reply> {
    return this.here.get(await this.answer(await this.begin()));
  }
}

/** @returns the header by which the proxy in front names an address */
export function from(number: number): Record<string, string> {
  return { 'x-forwarded-for': `10.0.${number >> 8}.${number & 255}` };
}
