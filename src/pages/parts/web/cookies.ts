import type { PageContext } from '../context.js';

/** The cookies of the site. */
const COOKIES = [
  /** The token of the session. */
  'session',
  /** The page to return to after sign-in. */
  'return-to',
  /** The last action or interruption, until a page has shown it. */
  'notice',
  /** The secret of a sign-in at the identity provider that has not ended yet. */
  'oidc',
  /** The challenge that a passkey is to sign. */
  'passkey',
  /** The token of an identity that has no project yet. */
  'sign-up',
] as const;

type CookieName = (typeof COOKIES)[number];

/** @returns the value of a cookie; undefined if the browser did not send it */
export function readCookie(ctx: PageContext, name: CookieName): string | undefined {
  return ctx.cookies.get(nameOf(ctx, name));
}

/**
 * Sets a cookie for this origin only, which neither scripts nor other sites can read. SameSite=Lax, since the redirect
 * back from an identity provider needs it.
 *
 * @param value - undefined to remove the cookie
 * @param seconds - how long the browser keeps it
 */
export function setCookie(ctx: PageContext, name: CookieName, value: string | undefined, seconds = 0): void {
  const secure = isSecure(ctx);
  // A proxy ends TLS, so the connection itself is plain.
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

/** Removes every cookie of the site that the browser sent. */
export function removeCookies(ctx: PageContext): void {
  for (const name of COOKIES) if (readCookie(ctx, name) !== undefined) setCookie(ctx, name, undefined);
}

/**
 * With the prefix `__Host-` a browser refuses a cookie set by another host of the same domain. The prefix needs
 * `Secure`, which browsers drop on plain http, so a service on loopback does without.
 */
function nameOf(ctx: PageContext, name: CookieName): string {
  return isSecure(ctx) ? `__Host-${name}` : `catalog-${name}`;
}

/** PUBLIC_URL is https, except on loopback. */
function isSecure({ state }: PageContext): boolean {
  return state.site.publicUrl().startsWith('https:');
}
