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
