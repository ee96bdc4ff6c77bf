import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** The folder of the checkout. */
export const ROOT = new URL('../../', import.meta.url);

/** The guides, each for one task: the paths of the files in `src/site/guides`, without `.md`. */
export const GUIDES = readdirSync(new URL('src/site/guides', ROOT), { encoding: 'utf8', recursive: true })
  .filter((name) => name.endsWith('.md'))
  .map((name) => name.slice(0, -'.md'.length));

/** @returns the Markdown of the README */
export function readReadme(): Promise<string> {
  return readFile(new URL('README.md', ROOT), 'utf8');
}

/** @returns the Markdown of a guide */
export function readGuide(guide: string): Promise<string> {
  return readFile(new URL(`src/site/guides/${guide}.md`, ROOT), 'utf8');
}

/** @returns what stands under a heading of the second or third level, up to the next heading */
function sectionOf(markdown: string, heading: string): string {
  return (
    markdown.split(new RegExp(`^#{2,3} ${heading}\\n`, 'm'))[1]?.split(/\n##/)[0] ??
    assert.fail(`no section ${heading}`)
  );
}

/** @returns the cells of each row of the first table under a heading, without back-quotes */
export function tableOf(markdown: string, heading: string): string[][] {
  return sectionOf(markdown, heading)
    .split('\n')
    .filter((line) => line.startsWith('| ') || line.startsWith('|-'))
    .slice(2)
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.replaceAll('`', '').replaceAll('\\|', '|').trim()),
    );
}
