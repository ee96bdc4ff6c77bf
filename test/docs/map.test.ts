import assert from 'node:assert/strict';
import { access, readdir, readFile } from 'node:fs/promises';
import { ROOT } from '../support/guides.js';

describe('the map of the source', () => {
  /** Every path in the first column of a table. */
  let places: string[];
  let text: string;

  before(async () => {
    text = await readFile(new URL('src/README.md', ROOT), 'utf8');
    const cells = [...text.matchAll(/^\| (`[^|]*`) +\|/gm)].map(([, cell = '']) => cell);
    places = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, place = '']) => place));
  });

  it('the map of the source names only places that exist', async () => {
    assert.ok(places.length > 10);
    for (const place of places) await access(new URL(`src/${place}`, ROOT));
  });

  it('the map of the source has every folder and file of src, and every folder of src/http', async () => {
    const here = await readdir(new URL('src', ROOT), { withFileTypes: true });
    const inHttp = await readdir(new URL('src/http', ROOT), { withFileTypes: true });
    const entries = [
      ...here.filter(({ name }) => !['http', 'README.md'].includes(name)),
      ...inHttp.map((entry) => Object.assign(entry, { name: `http/${entry.name}` })),
    ].map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name));
    assert.deepEqual(
      entries.filter((entry) => !places.some((place) => place.startsWith(entry))),
      [],
    );
  });

  it('the map of the source has at most 100 lines', () => {
    assert.ok(text.split('\n').length <= 100);
  });
});
