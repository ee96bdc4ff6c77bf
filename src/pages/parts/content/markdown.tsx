import MarkdownIt, { type Token } from 'markdown-it';
import type { VNode } from 'preact';
import { render } from 'preact-render-to-string';
import { isLanguage } from './highlight.js';
import { CodeBlock } from './components.js';
import { HeadingLink } from './heading.js';
import { Tabs } from './tabs.js';

/** How a text is rendered. */
interface MarkdownOptions {
  /** The address that inline code links to, by its text: the anchor of an error code, for example. */
  readonly linkCode?: (code: string) => string | undefined;
  /** The id of a table row, by the text of its first cell where that is inline code. */
  readonly rowId?: (code: string) => string | undefined;
  /** Converts the address of a link; undefined if the page has no address for it. */
  readonly resolve?: (address: string) => string | undefined;
}

/** A heading of a text, for a table of contents. */
export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly id: string;
}

/** The state of one rendering, which markdown-it passes to its rules. */
interface Environment extends Record<PropertyKey, unknown> {
  readonly options: MarkdownOptions;
  readonly headings: Heading[];
}

/** Names of the languages of code, for the line above a block. */
const LANGUAGES: Readonly<Record<string, string>> = {
  sh: 'Shell',
  console: 'Shell',
  js: 'JavaScript',
  ts: 'TypeScript',
  sql: 'SQL',
  json: 'JSON',
  haproxy: 'HAProxy',
  text: 'Output',
  python: 'Python',
  php: 'PHP',
  go: 'Go',
  java: 'Java',
  http: 'HTTP',
  yaml: 'YAML',
  ini: 'INI',
  nginx: 'nginx',
  fish: 'fish',
  powershell: 'PowerShell',
  dotenv: '.env',
};

/** Languages of which one is enough: blocks of them, one after another, become tabs. The page remembers which. */
const ALTERNATIVES = {
  language: ['js', 'python', 'php', 'go', 'java'],
  shell: ['sh', 'fish', 'powershell', 'dotenv'],
} as const;

const markdown = new MarkdownIt({ html: false });

markdown.core.ruler.push('anchors', ({ tokens, env }) => {
  const { options, headings } = env as unknown as Environment;
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token.type === 'heading_open') {
      const text = (next?.children ?? []).map(({ content }) => content).join('');
      const id = anchorOf(text);
      const heading = { level: Number(token.tag.slice(1)), text, id };
      headings.push(heading);
      token.attrSet('id', id);
      // Its end renders the link to it.
      Object.assign(tokens[index + 2] ?? {}, { meta: heading });
    }
    for (const child of token.children ?? []) resolveAddress(child, options);
    const [first] = tokens[index + 2]?.children ?? [];
    if (token.type === 'tr_open' && next?.type === 'td_open' && first?.type === 'code_inline') {
      const id = options.rowId?.(first.content);
      if (id !== undefined) token.attrSet('id', id);
    }
  });
});

/** Tables with more columns than this become cards on a phone. */
const MOST_COLUMNS_ON_A_PHONE = 2;

// The cells of a card show the names of their columns.
markdown.core.ruler.push('cards', ({ tokens }) => {
  let table: Token | undefined;
  let labels: string[] = [];
  let column = 0;
  tokens.forEach((token, index) => {
    const { type } = token;
    const isWide = labels.length > MOST_COLUMNS_ON_A_PHONE;
    if (type === 'table_open') [table, labels] = [token, []];
    else if (type === 'tr_open') column = 0;
    else if (type === 'th_open') labels.push(plainText(tokens[index + 1]?.children ?? []));
    else if (type === 'thead_close' && isWide) table?.attrSet('class', 'table table-cards');
    else if (type === 'td_open') {
      if (isWide && column > 0) token.attrSet('data-label', labels[column] ?? '');
      column += 1;
    }
  });
});

const { escapeHtml } = markdown.utils;

