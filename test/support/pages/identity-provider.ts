import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type OidcProvider from 'oidc-provider';
import { freePort } from '../programs/free-port.js';

/** An OpenID Connect provider on this machine, at which everybody is signed in at once. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Who signs in next: the subject. */
  subject: string;
  /** How long ago people signed in there, in seconds. */
  signedInAgo: number;
  /** How it answers: as it should, not at all, or with something else. */
  state: 'up' | 'silent' | 'nonsense' | 'failing';
  /** What it answers to requests for a token in place of one, with 400. */
  tokenError: object | undefined;
  /** Whether it has another secret for this service than {@link clientSecret}. */
  knowsOtherSecret: boolean;
  /** Whether it describes itself with the least that it may: `auth_time` is not among its claims. */
  isTerse: boolean;
  /** How many requests it has got, and how many of those were for a token. */
  requests: number;
  tokenRequests: number;
  /** Closes all connections, including any that wait for an answer. */
  cutConnections(): void;
  /** Takes it away, as if its machine was off. */
  stop(): Promise<void>;
}

/** Signs in with an empty subject. */
export const NO_SUBJECT = 'without a subject';

/** What the provider keeps, and for how long. */
const ARTIFACTS = ['AccessToken', 'AuthorizationCode', 'Grant', 'IdToken', 'Interaction', 'Session'];
const LIFETIME_SECONDS = 600;

/** Shared by the providers of this process, since a key of this kind takes long to make. */
const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });

/** Loads the package without the warning that it prints for Node.js 20. */
async function loadProvider(): Promise<typeof OidcProvider> {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    return (await import('oidc-provider')).default;
  } finally {
    console.warn = warn;
  }
}

/** How a provider takes the secret of a client. */
export type ClientAuth = 'client_secret_basic' | 'client_secret_post';

/** Starts a provider that knows one client. @param redirectUri - of the client */
export async function startIdentityProvider(
  redirectUri: string,
  clientAuth: ClientAuth = 'client_secret_basic',
): Promise<IdentityProvider> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const [clientId, clientSecret] = ['catalog', 'a secret: with characters that are encoded +/%'];
  const Provider = await loadProvider();
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: clientAuth,
        subject_type: 'pairwise',
      },
    ],
    clientAuthMethods: [clientAuth],
    subjectTypes: ['pairwise'],
    pairwiseIdentifier: (_ctx, id) => (id === NO_SUBJECT ? '' : id),
    cookies: { keys: ['test'] },
    jwks: { keys: [signingKey] },
    ttl: Object.fromEntries(ARTIFACTS.map((name) => [name, LIFETIME_SECONDS])),
    features: { devInteractions: { enabled: false } },
    // Nobody is asked for consent.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        ...(oidc.client && { clientId: oidc.client.clientId }),
        ...(oidc.session?.accountId !== undefined && { accountId: oidc.session.accountId }),
      });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => Promise.resolve({ sub: id }) }),
  });
  const handle = provider.callback();
  const server = createServer((request, response) => void answer(request, response));
  const self: IdentityProvider = {
    issuer,
    clientId,
    clientSecret,
    subject: 'ann',
    signedInAgo: 0,
    state: 'up',
    tokenError: undefined,
    knowsOtherSecret: false,
    isTerse: false,
    requests: 0,
    tokenRequests: 0,
    cutConnections: () => server.closeAllConnections(),
    async stop() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    self.requests += 1;
    if (request.url === '/token') self.tokenRequests += 1;
    if (request.url === '/token' && self.knowsOtherSecret) {
      request.headers.authorization = `Basic ${Buffer.from(`${clientId}:another`).toString('base64')}`;
    }
    if (self.state === 'silent') return;
    if (self.state === 'failing') {
      response.writeHead(500).end('{}');
    } else if (self.state === 'nonsense') {
      answerJson(response, 200, { issuer: 'https://other.example' });
    } else if (request.url?.startsWith('/interaction/') === true) {
      await provider.interactionFinished(request, response, {
        login: { accountId: self.subject, ts: Math.floor(Date.now() / 1_000) - self.signedInAgo },
      });
    } else if (self.isTerse && request.url === '/.well-known/openid-configuration') {
      const [authorization_endpoint, token_endpoint, jwks_uri] = ['auth', 'token', 'jwks'].map(
        (it) => `${issuer}/${it}`,
      );
      answerJson(response, 200, { issuer, authorization_endpoint, token_endpoint, jwks_uri });
    } else if (request.url === '/token' && clientAuth === 'client_secret_post' && request.headers.authorization) {
      // The package itself takes either.
      answerJson(response, 401, { error: 'invalid_client' });
    } else if (self.tokenError !== undefined && request.url === '/token') {
      answerJson(response, 400, self.tokenError);
    } else await handle(request, response);
  }

  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return self;
}

function answerJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
