import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Representation } from '../../../http/response/representation.js';
import { FONTS, IMAGES, type StaticFiles } from '../context.js';

type FileName = keyof StaticFiles['paths'];

/** The parts of the stylesheet in `src/pages/static/styles`, in the order of the cascade. */
const STYLES = [
  ...['theme', 'ground', 'headings', 'frame', 'controls', 'tables', 'numbers', 'code', 'sidebar', 'search'],
  ...['pages/reference', 'pages/landing', 'pages/settings'],
  // Paper and the colours of the reader override the rules above.
  'media',
];

/** The files that pages load, each with its media type. */
const MEDIA_TYPES: Readonly<Record<FileName, string>> = {
  'site.css': 'text/css; charset=utf-8',
  'site.js': 'text/javascript; charset=utf-8',
  'favicon.svg': 'image/svg+xml',
  'social-card.png': 'image/png',
  'apple-touch-icon.png': 'image/png',
  'source-sans-3.woff2': 'font/woff2',
  'ibm-plex-mono.woff2': 'font/woff2',
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
  const contents = new Map<FileName, Buffer>();
  for (const name of ['site.js', 'favicon.svg', ...IMAGES, ...FONTS] as const) {
    contents.set(name, await readFile(`${folder}/${name}`));
  }
  const pathTo = (name: FileName): string => {
    const digits = hash('sha256', contents.get(name) ?? '').slice(0, DIGITS);
    return `/assets/${name.replace('.', `.${digits}.`)}`;
  };
  const styles = await Promise.all(STYLES.map((name) => readFile(`${folder}/styles/${name}.css`, 'utf8')));
  const stylesheet = FONTS.reduce((text, font) => text.replace(font, pathTo(font)), styles.join('\n'));
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
