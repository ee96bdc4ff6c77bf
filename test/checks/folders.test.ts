import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The most files of a folder, which a reader can still take in at once. */
const MOST_FILES = 12;

const PLACES = ['src', 'test', 'db', '.config', '.deploy'];

/** Their number grows, and readers find them by other lists: the history of the schema, the guides on their page. */
const MAY_GROW = ['db/migrations', 'src/pages/operator/guides'];

interface Folder {
  readonly path: string;
  readonly files: readonly string[];
}

function foldersIn(path: string): Folder[] {
  const entries = readdirSync(join(root, path), { withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && entry.name !== '.DS_Store')
    .map(({ name }) => `${path}/${name}`);
  const inner = entries.filter((entry) => entry.isDirectory());
  return [{ path, files }, ...inner.flatMap(({ name }) => foldersIn(`${path}/${name}`))];
}

describe('the folders of the sources and the tests', () => {
  const folders = PLACES.flatMap(foldersIn);

  it(`every folder has at most ${MOST_FILES} files`, () => {
    const crowded = folders
      .filter(({ path, files }) => !MAY_GROW.includes(path) && files.length > MOST_FILES)
      .map(({ path }) => path);
    assert.ok(folders.length > 50);
    assert.deepEqual(crowded, []);
  });

  it('no file imports from a suite, except for the long runs of one', () => {
    const sources = folders
      .flatMap(({ files }) => files)
      .filter((file) => /\.(ts|tsx|cjs|js)$/.test(file) && !file.endsWith('.lab.ts'));
    const importing = sources.filter((file) =>
      /\b(?:from|import|require) ?\(?['"][^'"]+\.test\.js['"]/.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.ok(sources.length > 400);
    assert.deepEqual(importing, []);
  });
});
