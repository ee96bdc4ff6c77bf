import type { VNode } from 'preact';
import type { Heading } from '../layout/markdown.js';
import { operationsOf, tagsOf, type Contract } from './contract.js';

interface NavigationProps {
  readonly contract: Contract;
  /** Of the introduction. */
  readonly headings: readonly Heading[];
}

/** The sidebar of the reference: the search, and links to its sections. */
export function Navigation({ contract, headings }: NavigationProps): VNode {
  const operations = operationsOf(contract);
  return (
    <nav class="sidebar" aria-label="Reference">
      <search>
        <form class="find" data-find-form hidden autocomplete="off">
          <label class="visually-hidden" for="find">
            Search the reference
          </label>
          <input class="input" id="find" type="search" placeholder="Search" spellcheck={false} aria-controls="found" />
          <ul id="found" class="found" aria-live="polite" hidden />
        </form>
      </search>
      <details>
        <summary>Contents</summary>
        <Links
          title="Basics"
          links={[['introduction', 'Introduction'], ...headings.map(({ id, text }) => [id, text] as const)]}
        />
        {tagsOf(contract).groups.map(({ name }) => (
          <Links
            key={name}
            title={name}
            links={operations
              .filter(({ tags }) => tags.includes(name))
              .map(({ operationId, summary }) => [operationId, summary] as const)}
          />
        ))}
        <Links
          title="Details"
          links={[
            ['security', 'Security schemes'],
            ['responses', 'Shared responses'],
            ['headers', 'Response headers'],
            ['schemas', 'Schemas'],
            ['sdks', 'SDKs and downloads'],
          ]}
        />
      </details>
    </nav>
  );
}

interface LinksProps {
  readonly title: string;
  readonly links: readonly (readonly [id: string, text: string])[];
}

function Links({ title, links }: LinksProps): VNode {
  return (
    <>
      <p class="sidebar-title">{title}</p>
      <ul>
        {links.map(([id, text]) => (
          <li key={id}>
            <a href={`#${id}`}>{text}</a>
          </li>
        ))}
      </ul>
    </>
  );
}
