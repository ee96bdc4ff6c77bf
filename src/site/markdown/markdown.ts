import MarkdownIt, { type Token } from 'markdown-it';
import { codeBlockHtml } from '../layout/code-block-html.js';
import { anchorOf } from './anchors.js';

/** How a text is rendered. */
export interface MarkdownOptions {
  /** Added to the level of each heading: 1 makes `##` an `h3`. */
  readonly deeper?: number;
  /** Where inline code leads, by its text: the anchor of an error code, for example. */
  readonly linkCode?: (code: string) => string | undefined;
  /** The id of a table row, by the text of its first cell where that is inline code. */
  readonly rowId?: (code: string) => string | undefined;
  /** Converts the address of a link or an image in the text. Undefined where the page has no address for it. */
  readonly resolve?: (address: string) => string | undefined;
}

/** A heading of a text, for a table of contents. */
export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly id: string;
}

/** A text as HTML that is safe to put into a page: HTML in the text is escaped. */
export interface RenderedMarkdown {
  readonly html: string;
  readonly headings: readonly Heading[];
}

/** Names of the languages of code, for the line above a block. */
const LANGUAGES: Readonly<Record<string, string>> = {
  sh: 'Shell',
  console: 'Shell',
  js: 'JavaScript',
  sql: 'SQL',
  json: 'JSON',
  haproxy: 'HAProxy',
};

/** Renders CommonMark with tables. HTML in the text is escaped. */
export function renderMarkdown(text: string, options: MarkdownOptions = {}): RenderedMarkdown {
  const headings: Heading[] = [];
  const markdown = new MarkdownIt({ html: false, linkify: false, typographer: false });
  giveAnchors(markdown, options, headings);
  setRules(markdown, options);
  return { html: markdown.render(text), headings };
}

type Renderer = InstanceType<typeof MarkdownIt>;

/** Gives headings and rows of tables their ids, and headings their level. */
function giveAnchors(
  markdown: Renderer,
  { deeper = 0, rowId, resolve = (address) => address }: MarkdownOptions,
  headings: Heading[],
): void {
  markdown.core.ruler.push('anchors', ({ tokens }) => {
    tokens.forEach((token, index) => {
      const next = tokens[index + 1];
      if (token.type === 'heading_open') {
        const text = (next?.children ?? []).map(({ content }) => content).join('');
        const level = Number(token.tag.slice(1)) + deeper;
        const id = anchorOf(text);
        headings.push({ level, text, id });
        token.attrSet('id', id);
        token.tag = `h${level}`;
      }
      for (const child of token.children ?? []) resolveAddress(child, resolve);
      if (token.type === 'heading_close') token.tag = `h${Number(token.tag.slice(1)) + deeper}`;
      const [first] = tokens[index + 2]?.children ?? [];
      if (token.type === 'tr_open' && next?.type === 'td_open' && first?.type === 'code_inline') {
        const id = rowId?.(first.content);
        if (id !== undefined) token.attrSet('id', id);
      }
    });
  });
}

function setRules({ renderer: { rules }, utils: { escapeHtml } }: Renderer, options: MarkdownOptions): void {
  rules.code_inline = (tokens, index) => {
    const text = tokens[index]?.content ?? '';
    const code = `<code>${escapeHtml(text)}</code>`;
    const isLinked = tokens.slice(0, index).some(({ type }) => type === 'link_open');
    const target = isLinked ? undefined : options.linkCode?.(text);
    return target === undefined ? code : `<a href="${escapeHtml(target)}">${code}</a>`;
  };
  rules.fence = (tokens, index) => {
    const { info = '', content = '' } = tokens[index] ?? {};
    return codeBlockHtml(LANGUAGES[info.trim()] ?? 'Text', content.trimEnd());
  };
  rules.table_open = () =>
    '<div class="table-scroll" tabindex="0" role="group" aria-label="Table"><table class="table">';
  rules.table_close = () => '</table></div>';
}

/** Sets the address of a link or an image. A link without one becomes plain text. */
function resolveAddress(token: Token, resolve: (address: string) => string | undefined): void {
  const attribute = token.type === 'image' ? 'src' : 'href';
  const address = token.attrGet(attribute);
  if (typeof address !== 'string') return;
  const resolved = resolve(address);
  if (resolved !== undefined) token.attrSet(attribute, resolved);
  else token.attrs = [];
}
