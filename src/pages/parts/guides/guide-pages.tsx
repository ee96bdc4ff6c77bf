import { readFile } from 'node:fs/promises';
import type { VNode } from 'preact';
import type { PageDescription, PageFrame, PageRouter } from '../context.js';
import { errorId, OPENABLE_PATH } from '../content/heading.js';
import { renderMarkdown } from '../content/markdown.js';
import { publicPage } from '../frame/page.js';
import { WithSidebar } from '../frame/with-sidebar.js';
import { cached } from '../../../platform/async/cached.js';

/** A guide with its text. */
export interface Guide {
  /** The name of its file, without `.md`; also the end of its address. */
  readonly name: string;
  /** The first heading of its text. */
  readonly title: string;
  /** One sentence, for lists and search engines. */
  readonly description: string;
  /** CommonMark, without the title. */
  readonly text: string;
}

/**
 * Reads guides.
 *
 * @param folder - of their Markdown
 * @param descriptions - of each guide by its name, in reading order
 */
export function readGuideFiles(
  folder: string,
  descriptions: Readonly<Record<string, string>>,
): Promise<readonly Guide[]> {
  const guides = Object.entries(descriptions).map(async ([name, description]) => {
    const text = await readFile(`${folder}/${name}.md`, 'utf8');
    const end = text.indexOf('\n');
    return { name, description, title: text.slice('# '.length, end), text: text.slice(end + 1) };
  });
  return Promise.all(guides);
}

/** Guides for the same readers, and how their pages show them. */
export interface GuideShelf {
  readonly guides: readonly Guide[];
  readonly frame: PageFrame;
  /** Where the list of the guides is. Each guide is below it. */
  readonly path: string;
  /** The subject of the guides. */
  readonly lead: string;
  /** Stands above every page. */
  readonly navigation?: VNode;
  /** Where each guide is served as Markdown, if it is. */
  readonly markdownPath?: (guide: Guide) => string;
  /** @returns the text of a guide as this deployment shows it */
  readonly textOf?: (guide: Guide) => string;
}

/** Adds a list of guides, and a page for each. They are rendered once, and the same for everybody. */
export function addGuidePages(router: PageRouter, shelf: GuideShelf): void {
  const { guides, frame, path, lead, markdownPath } = shelf;
  const add = (address: string, description: PageDescription, body: () => VNode): void => {
    const page = cached(() => publicPage(frame, { ...description, section: 'guides' }, body()), Infinity);
    router.get(address, async (ctx) => (await page()).send(ctx, 'no-cache'));
  };
  add(path, { title: 'Guides', description: lead }, () => <GuideList shelf={shelf} />);
  for (const guide of guides) {
    const { name, title, description } = guide;
    const markdown = markdownPath?.(guide);
    add(`${path}/${name}`, { title, description, ...(markdown !== undefined && { markdown }) }, () => (
      <GuidePage guide={guide} shelf={shelf} />
    ));
  }
}

function GuideList({ shelf: { guides, path, lead, navigation } }: { readonly shelf: GuideShelf }): VNode {
  return (
    <>
      {navigation}
      <div class="container">
        <h1>Guides</h1>
        <p class="lead">{lead}</p>
        <GuideCards guides={guides} path={path} level={2} />
      </div>
    </>
  );
}

interface GuideCardsProps extends Pick<GuideShelf, 'guides' | 'path'> {
  /** Of the headings of the cards. */
  readonly level: 2 | 3;
}

/** Links to guides, each with its subject. */
export function GuideCards({ guides, path, level }: GuideCardsProps): VNode {
  const Heading = `h${level}` as const;
  return (
    <ul class="card-grid">
      {guides.map(({ name, title, description }) => (
        <li key={name} class="card">
          <Heading>
            <a href={`${path}/${name}`}>{title}</a>
          </Heading>
          <p class="muted">{description}</p>
        </li>
      ))}
    </ul>
  );
}

function GuidePage({ guide, shelf }: { readonly guide: Guide; readonly shelf: GuideShelf }): VNode {
  const { guides, path, navigation, markdownPath, textOf } = shelf;
  const { html, headings } = renderMarkdown(textOf?.(guide) ?? guide.text, {
    resolve: (address) => addressOnPage(address, shelf),
    linkCode: (code) => linkCode(code, shelf.frame.docs()),
  });
  const sections = headings.filter(({ level }) => level === 2);
  const groups = [
    { title: 'On this page', links: sections.map(({ id, text }) => [`#${id}`, text] as const) },
    { title: 'Guides', links: guides.map(({ name, title }) => [`${path}/${name}`, title] as const) },
  ];
  return (
    <>
      {navigation}
      <WithSidebar label="Guides" groups={groups} current={`${path}/${guide.name}`}>
        <div class="content">
          <h1>{guide.title}</h1>
          <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />
          {markdownPath && (
            <p class="small">
              <a href={markdownPath(guide)}>View as Markdown</a>
            </p>
          )}
        </div>
      </WithSidebar>
    </>
  );
}

/** A link to a guide in the same folder, or to a guide for developers, as it works in the repository. */
const GUIDE = /^(\.\.\/\.\.\/public\/guides\/)?([\w-]+)\.md(#.*)?$/;

/** @returns where a link of a guide leads on the pages; undefined for a file that only the repository has */
export function addressOnPage(address: string, { path, frame }: GuideShelf): string | undefined {
  if (/^(https?:|mailto:|#)/.test(address)) return address;
  const [, elsewhere, name, part = ''] = GUIDE.exec(address) ?? [];
  const docs = frame.docs();
  if (name === undefined || (elsewhere !== undefined && docs === undefined)) return undefined;
  return `${elsewhere === undefined ? path : `${docs}/guides`}/${name}${part}`;
}

/** @returns the address for inline code with an error code, or with a path that a browser can open */
function linkCode(code: string, docs: string | undefined): string | undefined {
  if (docs === undefined) return undefined;
  if (OPENABLE_PATH.test(code)) return docs.replace(/\/docs$/, code);
  const id = errorId(code);
  return id === undefined ? undefined : `${docs}#${id}`;
}
