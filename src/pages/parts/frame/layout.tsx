import type { VNode } from 'preact';
import type { LayoutProps } from '../context.js';
import { SearchBox } from '../content/search-form.js';
import { Brand, Document } from './document.js';

const SERVICE = 'Catalog Lookup Service';

/** The parts of the site, as the navigation lists them. */
const SECTIONS = [
  { id: 'home', path: '/', label: 'Home' },
  { id: 'docs', path: '/docs', label: 'Reference' },
  { id: 'guides', path: '/docs/guides', label: 'Guides' },
  { id: 'settings', path: '/settings', label: 'Settings' },
] as const;

/** The frame of every public page: the document with its navigation, search and footer. */
export function Layout({ section, ...document }: LayoutProps): VNode {
  return (
    <Document
      {...document}
      name={SERVICE}
      header={
        <>
          <Brand label="Catalog" />
          <SearchBox isInHeader />
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
              <a href="/readyz">Status (JSON)</a>
            </li>
          </ul>
        </>
      }
    />
  );
}
