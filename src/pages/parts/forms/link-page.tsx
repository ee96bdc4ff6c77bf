import type { PageContext, PageRouter } from '../context.js';
import { formParser, FormActions } from './form.js';
import { page } from '../frame/page.js';

interface LinkPage {
  /** Where the links lead, before their token, and where the form is sent. */
  readonly path: string;
  /** The pages that the link opens. */
  readonly opens: string;
  readonly isValid: (token: string) => Promise<boolean>;
  /** Answers for a link that is not valid, or throws. */
  readonly refuse: (ctx: PageContext) => Promise<void> | void;
}

/**
 * Adds the page of sign-in links. It only shows a button, since malware scanners open the links in messages, or that the
 * link no longer works.
 */
export function addLinkPage(router: PageRouter, { path, opens, isValid, refuse }: LinkPage): void {
  router.get(`${path}/:token`, async (ctx) => {
    // Keeps the token out of the Referer of the files that the page loads.
    ctx.set('Referrer-Policy', 'strict-origin');
    const { token = '' } = ctx.params as { token?: string };
    if (!(await isValid(token))) {
      await refuse(ctx);
      return;
    }
    page(
      ctx,
      { title: 'Sign in', section: 'settings', isCard: true },
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
