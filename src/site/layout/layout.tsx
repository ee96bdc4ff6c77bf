import type { ComponentChildren, VNode } from 'preact';
import type { StaticFiles } from '../delivery/static-files.js';
import { HeaderSearch, SearchDialog } from '../search/search-form.js';

const SERVICE = 'Catalog Lookup Service';

/** The parts of the site, as the navigation lists them. */
const SECTIONS = [
  { id: 'home', path: '/', label: 'Home' },
  { id: 'docs', path: '/docs', label: 'Reference' },
  { id: 'guides', path: '/docs/guides', label: 'Guides' },
  { id: 'settings', path: '/settings', label: 'Settings' },
] as const;

/** A part of the site. */
export type Section = (typeof SECTIONS)[number]['id'];

/** The metadata of a page. */
export interface PageDescription {
  /** For the window and for search engines; the heading of the page stands in its body. */
  readonly title: string;
  /** Which entry of the navigation is marked; none where it is left out. */
  readonly section?: Section;
  /** Where the same text is served as Markdown. */
  readonly markdown?: string;
  /** A sentence for search engines. */
  readonly description?: string;
  /** Whether the page shows a form again whose values need a correction. */
  readonly hasErrors?: boolean | undefined;
  /** For the answer to a form: the address that takes its place in the history of the browser. */
  readonly address?: string | undefined;
}

/**
 * The first paint waits for the script, so that nothing moves when it unfolds the target of a link or shows the language
 * that was chosen before. The types of Preact lack the attribute.
 */
const BEFORE_FIRST_PAINT = { blocking: 'render' };

interface LayoutProps extends PageDescription {
  readonly files: StaticFiles;
  readonly children: ComponentChildren;
}

/** The frame of every page: skip link, header with navigation, the body, footer. */
export function Layout({
  files,
  title,
  section,
  description,
  markdown,
  hasErrors = false,
  address,
  children,
}: LayoutProps): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>{`${hasErrors ? 'Error: ' : ''}${title === SERVICE ? title : `${title} · ${SERVICE}`}`}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {description !== undefined && <meta name="description" content={description} />}
        {markdown !== undefined && <link rel="alternate" type="text/markdown" href={markdown} />}
        <link rel="icon" type="image/svg+xml" href={files.paths['favicon.svg']} />
        <link rel="stylesheet" href={files.paths['site.css']} />
        <script src={files.paths['site.js']} defer {...BEFORE_FIRST_PAINT} />
      </head>
      <body>
        <a class="skip-link" href="#main">
          Skip to content
        </a>
        <header class="site-header">
          <div class="site-header-inner">
            <a class="brand" href="/">
              <svg class="brand-mark" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true" focusable="false">
                <rect x="2" y="3" width="5" height="18" rx="1.5" />
                <rect x="9.5" y="3" width="5" height="18" rx="1.5" />
                <path d="M17 4.6l2.6-.7a1 1 0 0 1 1.2.7l3 13.5a1 1 0 0 1-.7 1.2l-2.6.7a1 1 0 0 1-1.2-.7l-3-13.5a1 1 0 0 1 .7-1.2z" />
              </svg>
              <span>Catalog</span>
            </a>
            <HeaderSearch />
            <nav class="site-nav" aria-label="Site">
              <ul>
                {SECTIONS.map(({ id, path, label }) => (
                  <li key={id}>
                    <a href={path} data-text={label} aria-current={id === section ? 'page' : undefined}>
                      {label}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
          </div>
        </header>
        <main id="main" tabIndex={-1} data-address={address}>
          {children}
        </main>
        <footer class="site-footer">
          <div class="site-footer-inner">
            <p>{SERVICE}. A read-only HTTP API for a catalogue of movies and series.</p>
            <ul>
              <li>
                <a href="/openapi.yaml">OpenAPI (YAML)</a>
              </li>
              <li>
                <a href="/openapi.json">OpenAPI (JSON)</a>
              </li>
              <li>
                <a href="/revoke-leaked-key">Revoke a leaked key</a>
              </li>
              <li>
                <a href="/readyz">Status (JSON)</a>
              </li>
            </ul>
          </div>
        </footer>
        <SearchDialog />
      </body>
    </html>
  );
}
