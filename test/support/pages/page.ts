import { DOMParser, type Element, type Node } from '@xmldom/xmldom';

/** A page as a reader without a browser finds it. */
export interface ReadPage {
  /** The elements in their order. */
  readonly elements: readonly Element[];
  readonly byId: ReadonlyMap<string, Element>;
  /** @returns the elements of these names */
  readonly named: (...names: readonly string[]) => Element[];
}

const ELEMENT = 1;
const TEXT = 3;

/** @throws ParseError for HTML that a browser would have to guess at */
export function readPage(html: string): ReadPage {
  const parser = new DOMParser({
    onError: (level, message) => {
      if (level !== 'warning') throw new Error(message);
    },
  });
  const elements = Array.from(parser.parseFromString(html, 'text/html').getElementsByTagName('*'));
  const byId = new Map(
    elements.flatMap((element) => {
      const id = element.getAttribute('id');
      return id === null ? [] : [[id, element] as const];
    }),
  );
  return { elements, byId, named: (...names) => elements.filter(({ localName }) => names.includes(localName ?? '')) };
}

/** Elements that do not begin a line of their own: their text continues that around them. */
const INLINE = ['a', 'abbr', 'b', 'bdi', 'code', 'em', 'i', 'small', 'span', 'strong', 'time', 'var'];

function isElement(node: Node): node is Element {
  return node.nodeType === ELEMENT;
}

/** @returns the text of an element, without what `leaveOut` matches; blocks are apart by a line break */
function readText(node: Node, leaveOut: (element: Element) => boolean): string {
  if (node.nodeType === TEXT) return (node.nodeValue ?? '').replaceAll(/\s+/g, ' ');
  if (isElement(node) && leaveOut(node)) return '';
  const text = Array.from(node.childNodes, (child) => readText(child, leaveOut)).join('');
  if (!isElement(node)) return text;
  if (node.localName === 'img') return node.getAttribute('alt') ?? '';
  return INLINE.includes(node.localName ?? '') ? text : `\n${text}\n`;
}

const isHidden = (element: Element): boolean => element.getAttribute('aria-hidden') === 'true';

/** @returns the text of an element that screen readers read, in one line */
export function textOf(element: Element): string {
  return readText(element, isHidden).replaceAll(/\s+/g, ' ').trim();
}

/** @returns the lines of prose of a page: not what is code, nor what scripts and the head hold */
export function proseOf({ named }: ReadPage): string[] {
  const skipped = ['head', 'script', 'pre', 'svg'];
  const [root] = named('html');
  const text = root === undefined ? '' : readText(root, ({ localName }) => skipped.includes(localName ?? ''));
  return text.split('\n').flatMap((line) => line.trim() || []);
}

/** @returns the name that screen readers read for a control or a link */
export function nameOf(element: Element, { byId }: ReadPage): string {
  const labels = idsOf(element, 'aria-labelledby').flatMap((id) => byId.get(id) ?? []);
  const names = [labels.map(textOf).join(' '), element.getAttribute('aria-label'), textOf(element)];
  return names.find(Boolean) ?? element.getAttribute('title') ?? '';
}

/** @returns an element without its content, to name it */
export function tagOf({ localName, attributes }: Element): string {
  return `<${[localName, ...Array.from(attributes, ({ name, value }) => `${name}="${value}"`)].join(' ')}>`;
}

/** @returns the ids that an attribute lists */
export function idsOf(element: Element, attribute: string): string[] {
  return (element.getAttribute(attribute) ?? '').split(/\s+/).filter(Boolean);
}

/** @returns the nearest element of a name that contains an element */
export function around(element: Element, ...names: readonly string[]): Element | undefined {
  for (let each = element.parentNode; each !== null; each = each.parentNode) {
    if (isElement(each) && names.includes(each.localName ?? '')) return each;
  }
  return undefined;
}

/** @returns what an element contains, of these names */
export function within(element: Element, ...names: readonly string[]): Element[] {
  return names.flatMap((name) => Array.from(element.getElementsByTagName(name)));
}
