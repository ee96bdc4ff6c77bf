import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { GUIDES, ROOT } from '../support/guides.js';

/** Every page of prose, as a path in the checkout. */
const PAGES = [
  'README.md',
  'src/README.md',
  'test/bench/README.md',
  '.github/SECURITY.md',
  ...GUIDES.map((guide) => `src/site/guides/${guide}.md`),
];

/** Returns the anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}

/** Returns the anchors of all headings of a page. */
function anchorsIn(markdown: string): string[] {
  const withoutCode = markdown.replace(/^```[\s\S]*?^```/gm, '');
  return [...withoutCode.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));
}

/** Returns what is wrong with a link within the checkout; undefined for a sound one. */
async function faultOf(link: string, page: URL): Promise<string | undefined> {
  const target = new URL(link, page);
  const anchor = target.hash.slice(1);
  target.hash = '';
  try {
    const text = await readFile(target, 'utf8');
    return anchor === '' || anchorsIn(text).includes(anchor) ? undefined : `${link}: no such heading`;
  } catch {
    return `${link}: no such file ${fileURLToPath(target)}`;
  }
}

describe('the links of the README and the guides', () => {
  for (const path of PAGES) {
    it(`every link of ${path} leads to a file and a heading`, async () => {
      const page = new URL(path, ROOT);
      const links = [...(await readFile(page, 'utf8')).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, link = '']) => link)
        .filter((link) => !/^https?:/.test(link));
      const faults = await Promise.all(links.map((link) => faultOf(link, page)));
      assert.deepEqual(
        faults.filter((fault) => fault !== undefined),
        [],
      );
    });
  }
});
