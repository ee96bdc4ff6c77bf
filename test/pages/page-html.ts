/** What the HTML of a page shows before any browser opens it. */

/** An element: its name and its attributes. */
interface Tag {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/** The elements of a page in their order, without their contents. */
function tagsOf(html: string): Tag[] {
  return Array.from(html.matchAll(/<([a-z][\w-]*)((?:"[^"]*"|[^">])*)>/g), ([, name = '', attributes = '']) => ({
    name,
    attributes: new Map(
      Array.from(attributes.matchAll(/([^\s=/"]+)(?:="([^"]*)")?/g), ([, key = '', value = '']) => [
        key.toLowerCase(),
        value,
      ]),
    ),
  }));
}

/** @returns the address of the page of a list that follows a page; undefined on the last one */
export function nextPageOf({ text }: { readonly text: string }): string | undefined {
  return /<a href="([^"]+)" rel="next">/.exec(text)?.[1]?.replaceAll('&amp;', '&');
}

/**
 * @returns the kinds of a page's elements: their names, classes, types and what the script uses. Elements of one kind
 *   look and act alike, since all pages have one stylesheet and one script
 */
export function kindsOf(html: string): Set<string> {
  return new Set(
    tagsOf(html).map(({ name, attributes }) => {
      const data = [...attributes.keys()].filter((key) => key.startsWith('data-'));
      return [name, attributes.get('class'), attributes.get('type'), ...data].join(' ');
    }),
  );
}

/** Attributes that name other elements of the page. */
const REFERENCES = ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls'];

/** @returns what is wrong with a page's names, headings and references, and what its content security policy blocks */
export function faultsOf(html: string): string[] {
  const tags = tagsOf(html);
  const values = (wanted: string): string[] => tags.flatMap(({ attributes }) => attributes.get(wanted) ?? []);
  const ids = values('id');
  const labelled = new Set(tags.filter(({ name }) => name === 'label').map(({ attributes }) => attributes.get('for')));
  const levels = tags.flatMap(({ name }) => (/^h[1-6]$/.test(name) ? [Number(name[1])] : []));
  return [
    ...ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `id ${id} is there twice`),
    ...REFERENCES.flatMap((attribute) => values(attribute).flatMap((names) => names.split(' ')))
      .filter((id) => !ids.includes(id))
      .map((id) => `no element has the id ${id}`),
    ...levels
      .filter((level, place) => (place === 0 ? level !== 1 : level === 1 || level > (levels[place - 1] ?? 0) + 1))
      .map((level) => `a heading of level ${level} among ${levels.join(', ')}`),
    ...tags
      .filter(({ name, attributes }) => {
        const isField = ['input', 'select', 'textarea'].includes(name) && attributes.get('type') !== 'hidden';
        const isWithin = ['radio', 'checkbox'].includes(attributes.get('type') ?? '');
        return isField && !isWithin && !attributes.has('aria-label') && !labelled.has(attributes.get('id'));
      })
      .map(({ name, attributes }) => `${name} ${attributes.get('name') ?? ''} has no label`),
    ...tags
      .filter(({ name, attributes }) => name === 'img' && !attributes.has('alt'))
      .map(({ attributes }) => `the picture ${attributes.get('src') ?? ''} has no alternative text`),
    ...tags
      .filter(
        ({ name, attributes }) =>
          name === 'style' ||
          (name === 'script' && !attributes.has('src')) ||
          [...attributes.keys()].some((key) => key === 'style' || /^on\w/.test(key)),
      )
      .map(({ name, attributes }) => `${name} has a style or a script in the page: ${[...attributes.keys()].join()}`),
    ...(html.match(/<(a|button|h[1-6])\b[^>]*>\s*<\/\1>/g) ?? []).map((empty) => `${empty} has no text`),
  ];
}
