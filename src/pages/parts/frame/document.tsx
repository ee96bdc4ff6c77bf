import type { ComponentChildren, VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { Deployment } from '../content/components.js';
import { SearchBox } from '../content/search-form.js';
import { FONTS, type LayoutProps, type PageDescription, type StaticFiles } from '../context.js';

/**
 * The first paint waits for the script, so that nothing moves when it unfolds the target of a link or shows the
 * language that was chosen before. The types of Preact lack the attribute.
 */
const BEFORE_FIRST_PAINT = { blocking: 'render' };

interface DocumentProps extends Omit<PageDescription, 'section' | 'query'> {
  readonly files: StaticFiles;
  /** The name of the site, for the title of the window. */
  readonly name: string;
  /** The content of the header. */
  readonly header: ComponentChildren;
  /** The content of the footer before the choice of a theme. */
  readonly footer?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** An HTML document: metadata, skip link, header, the body, footer. */
export function Document({
  files,
  name,
  title,
  description,
  markdown,
  hasErrors = false,
  address,
  contentId = 'main',
  header,
  footer,
  children,
}: DocumentProps): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>{`${hasErrors ? 'Error: ' : ''}${title === name ? title : `${title} · ${name}`}`}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="theme-color" content="#ffffff" media="(prefers-color-scheme: light)" />
        <meta name="theme-color" content="#0f1219" media="(prefers-color-scheme: dark)" />
        {description !== undefined && (
          <Preview {...{ name, title, description }} image={files.paths['social-card.png']} />
        )}
        {markdown !== undefined && <link rel="alternate" type="text/markdown" href={markdown} />}
        <link rel="icon" type="image/svg+xml" href={files.paths['favicon.svg']} />
        <link rel="apple-touch-icon" href={files.paths['apple-touch-icon.png']} />
        {FONTS.map((font) => (
          <link key={font} rel="preload" href={files.paths[font]} as="font" type="font/woff2" crossorigin="anonymous" />
        ))}
        <link rel="stylesheet" href={files.paths['site.css']} />
        <script src={files.paths['site.js']} defer {...BEFORE_FIRST_PAINT} />
      </head>
      <body>
        <a class="button button-primary skip-link" href={`#${contentId}`}>
          Skip to content
        </a>
        <header class="site-header">
          <div class="site-header-inner">{header}</div>
        </header>
        <main id="main" tabIndex={-1} data-address={address}>
          {children}
        </main>
        <footer class="site-footer">
          <div class="site-footer-inner">
            {footer}
            <ThemeChoice />
          </div>
        </footer>
      </body>
    </html>
  );
}

/** The preview of a public page in search engines and chats. The latter read Open Graph (ogp.me). */
function Preview({ name, title, description, image }: Record<'name' | 'title' | 'description' | 'image', string>) {
  const { publicUrl } = useContext(Deployment);
  return (
    <>
      <meta name="description" content={description} />
      <meta property="og:type" content="website" />
      <meta property="og:site_name" content={name} />
      <meta property="og:title" content={title} />
      <meta property="og:description" content={description} />
      <meta property="og:image" content={publicUrl() + image} />
      <meta name="twitter:card" content="summary_large_image" />
    </>
  );
}

/** The choice between light and dark. The script makes it work and remembers it. */
function ThemeChoice(): VNode {
  return (
    <label class="theme-choice scripted">
      Theme{' '}
      <select data-theme-choice autocomplete="off">
        <option value="">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

/** The name of the service as a link to the first page. */
export function Brand({ label }: { readonly label: string }): VNode {
  return (
    <a class="brand" href="/">
      <BrandMark />
      <span>{label}</span>
    </a>
  );
}

/** The mark of the service: books on a shelf. */
export function BrandMark(): VNode {
  return (
    <svg class="brand-mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" focusable="false">
      <rect x="2" y="3" width="5" height="18" rx="1.5" />
      <rect x="9.5" y="3" width="5" height="18" rx="1.5" />
      <path d="M17 4.6l2.6-.7a1 1 0 0 1 1.2.7l3 13.5a1 1 0 0 1-.7 1.2l-2.6.7a1 1 0 0 1-1.2-.7l-3-13.5a1 1 0 0 1 .7-1.2z" />
    </svg>
  );
}

const SERVICE = 'Catalog Lookup Service';

/** The parts of the site, as the navigation lists them. */
const SECTIONS = [
  { id: 'home', path: '/', label: 'Home' },
  { id: 'docs', path: '/docs', label: 'Reference' },
  { id: 'guides', path: '/docs/guides', label: 'Guides' },
  { id: 'settings', path: '/settings', label: 'Settings' },
] as const;

/** The frame of every public page: the document with its navigation, search and footer. */
export function Layout({ section, query, ...document }: LayoutProps): VNode {
  return (
    <Document
      {...document}
      name={SERVICE}
      header={
        <>
          <Brand label="Catalog" />
          <SearchBox query={query} />
          <nav class="site-nav" aria-label="Site">
            <ul>
              {SECTIONS.map(({ id, path, label }) => (
                <li key={id}>
                  <a href={path} aria-current={id === section ? 'page' : undefined}>
                    {label}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </>
      }
      footer={
        <>
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
              <a href="/status">Status</a>
            </li>
          </ul>
        </>
      }
    />
  );
}
