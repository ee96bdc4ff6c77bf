/** Bound on the check, in milliseconds. */
const TIMEOUT_MS = 2_000;

/**
 * Whether an OpenID Connect provider serves its description, which each sign-in begins with (Discovery, section 4).
 *
 * @param issuer - as configured
 */
export async function isProviderUp(issuer: string): Promise<boolean> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' });
    const description = (await response.json()) as { readonly issuer?: unknown } | null;
    return response.ok && description?.issuer === issuer;
  } catch {
    return false;
  }
}
