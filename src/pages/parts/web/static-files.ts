import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Representation } from '../../../http/response/representation.js';
import type { StaticFiles } from '../context.js';

/** The files of `src/pages/static`, each with its media type. */
const MEDIA_TYPES = {
  'site.css': 'text/css; charset=utf-8',
  'site.js': 'text/javascript; charset=utf-8',
  'favicon.svg': 'image/svg+xml',
} as const satisfies Record<keyof StaticFiles['paths'], string>;

/** The name of a file changes with its content, so a client may keep it for a year. */
export const IMMUTABLE = 'public, max-age=31536000, immutable';

/** Hexadecimal digits of the SHA-256 in a path. */
const DIGITS = 12;

/** Reads the files. @param packageRoot - the folder of this package's package.json */
export async function readStaticFiles(packageRoot: string): Promise<StaticFiles> {
  const folder = `${packageRoot}/src/pages/static`;
  const files = await Promise.all(
    Object.entries(MEDIA_TYPES).map(async ([name, mediaType]) => {
      const content = await readFile(`${folder}/${name}`);
      const path = `/assets/${name.replace('.', `.${hash('sha256', content).slice(0, DIGITS)}.`)}`;
      return { name, path, representation: new Representation(content, mediaType, 'small') };
    }),
  );
  return {
    favicon: new Representation(await readFile(`${folder}/favicon.ico`), 'image/x-icon'),
    paths: Object.fromEntries(files.map(({ name, path }) => [name, path])) as StaticFiles['paths'],
    representations: new Map(files.map(({ path, representation }) => [path, representation])),
  };
}
