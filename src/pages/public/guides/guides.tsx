import type { VNode } from 'preact';
import type { PageRouter } from '../../parts/context.js';
import type { PublicOptions, PublicParts } from '../context.js';
import { cached } from '../../parts/web/cached.js';
import { Representation } from '../../../http/response/representation.js';
import { Heading } from '../../parts/content/heading.js';
import { publicPage } from '../../parts/frame/page.js';
import { renderMarkdown } from '../../parts/content/markdown.js';
import { WithSidebar } from '../../parts/frame/with-sidebar.js';
import { errorId } from '../reference/anchors.js';
import { SearchBox } from '../../parts/content/search-form.js';
import { GUIDES_PATH } from '../../parts/context.js';
import { byAudience, FOR_CALLERS, type Guide } from './guide-files.js';

/** The address of the service in the commands of the guides. */
const EXAMPLE_ORIGIN = 'http://127.0.0.1:8080';

const MARKDOWN = 'text/markdown; charset=utf-8';

/** Adds the guides of the repository: a list of them, and for each a page and its text as Markdown. */
export function addGuides(router: PageRouter, { site }: Pick<PublicParts, 'site'>): void {
  const { guides } = site;
  const list = cached(() => {
    const description = 'Guides for developers who call the API and operators who run the service.';
    return publicPage(site, { title: 'Guides', section: 'guides', description }, <GuideList guides={guides} />);
  }, Infinity);
  router.get(GUIDES_PATH, async (ctx) => (await list()).send(ctx, 'no-cache'));
  for (const guide of guides) {
    const { title, description } = guide;
    const page = cached(
      () =>
        publicPage(
          site,
          { title, section: 'guides', description, markdown: `${GUIDES_PATH}/${guide.name}.md` },
          <GuidePage guide={guide} site={site} />,
        ),
      Infinity,
    );
    const markdown = cached(() => new Representation(markdownOf(guide, site), MARKDOWN), Infinity);
    router.get(`${GUIDES_PATH}/${guide.name}`, async (ctx) => (await page()).send(ctx, 'no-cache'));
    router.get(`${GUIDES_PATH}/${guide.name}.md`, async (ctx) => (await markdown()).send(ctx, 'no-cache'));
  }
}

function GuideList({ guides }: { readonly guides: readonly Guide[] }): VNode {
  return (
    <div class="container">
      <h1>Guides</h1>
      <p class="lead">How to call the API, mirror the catalogue, and run the service.</p>
      <SearchBox />
      {byAudience(guides).map(({ audience, label, group }) => (
        <section key={audience}>
          <Heading level={2} id={audience} text={label} />
          <ul class="card-grid">
            {group.map(({ name, title, description }) => (
              <li key={name} class="card">
                <h3>
                  <a href={`${GUIDES_PATH}/${name}`}>{title}</a>
                </h3>
                <p>{description}</p>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function GuidePage({ guide, site }: { readonly guide: Guide; readonly site: PublicOptions }): VNode {
  const { name, title } = guide;
  const { html, headings } = renderMarkdown(textOf(guide, site), {
    resolve: (address) => addressOnPage(address, name),
    linkCode: linkErrorCode,
  });
  const sections = headings.filter(({ level }) => level === 2);
  const groups = [
    { title: 'On this page', links: sections.map(({ id, text: heading }) => [`#${id}`, heading] as const) },
    ...byAudience(site.guides).map(({ label, group }) => ({
      title: label,
      links: group.map((other) => [`${GUIDES_PATH}/${other.name}`, other.title] as const),
    })),
  ];
  return (
    <WithSidebar label="Guides" groups={groups} current={`${GUIDES_PATH}/${name}`} search={<SearchBox />}>
      <h1>{title}</h1>
      <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />
      <p class="small">
        <a href={`${GUIDES_PATH}/${name}.md`}>View as Markdown</a>
      </p>
      <Neighbours name={name} guides={site.guides} />
    </WithSidebar>
  );
}

/** @returns the text of a guide, with the address of this service in commands for its callers, and the operator's contact */
function textOf({ name, text }: Guide, { operatorContact, publicUrl }: PublicOptions): string {
  const shown = FOR_CALLERS.includes(name) ? text.replaceAll(EXAMPLE_ORIGIN, publicUrl()) : text;
  if (operatorContact === undefined) return shown;
  return shown.replaceAll(/the\s+operator\s+of\s+this\s+service/g, (words) => `[${words}](${operatorContact})`);
}

/** @returns a guide as Markdown. Its links to other guides are relative, and fit the addresses of the site. */
function markdownOf(guide: Guide, site: PublicOptions): string {
  const text = textOf(guide, site).replaceAll(/\[([^\]]+)\]\(([^)\s]+)\)/g, (link, words: string, address: string) =>
    addressOnPage(address, guide.name) === undefined ? words : link,
  );
  return `# ${guide.title}\n${text}`;
}

/** Links to the guides before and after one. */
function Neighbours({ name, guides }: { readonly name: string; readonly guides: readonly Guide[] }): VNode {
  const place = guides.findIndex((guide) => guide.name === name);
  const neighbours = [
    { label: 'Previous', rel: 'prev', guide: guides[place - 1] },
    { label: 'Next', rel: 'next', guide: guides[place + 1] },
  ];
  return (
    <nav class="neighbours" aria-label="Previous and next guide">
      {neighbours.map(
        ({ label, rel, guide }) =>
          guide && (
            <a key={rel} href={`${GUIDES_PATH}/${guide.name}`} rel={rel}>
              <span>{label}</span>
              {guide.title}
            </a>
          ),
      )}
    </nav>
  );
}

/** @returns where a link of a guide leads on the pages; undefined for a file that only the repository has */
function addressOnPage(address: string, guide: string): string | undefined {
  if (/^(https?:|mailto:|#)/.test(address)) return address;
  const { pathname, hash } = new URL(address, `http://guides${GUIDES_PATH}/${guide}`);
  if (!pathname.startsWith(`${GUIDES_PATH}/`)) return undefined;
  return pathname.endsWith('.md') ? `${pathname.replace(/\.md$/, '')}${hash}` : undefined;
}

function linkErrorCode(code: string): string | undefined {
  const id = errorId(code);
  return id === undefined ? undefined : `/docs#${id}`;
}
