import type { Fault } from '../../fault.js';

const SIGN_IN = 'test/site/settings/sign-in.test.ts';
const FORGERY = 'test/site/settings/forgery.test.ts';
const OIDC = 'test/site/settings/oidc.test.ts';
const SESSIONS = 'test/accounts/sessions.test.ts';
const IDENTITIES = 'test/accounts/identities.test.ts';
const LINKS = 'test/accounts/sign-in-links.test.ts';

/** Faults in what lets a developer into the settings, and keeps others out. */
export const ACCOUNTS_FAULTS: readonly Fault[] = [
  {
    name: 'accounts-link-twice',
    promise: 'A sign-in link works once.',
    edits: [
      {
        file: 'src/accounts/sign-in-links.ts',
        from: 'delete from sign_in_links where hash = ? and expires_at > now() returning developer_id',
        to: 'select developer_id from sign_in_links where hash = ? and expires_at > now()',
      },
    ],
    suites: [LINKS],
  },
  {
    name: 'accounts-link-for-ever',
    promise: 'A sign-in link works for ten minutes.',
    edits: [{ file: 'src/accounts/sign-in-links.ts', from: ' and expires_at > now()', to: '' }],
    suites: [LINKS],
  },
  {
    name: 'accounts-link-in-clear',
    promise: 'The database has the hash of a link alone.',
    edits: [
      {
        file: 'src/accounts/tokens.ts',
        from: "return { token, hash: hash('sha256', token, 'buffer') };",
        to: "return { token, hash: Buffer.from(token, 'hex') };",
      },
      {
        file: 'src/accounts/tokens.ts',
        from: "TOKEN_FORMAT.test(text) ? hash('sha256', text, 'buffer') : undefined",
        to: "TOKEN_FORMAT.test(text) ? Buffer.from(text, 'hex') : undefined",
      },
    ],
    suites: [LINKS],
  },
  {
    name: 'accounts-link-by-get',
    promise: 'Opening a link signs nobody in: programs open links in messages.',
    edits: [
      {
        file: 'src/site/sign-in/sign-in-link.tsx',
        from: "  router.get('/sign-in/link/:token', (ctx) => {",
        to: "  router.get('/sign-in/link/:token', async (ctx) => {\n    await spendSignInLink(db, (ctx.params as { token?: string }).token);",
      },
    ],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-link-in-the-log',
    promise: 'The log has no token of a link.',
    edits: [
      {
        file: 'src/http/telemetry/record-requests.ts',
        from: 'const isFound = operation !== undefined &&',
        to: 'const isFound = (operation !== undefined || caller === undefined) &&',
      },
    ],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-link-in-the-referer',
    promise: 'The page of a link does not hand the link on.',
    edits: [
      { file: 'src/site/sign-in/sign-in-link.tsx', from: "ctx.set('Referrer-Policy', 'strict-origin');", to: '' },
    ],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-no-limit-on-attempts',
    promise: 'An address that fails often is refused.',
    edits: [
      { file: 'src/site/sign-in/sign-in-link.tsx', from: "attempt.kind === 'over_limit'", to: 'Math.random() > 1' },
    ],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-session-fixed',
    promise: 'A sign-in ends the session that the browser had before: somebody else may know it.',
    edits: [{ file: 'src/accounts/sessions.ts', from: 'await removeSession(db, details.replaced);', to: '' }],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-session-idle-for-ever',
    promise: 'A session that nobody uses ends.',
    edits: [
      {
        file: 'src/accounts/sessions.ts',
        from: "s.last_seen_at > now() - interval '${IDLE_HOURS} hours'",
        to: 's.last_seen_at is not null',
      },
    ],
    suites: [SESSIONS],
  },
  {
    name: 'accounts-session-used-for-ever',
    promise: 'A session ends thirty days after its sign-in, however much it is used.',
    edits: [
      {
        file: 'src/accounts/sessions.ts',
        from: "s.signed_in_at > now() - interval '${ABSOLUTE_DAYS} days'",
        to: 's.signed_in_at is not null',
      },
    ],
    suites: [SESSIONS],
  },
  {
    name: 'accounts-recent-by-use',
    promise: 'What is recent is the sign-in, not the use.',
    edits: [
      {
        file: 'src/accounts/sessions.ts',
        from: "s.signed_in_at > now() - interval '${RECENT_MINUTES} minutes'",
        to: "s.last_seen_at > now() - interval '${RECENT_MINUTES} minutes'",
      },
    ],
    suites: [SESSIONS],
  },
  {
    name: 'accounts-session-of-another',
    promise: 'A developer ends the own sessions alone.',
    edits: [
      {
        file: 'src/accounts/sessions.ts',
        from: "'delete from sessions where id = ? and developer_id = ?',\n      [id, developerId],",
        to: "'delete from sessions where id = ?',\n      [id],",
      },
    ],
    suites: [SESSIONS, SIGN_IN],
  },
  {
    name: 'accounts-cookie-for-scripts',
    promise: 'No script reads the cookie of a session.',
    edits: [{ file: 'src/site/sign-in/cookies.ts', from: 'httpOnly: true', to: 'httpOnly: false' }],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-cookie-without-tls',
    promise: 'The cookie of a session goes by https alone, except on this machine.',
    edits: [{ file: 'src/site/sign-in/cookies.ts', from: "startsWith('https:')", to: "startsWith('https://?')" }],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-forged-forms',
    promise: 'A form that another site has made a browser send is refused.',
    edits: [{ file: 'src/site/delivery/form.ts', from: '  requireSameOrigin(ctx);\n', to: '' }],
    suites: [FORGERY],
  },
  {
    name: 'accounts-forged-without-fields',
    promise: 'A form of which nobody knows where it comes from is refused.',
    edits: [
      {
        file: 'src/site/delivery/form.ts',
        from: "ctx.get('Origin') === url",
        to: "['', url].includes(ctx.get('Origin'))",
      },
    ],
    suites: [FORGERY],
  },
  {
    name: 'accounts-forged-same-site',
    promise: 'Another host of the same domain counts as another site.',
    edits: [
      {
        file: 'src/site/delivery/form.ts',
        from: "['same-origin', 'none']",
        to: "['same-origin', 'same-site', 'none']",
      },
    ],
    suites: [FORGERY],
  },
  {
    name: 'accounts-forged-by-host',
    promise: 'A name that a client has given the service is not the public URL.',
    edits: [
      {
        file: 'src/site/delivery/form.ts',
        from: "ctx.get('Origin') === url",
        to: "ctx.get('Origin') === `http://${ctx.get('Host')}`",
      },
    ],
    suites: [FORGERY],
  },
  {
    name: 'accounts-open-redirect',
    promise: 'A sign-in leads to a page of the settings alone.',
    edits: [
      { file: 'src/site/sign-in/return-to.ts', from: 'SETTINGS_PATH.test(path) ? path', to: "path !== '' ? path" },
    ],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-signed-out-in-name-only',
    promise: 'Signing out ends the session, not only the cookie.',
    edits: [
      {
        file: 'src/site/settings/settings.tsx',
        from: "await endSession(parts.db, readCookie(ctx, 'session'));",
        to: '',
      },
    ],
    suites: [SIGN_IN],
  },
  {
    name: 'accounts-oidc-any-browser',
    promise: 'A sign-in at the provider ends in the browser that began it.',
    edits: [
      {
        file: 'src/accounts/oidc-provider.ts',
        from: 'state.length === expected.length && timingSafeEqual(state, expected)',
        to: 'state.length > 0',
      },
      {
        file: 'src/accounts/oidc-provider.ts',
        from: "expectedState: derive(secret, 'state'),",
        to: "expectedState: answer.get('state') ?? '',",
      },
    ],
    suites: [OIDC],
  },
  {
    name: 'accounts-oidc-any-nonce',
    promise: 'An identity counts only for the sign-in that it was confirmed for.',
    edits: [
      {
        file: 'src/accounts/oidc-provider.ts',
        from: "        nonce: derive(secret, 'nonce'),\n",
        to: '',
      },
      { file: 'src/accounts/oidc-provider.ts', from: "          expectedNonce: derive(secret, 'nonce'),\n", to: '' },
    ],
    suites: [OIDC],
  },
  {
    name: 'accounts-oidc-spent-twice',
    promise: 'A sign-in at the provider costs it one request for a token.',
    edits: [
      {
        file: 'src/accounts/identities.ts',
        from: 'on conflict do nothing`,\n    [hash',
        to: 'on conflict (hash) do update set expires_at = excluded.expires_at`,\n    [hash',
      },
    ],
    suites: [OIDC, IDENTITIES],
  },
  {
    name: 'accounts-oidc-one-address-takes-all',
    promise: 'One address does not take the provider from others.',
    edits: [{ file: 'src/site/sign-in/oidc.tsx', from: 'perAddress: 10', to: 'perAddress: 1_000' }],
    suites: [OIDC],
  },
  {
    name: 'accounts-oidc-unbounded',
    promise: 'A bounded number of sign-ins wait for the provider.',
    edits: [{ file: 'src/site/sign-in/oidc.tsx', from: 'running: 20', to: 'running: 2_000' }],
    suites: [OIDC],
  },
  {
    name: 'accounts-unlinked-while-signing-in',
    promise: 'No session starts by an identity that is unlinked.',
    edits: [{ file: 'src/accounts/identities.ts', from: '    .forKeyShare()\n', to: '' }],
    suites: [IDENTITIES],
  },
  {
    name: 'accounts-oidc-by-subject',
    promise: 'An identity is issuer and subject together.',
    edits: [
      {
        file: 'src/accounts/identities.ts',
        from: ".select<{ developerId: number }[]>({ developerId: 'developer_id' })\n    .where({ issuer, subject })\n    .forKeyShare()",
        to: ".select<{ developerId: number }[]>({ developerId: 'developer_id' })\n    .where({ ...(issuer && {}), subject })",
      },
    ],
    suites: [IDENTITIES],
  },
  {
    name: 'accounts-oidc-waits-for-ever',
    promise: 'A provider that does not answer is given up after a few seconds.',
    edits: [
      { file: 'src/accounts/oidc-provider.ts', from: 'const TIMEOUT_SECONDS = 3;', to: 'const TIMEOUT_SECONDS = 15;' },
    ],
    suites: [OIDC],
  },
  {
    name: 'accounts-oidc-in-turn-with-pages',
    promise: 'Pages do not wait for sign-ins that wait for the provider.',
    edits: [
      { file: 'src/site/site.ts', from: '  addOidc(router, parts);\n', to: '' },
      {
        file: 'src/site/site.ts',
        from: '  addLandingPage(router, parts);\n',
        to: '  addOidc(router, parts);\n  addLandingPage(router, parts);\n',
      },
    ],
    suites: [OIDC],
  },
];
