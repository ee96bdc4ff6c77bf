import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** The folder of the checkout. */
export const ROOT = new URL('../../', import.meta.url);

/** The folder of each guide, by its name. */
const FOLDERS = new Map(
  ['public', 'operator'].flatMap((readers) => {
    const folder = `src/pages/${readers}/guides`;
    const files = readdirSync(new URL(folder, ROOT)).filter((file) => file.endsWith('.md'));
    return files.map((file) => [file.slice(0, -'.md'.length), folder] as const);
  }),
);

/** The guides, each for one task: the names of their files, without `.md`. */
export const GUIDES = [...FOLDERS.keys()];

/** @returns the Markdown of the README */
export function readReadme(): Promise<string> {
  return readFile(new URL('README.md', ROOT), 'utf8');
}

/** @returns the Markdown of a guide */
export function readGuide(guide: string): Promise<string> {
  return readFile(new URL(`${FOLDERS.get(guide)}/${guide}.md`, ROOT), 'utf8');
}

/** @returns the title of a guide */
export async function readTitle(guide: string): Promise<string> {
  const [heading = ''] = (await readGuide(guide)).split('\n', 1);
  return heading.replace(/^# /, '');
}
