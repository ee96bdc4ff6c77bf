import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** The folder of the checkout. */
export const ROOT = new URL('../../', import.meta.url);

/** The guides, each for one task: the paths of the files in `src/pages/public/guides`, without `.md`. */
export const GUIDES = readdirSync(new URL('src/pages/public/guides', ROOT), { encoding: 'utf8', recursive: true })
  .filter((name) => name.endsWith('.md'))
  .map((name) => name.slice(0, -'.md'.length));

/** @returns the Markdown of the README */
export function readReadme(): Promise<string> {
  return readFile(new URL('README.md', ROOT), 'utf8');
}

/** @returns the Markdown of a guide */
export function readGuide(guide: string): Promise<string> {
  return readFile(new URL(`src/pages/public/guides/${guide}.md`, ROOT), 'utf8');
}

/** @returns the title of a guide */
export async function readTitle(guide: string): Promise<string> {
  const [heading = ''] = (await readGuide(guide)).split('\n', 1);
  return heading.replace(/^# /, '');
}
