/** Where a provider of identities sends the browser back to: to be registered there, under PUBLIC_URL. */
export const OIDC_CALLBACK = '/sign-in/oidc/callback';
