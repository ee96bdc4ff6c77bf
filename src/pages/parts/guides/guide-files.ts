import { readFile } from 'node:fs/promises';

/** A guide with its text. */
export interface Guide {
  /** The name of its file, without `.md`; also the end of its address. */
  readonly name: string;
  /** The first heading of its text. */
  readonly title: string;
  /** One sentence, for lists and search engines. */
  readonly description: string;
  /** CommonMark, without the title. */
  readonly text: string;
}

/**
 * Reads guides.
 *
 * @param folder - of their Markdown
 * @param descriptions - of each guide by its name, in reading order
 */
export function readGuideFiles(
  folder: string,
  descriptions: Readonly<Record<string, string>>,
): Promise<readonly Guide[]> {
  const guides = Object.entries(descriptions).map(async ([name, description]) => {
    const text = await readFile(`${folder}/${name}.md`, 'utf8');
    const end = text.indexOf('\n');
    return { name, description, title: text.slice('# '.length, end), text: text.slice(end + 1) };
  });
  return Promise.all(guides);
}
