import MarkdownIt, { type Token } from 'markdown-it';
import { render } from 'preact-render-to-string';
import { isLanguage } from './code/highlight.js';
import { CodeBlock } from './components.js';

/** How a text is rendered. */
interface MarkdownOptions {
  /** The address that inline code links to, by its text: the anchor of an error code, for example. */
  readonly linkCode?: (code: string) => string | undefined;
  /** The id of a table row, by the text of its first cell where that is inline code. */
  readonly rowId?: (code: string) => string | undefined;
  /** Converts the address of a link or an image. Undefined where the page has no address for it. */
  readonly resolve?: (address: string) => string | undefined;
}

/** A heading of a text, for a table of contents. */
export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly id: string;
}

/** What markdown-it passes to its rules in one rendering. */
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
};

const markdown = new MarkdownIt({ html: false });

markdown.core.ruler.push('anchors', ({ tokens, env }) => {
  const { options, headings } = env as unknown as Environment;
  tokens.forEach((token, index) => {
    const next = tokens[index + 1];
    if (token.type === 'heading_open') {
      const text = (next?.children ?? []).map(({ content }) => content).join('');
      const id = anchorOf(text);
      headings.push({ level: Number(token.tag.slice(1)), text, id });
      token.attrSet('id', id);
    }
    for (const child of token.children ?? []) resolveAddress(child, options);
    const [first] = tokens[index + 2]?.children ?? [];
    if (token.type === 'tr_open' && next?.type === 'td_open' && first?.type === 'code_inline') {
      const id = options.rowId?.(first.content);
      if (id !== undefined) token.attrSet('id', id);
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
    const { info = '', content = '' } = tokens[index] ?? {};
    const name = info.trim();
    const language = isLanguage(name) ? name : undefined;
    return render(<CodeBlock label={LANGUAGES[name] ?? 'Text'} code={content.trimEnd()} language={language} />);
  },
  table_open: () => '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table class="table">',
  table_close: () => '</table></div>',
});

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

/** @returns the anchor that GitHub gives a heading, so that a link works in the repository and on the page */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

/** Converts the address of a link or an image. A link without one becomes plain text. */
function resolveAddress(token: Token, { resolve = (address) => address }: MarkdownOptions): void {
  const attribute = token.type === 'image' ? 'src' : 'href';
  const address = token.attrGet(attribute);
  if (typeof address !== 'string') return;
  const resolved = resolve(address);
  if (resolved !== undefined) token.attrSet(attribute, resolved);
  else token.attrs = [];
}
