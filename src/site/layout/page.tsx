import type { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import type { PageContext, SiteOptions } from '../context.js';
import { Representation } from '../../http/response/representation.js';
import { Layout, type PageDescription } from './layout.js';

export const HTML = 'text/html; charset=utf-8';

/** How a page is answered. */
export interface PageOptions extends PageDescription {
  /** 200 where it is left out. */
  readonly status?: number;
}

/**
 * Answers with a page for this request alone. It is not cached, and not compressed: compression would leak a secret beside
 * text that the client chose.
 *
 * @example page(ctx, { title: 'API keys', section: 'settings' }, <KeyList keys={keys} />);
 */
export function page(ctx: PageContext, options: PageOptions, body: ComponentChildren): void {
  ctx.status = options.status ?? 200;
  ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': HTML });
  ctx.body = renderPage(ctx.state.site, options, body);
}

/** Makes a page that is the same for everybody and may be cached. */
export function publicPage(site: SiteOptions, description: PageDescription, body: ComponentChildren): Representation {
  return new Representation(renderPage(site, description, body), HTML);
}

/** @returns the HTML of a page */
export function renderPage(site: SiteOptions, description: PageDescription, body: ComponentChildren): string {
  return `<!doctype html>\n${render(
    <Layout files={site.files} {...description}>
      {body}
    </Layout>,
  )}\n`;
}
