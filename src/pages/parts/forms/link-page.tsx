import type { PageRouter } from '../context.js';
import { formParser, FormActions } from './form.js';
import { page } from '../frame/page.js';

interface LinkPage {
  /** Where the links lead, before their token, and where the form is sent. */
  readonly path: string;
  /** The pages that the link opens. */
  readonly opens: string;
}

/**
 * Adds the page of sign-in links. It only shows a button, since malware scanners open the links in messages. It is the
 * same for every token and takes no query.
 */
export function addLinkPage(router: PageRouter, { path, opens }: LinkPage): void {
  router.get(`${path}/:token`, (ctx) => {
    // Keeps the token out of the Referer of the files that the page loads.
    ctx.set('Referrer-Policy', 'strict-origin');
    const { token = '' } = ctx.params as { token?: string };
    page(
      ctx,
      { title: 'Sign in', section: 'settings' },
      <>
        <p>Sign in to {opens} in this browser. This link works only once.</p>
        <form method="post" action={path}>
          <input type="hidden" name="token" value={token} />
          <FormActions label="Sign in" />
        </form>
      </>,
    );
  });
}

/** Reads the form of that page. */
export const readLink = formParser({ token: { schema: {} } });
