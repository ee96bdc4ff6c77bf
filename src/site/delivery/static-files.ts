import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Representation } from '../../http/response/representation.js';

/** The files of `src/site/static`, each with its media type. */
const MEDIA_TYPES = {
  'site.css': 'text/css; charset=utf-8',
  'site.js': 'text/javascript; charset=utf-8',
  'favicon.svg': 'image/svg+xml',
} as const;

/** A file of `src/site/static`. */
export type StaticFile = keyof typeof MEDIA_TYPES;

/** Hexadecimal digits of the SHA-256 in a name. */
const DIGITS = 12;

/** The static files of the site, kept in memory. */
export class StaticFiles {
  readonly #paths = new Map<StaticFile, string>();
  readonly #representations = new Map<string, Representation>();

  private constructor() {
    // Made by read().
  }

  /** Reads the files. @param packageRoot - the folder of this package's package.json */
  static async read(packageRoot: string): Promise<StaticFiles> {
    const files = new StaticFiles();
    for (const [name, mediaType] of Object.entries(MEDIA_TYPES)) {
      const content = await readFile(`${packageRoot}/src/site/static/${name}`);
      const path = `/assets/${name.replace('.', `.${hash('sha256', content).slice(0, DIGITS)}.`)}`;
      files.#paths.set(name as StaticFile, path);
      files.#representations.set(path, new Representation(content, mediaType));
    }
    return files;
  }

  /** The path of a file, with a hash of its content: `/assets/site.3f2a….css`. */
  pathOf(file: StaticFile): string {
    return this.#paths.get(file) ?? `/assets/${file}`;
  }

  /** Every file with its path. */
  get representations(): ReadonlyMap<string, Representation> {
    return this.#representations;
  }
}