Object.assign(markdown.renderer.rules, {
  code_inline(tokens: Token[], index: number, _options: unknown, { options }: Environment) {
    const text = tokens[index]?.content ?? '';
    const code = `<code>${escapeHtml(text)}</code>`;
    const isLinked = tokens.slice(0, index).some(({ type }) => type === 'link_open');
    const target = isLinked ? undefined : options.linkCode?.(text);
    return target === undefined ? code : `<a href="${escapeHtml(target)}">${code}</a>`;
  },
  fence(tokens: Token[], index: number) {
    const [kind, names] = Object.entries(ALTERNATIVES).find(([, each]) => isOneOf(each, tokens[index])) ?? [];
    if (kind === undefined || names === undefined) return render(<Fence token={tokens[index]} />);
    const isNext = (token: Token | undefined): boolean => isOneOf(names, token);
    // The first of a run renders all of it.
    if (isNext(tokens[index - 1])) return '';
    const end = tokens.findIndex((token, at) => at > index && !isNext(token));
    const run = tokens.slice(index, end < 0 ? undefined : end);
    if (run.length === 1) return render(<Fence token={run[0]} />);
    const tabs = run.map((token) => ({ label: labelOf(token), content: <Fence token={token} /> }));
    return render(<Tabs name={`code-${index}`} legend={`Choose the ${kind}`} remember={kind} tabs={tabs} />);
  },
  heading_open: (...[tokens, index, options]: Parameters<typeof markdown.renderer.renderToken>) =>
    `<div class="heading">${markdown.renderer.renderToken(tokens, index, options)}`,
  heading_close(tokens: Token[], index: number) {
    const { tag = '', meta } = tokens[index] ?? {};
    return `</${tag}>${render(<HeadingLink {...(meta as unknown as Heading)} />)}</div>\n`;
  },
  table_open(tokens: Token[], index: number) {
    const look = tokens[index]?.attrGet('class') ?? 'table';
    return `<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table class="${look}">`;
  },
  table_close: () => '</table></div>',
});

function isOneOf(names: readonly string[], token: Token | undefined): boolean {
  return token?.type === 'fence' && names.includes(token.info.trim());
}

function labelOf({ info }: Token): string {
  return LANGUAGES[info.trim()] ?? 'Text';
}

function Fence({ token }: { readonly token: Token | undefined }): VNode | null {
  if (token === undefined) return null;
  const name = token.info.trim();
  const language = isLanguage(name) ? name : undefined;
  return <CodeBlock label={labelOf(token)} code={token.content.trimEnd()} language={language} />;
}

/**
 * Renders CommonMark with tables.
 *
 * @returns HTML that is safe to put into a page, since HTML in the text is escaped, and the headings of the text
 */
export function renderMarkdown(
  text: string,
  options: MarkdownOptions = {},
): { readonly html: string; readonly headings: readonly Heading[] } {
  const environment: Environment = { options, headings: [] };
  return { html: markdown.render(text, environment), headings: environment.headings };
}

/** A part of a text under one heading. */
interface Section {
  /** Undefined for the text before the first heading. */
  readonly heading: Heading | undefined;
  /** Without the marks of Markdown. */
  readonly text: string;
}

/** @returns the sections of a text, in plain text, for the search */
export function readSections(text: string): readonly Section[] {
  const headings: Heading[] = [];
  const environment: Environment = { options: {}, headings };
  const sections: { readonly heading: Heading | undefined; readonly pieces: string[] }[] = [
    { heading: undefined, pieces: [] },
  ];
  markdown.parse(text, environment).forEach(({ type, content, children }, index, tokens) => {
    if (type === 'heading_open') sections.push({ heading: headings[sections.length - 1], pieces: [] });
    // The text of the heading itself.
    if (tokens[index - 1]?.type === 'heading_open') return;
    const piece = type === 'fence' ? content : children && plainText(children);
    if (piece) sections.at(-1)?.pieces.push(piece);
  });
  return sections.map(({ heading, pieces }) => ({ heading, text: pieces.join(' ').replace(/\s+/g, ' ').trim() }));
}

/** @returns the last cell of each row of a table in plain text, by the text of its first cell */
export function readRows(text: string): ReadonlyMap<string, string> {
  const rows: string[][] = [];
  markdown.parse(text, { options: {}, headings: [] } satisfies Environment).forEach(({ type }, index, tokens) => {
    if (type === 'tr_open') rows.push([]);
    else if (type === 'td_open') rows.at(-1)?.push(plainText(tokens[index + 1]?.children ?? []));
  });
  return new Map(rows.map((cells) => [cells.at(0) ?? '', cells.at(-1) ?? '']));
}

function plainText(tokens: readonly Token[]): string {
  return tokens.map(({ content }) => content || ' ').join('');
}

/** @returns the anchor that GitHub gives a heading, so that a link works in the repository and on the page */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

/** Converts the address of a link. A link without one becomes plain text. */
function resolveAddress(token: Token, { resolve = (address) => address }: MarkdownOptions): void {
  const address = token.attrGet('href');
  if (typeof address !== 'string') return;
  const resolved = resolve(address);
  if (resolved === undefined) token.attrs = [];
  else token.attrSet('href', resolved);
}
