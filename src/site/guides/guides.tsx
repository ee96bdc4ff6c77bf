import type { VNode } from 'preact';
import type { PageRouter, SiteOptions, SiteParts } from '../context.js';
import { cached } from '../delivery/cached.js';
import { publicPage } from '../layout/page.js';
import { renderMarkdown } from '../layout/markdown.js';
import { WithSidebar } from '../layout/with-sidebar.js';
import { errorId } from '../reference/anchors.js';
import type { Audience, Guide } from './guide-files.js';

const ROOT = '/docs/guides';

/** The address of the service in the commands of the guides. */
const EXAMPLE_ORIGIN = 'http://127.0.0.1:8080';

/** Adds the guides of the repository: a list of them, and a page for each. */
export function addGuides(router: PageRouter, { site }: Pick<SiteParts, 'site'>): void {
  const { guides, pictures } = site.guides;
  const list = cached(() => {
    const description = 'Guides for developers who call the API and operators who run the service.';
    return publicPage(site, { title: 'Guides', section: 'guides', description }, <GuideList guides={guides} />);
  }, Infinity);
  router.get(ROOT, async (ctx) => (await list()).send(ctx, 'no-cache'));
  for (const guide of guides) {
    const { title, description } = guide;
    const page = cached(
      () => publicPage(site, { title, section: 'guides', description }, <GuidePage guide={guide} site={site} />),
      Infinity,
    );
    router.get(`${ROOT}/${guide.name}`, async (ctx) => (await page()).send(ctx, 'no-cache'));
  }
  for (const [name, picture] of pictures) {
    router.get(`${ROOT}/${name}`, (ctx) => picture.send(ctx, 'no-cache'));
  }
}

function GuideList({ guides }: { readonly guides: readonly Guide[] }): VNode {
  return (
    <div class="container">
      <h1>Guides</h1>
      <p class="lead">How to call the API, mirror the catalogue, and run the service.</p>
      {byAudience(guides).map(({ audience, label, group }) => (
        <section key={audience} aria-labelledby={audience}>
          <h2 id={audience}>{label}</h2>
          <ul class="card-grid">
            {group.map(({ name, title, description }) => (
              <li key={name} class="card">
                <h3>
                  <a href={`${ROOT}/${name}`}>{title}</a>
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

const AUDIENCES: readonly { readonly audience: Audience; readonly label: string }[] = [
  { audience: 'developers', label: 'For developers' },
  { audience: 'operators', label: 'For operators' },
];

function byAudience(guides: readonly Guide[]): { audience: Audience; label: string; group: readonly Guide[] }[] {
  return AUDIENCES.map(({ audience, label }) => ({
    audience,
    label,
    group: guides.filter((guide) => guide.audience === audience),
  }));
}

function GuidePage({
  guide: { name, title, text, isForCallers },
  site,
}: {
  readonly guide: Guide;
  readonly site: SiteOptions;
}): VNode {
  const shown = isForCallers ? text.replaceAll(EXAMPLE_ORIGIN, site.publicUrl()) : text;
  const { html, headings } = renderMarkdown(shown, {
    resolve: (address) => addressOnPage(address, name),
    linkCode: linkErrorCode,
  });
  const sections = headings.filter(({ level }) => level === 2);
  const groups = [
    { title: 'On this page', links: sections.map(({ id, text: heading }) => [`#${id}`, heading] as const) },
    ...byAudience(site.guides.guides).map(({ label, group }) => ({
      title: label,
      links: group.map((other) => [`${ROOT}/${other.name}`, other.title] as const),
    })),
  ];
  return (
    <WithSidebar label="Guides" groups={groups} current={`${ROOT}/${name}`}>
      <h1>{title}</h1>
      <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />
      <Neighbours name={name} guides={site.guides.guides} />
    </WithSidebar>
  );
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
            <a key={rel} href={`${ROOT}/${guide.name}`} rel={rel}>
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
  if (/^(https?:|#)/.test(address)) return address;
  const { pathname, hash } = new URL(address, `http://guides${ROOT}/${guide}`);
  if (!pathname.startsWith(`${ROOT}/`)) return undefined;
  return /\.(md|svg)$/.test(pathname) ? `${pathname.replace(/\.md$/, '')}${hash}` : undefined;
}

function linkErrorCode(code: string): string | undefined {
  const id = errorId(code);
  return id === undefined ? undefined : `/docs#${id}`;
}
