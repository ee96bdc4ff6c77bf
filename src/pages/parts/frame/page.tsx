import { setImmediate } from 'node:timers/promises';
import type { ComponentChildren, VNode } from 'preact';
import { render } from 'preact-render-to-string';
import type { PageContext, PageDescription, PageFrame } from '../context.js';
import { returnAddress } from '../web/addresses.js';
import { Representation } from '../../../http/response/representation.js';
import { BrandMark, Layout } from './document.js';
import { Deployment } from '../content/components.js';

export const HTML = 'text/html; charset=utf-8';

/** How a page is answered. */
export interface PageOptions extends PageDescription {
  /** 200 by default. */
  readonly status?: number | undefined;
}

interface ColumnOptions extends PageOptions {
  /** Whether the column is a card with the mark of the service, for the few lines of a sign-in. */
  readonly isCard?: boolean;
}

/**
 * Answers with a page of one column under its title, made only for this request.
 *
 * @example page(ctx, { title: 'Sign in', section: 'settings', isCard: true }, <WaysToSignIn />);
 */
export function page(
  ctx: PageContext,
  { isCard = false, ...options }: ColumnOptions,
  children: ComponentChildren,
): void {
  answerPage(
    ctx,
    options,
    <div class="container">
      <div class={isCard ? 'column card sign-in' : 'column'}>
        {isCard && <BrandMark />}
        <h1>{options.title}</h1>
        {children}
      </div>
    </div>,
  );
}

/**
 * Answers with a page that is made only for this request. It is neither cached nor compressed: compression would leak a
 * secret next to text that the client chose.
 */
export function answerPage(
  ctx: PageContext,
  { status = 200, hasErrors = status === 422, ...description }: PageOptions,
  body: ComponentChildren,
): void {
  ctx.status = status;
  ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': HTML });
  // A browser that goes back to the answer to a form would ask whether to send it again, or show an error.
  const address = ctx.method === 'POST' ? (description.address ?? returnAddress(ctx)) : undefined;
  ctx.body = renderPage(ctx.state.site, { ...description, hasErrors, address }, body);
}

/** Makes a page that is the same for everybody and may be cached. */
export function publicPage(site: PageFrame, description: PageDescription, body: ComponentChildren): Representation {
  return new Representation(renderPage(site, description, body), HTML);
}

/** @returns the HTML of a page */
export function renderPage(frame: PageFrame, description: PageDescription, body: ComponentChildren): string {
  const Frame = frame.Layout ?? Layout;
  return `<!doctype html>\n${render(
    <Deployment.Provider value={frame}>
      <Frame files={frame.files} {...description}>
        {body}
      </Frame>
    </Deployment.Provider>,
  )}\n`;
}

/** @returns the HTML of the parts of a long page. Between them, other requests get their turn. */
export async function renderParts(parts: readonly VNode[]): Promise<string> {
  let html = '';
  for (const part of parts) {
    await setImmediate();
    html += render(part);
  }
  return html;
}
