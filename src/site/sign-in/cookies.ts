import type { PageContext } from '../context.js';

/** What a browser keeps for us. */
type CookieName =
  /** The token of the session. */
  | 'session'
  /** The path to come back to after a sign-in. */
  | 'come-back'
  /** The secret of a sign-in at the provider of identities, which is under way. */
  | 'oidc'
  /** The token of an identity that has no project yet. */
  | 'sign-up';

/** @returns the value of a cookie; undefined where the browser sent none */
export function readCookie(ctx: PageContext, name: CookieName): string | undefined {
  return ctx.cookies.get(nameOf(ctx, name));
}

/**
 * Makes the browser keep a cookie for this origin alone. Neither scripts nor other sites can read it. A link from
 * another site sends it too, so that the return from a provider of identities has it.
 *
 * @param value - undefined to remove the cookie
 * @param seconds - how long the browser keeps it
 */
export function setCookie(ctx: PageContext, name: CookieName, value: string | undefined, seconds = 0): void {
  const secure = isSecure(ctx);
  // The proxy in front ends TLS, so the connection does not tell.
  ctx.cookies.secure = secure;
  ctx.cookies.set(nameOf(ctx, name), value ?? '', {
    httpOnly: true,
    secure,
    sameSite: 'lax',
    path: '/',
    overwrite: true,
    ...(value !== undefined && { maxAge: seconds * 1_000 }),
  });
}

/**
 * The prefix `__Host-` makes the browser refuse a cookie that another host of the same domain has set. It needs `Secure`,
 * which browsers drop on plain http, so a service on this machine alone does without.
 */
function nameOf(ctx: PageContext, name: CookieName): string {
  return isSecure(ctx) ? `__Host-${name}` : `catalog-${name}`;
}

/** PUBLIC_URL is https, except on this machine. */
function isSecure({ state }: PageContext): boolean {
  return state.site.publicUrl().startsWith('https:');
}
