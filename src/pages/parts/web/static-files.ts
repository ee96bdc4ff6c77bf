import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Representation } from '../../../http/response/representation.js';
import { FILES, FONTS, type FileName, type StaticFiles } from '../context.js';

/** The parts of the stylesheet in `src/pages/static/styles`, in the order of the cascade. */
const STYLES = [
  ...['theme', 'ground', 'headings', 'frame', 'controls', 'tables', 'numbers', 'code', 'sidebar', 'search'],
  ...['pages/reference', 'pages/landing', 'pages/sign-in', 'pages/settings'],
  // Paper and the colours of the reader override the rules above.
  'media',
];

/** The media type of each file, by the end of its name. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
};

/** The name of a file changes with its content, so a client may keep it for a year. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';

/** Hexadecimal digits of the SHA-256 in a path. */
const DIGITS = 12;

/**
 * Reads the files of `src/pages/static`. The stylesheet names the fonts as in the folder; they are served with their paths.
 *
 * @param packageRoot - the folder of this package's package.json
 */
export async function readStaticFiles(packageRoot: string): Promise<StaticFiles> {
  const folder = `${packageRoot}/src/pages/static`;
  const paths = {} as Record<FileName, string>;
  const representations = new Map<string, Representation>();
  const add = (name: FileName, content: Buffer | string): void => {
    const [base = '', extension = ''] = name.split('.');
    const path = `/assets/${base}.${hash('sha256', content).slice(0, DIGITS)}.${extension}`;
    paths[name] = path;
    representations.set(path, new Representation(content, MEDIA_TYPES[extension] ?? '', 'small'));
  };
  for (const name of [...FILES, ...FONTS]) add(name, await readFile(`${folder}/${name}`));
  const styles = await Promise.all(STYLES.map((name) => readFile(`${folder}/styles/${name}.css`, 'utf8')));
  const stylesheet = FONTS.reduce((text, font) => text.replace(font, paths[font]), styles.join('\n'));
  add('site.css', stylesheet);
  return {
    paths,
    representations,
    favicon: new Representation(await readFile(`${folder}/favicon.ico`), 'image/x-icon'),
  };
}
