import type { PageContext } from '../context.js';
import { PageError } from '../layout/error-page.js';

/**
 * Refuses a request that another site has made a browser send (cross-site request forgery). A browser says where a request
 * comes from in `Sec-Fetch-Site`. Browsers before 2023, and all on plain http, only say so in `Origin`. This is the rule of
 * `net/http.CrossOriginProtection` in Go 1.25, except that a form without either field is refused.
 *
 * @throws PageError 403
 */
export function requireSameOrigin(ctx: PageContext): void {
  const site = ctx.get('Sec-Fetch-Site');
  const origin = ctx.get('Origin');
  if (site !== '') {
    // "none": the person has asked for it, by the address bar or a bookmark.
    if (site === 'same-origin' || site === 'none') return;
  } else if (origin === ctx.state.site.publicUrl()) return;
  throw new PageError(
    403,
    'Refused',
    `This request does not come from a page of this service. Open ${ctx.state.site.publicUrl()} and try again there.`,
  );
}
