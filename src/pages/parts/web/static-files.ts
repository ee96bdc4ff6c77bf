import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Representation } from '../../../http/response/representation.js';
import type { StaticFiles } from '../context.js';

/** The font that the stylesheet names. */
const FONT = 'source-sans-3.woff2';

type FileName = keyof StaticFiles['paths'];

/** The files of `src/pages/static`, each with its media type. */
const MEDIA_TYPES: Readonly<Record<FileName, string>> = {
  'site.css': 'text/css; charset=utf-8',
  'site.js': 'text/javascript; charset=utf-8',
  'favicon.svg': 'image/svg+xml',
  [FONT]: 'font/woff2',
};

/** The name of a file changes with its content, so a client may keep it for a year. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';

/** Hexadecimal digits of the SHA-256 in a path. */
const DIGITS = 12;

/**
 * Reads the files. The stylesheet refers to other files by their names in the folder; it is served with their paths.
 *
 * @param packageRoot - the folder of this package's package.json
 */
export async function readStaticFiles(packageRoot: string): Promise<StaticFiles> {
  const folder = `${packageRoot}/src/pages/static`;
  const contents = new Map<FileName, Buffer>();
  for (const name of Object.keys(MEDIA_TYPES) as FileName[]) {
    contents.set(name, await readFile(`${folder}/${name}`));
  }
  const pathTo = (name: FileName): string => {
    const digits = hash('sha256', contents.get(name) ?? '').slice(0, DIGITS);
    return `/assets/${name.replace('.', `.${digits}.`)}`;
  };
  const stylesheet = String(contents.get('site.css')).replace(FONT, pathTo(FONT));
  contents.set('site.css', Buffer.from(stylesheet));
  const files = [...contents].map(([name, content]) => ({ name, path: pathTo(name), content }));
  return {
    favicon: new Representation(await readFile(`${folder}/favicon.ico`), 'image/x-icon'),
    paths: Object.fromEntries(files.map(({ name, path }) => [name, path])) as StaticFiles['paths'],
    representations: new Map(
      files.map(({ name, path, content }) => [path, new Representation(content, MEDIA_TYPES[name], 'small')]),
    ),
  };
}
