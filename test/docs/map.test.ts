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

  it('names only places that exist', async () => {
    assert.ok(places.length > 10);
    for (const place of places) await access(new URL(`src/${place}`, ROOT));
  });

  it('names every folder and file at the top, and every folder of http', async () => {
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

  it('fits on two screens', () => {
    assert.ok(text.split('\n').length <= 100);
  });
});
