import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { DOMParser, onErrorStopParsing } from '@xmldom/xmldom';
import { count } from '../measure.js';
import { PICTURE, readChart } from './picture.js';

const HINT = 'Draw it again: make bench PARTS=growth DRAW=1';

describe('the picture of the performance guide', () => {
  it('the picture has another colour for each of its colours on a dark screen', async () => {
    const { lines } = await readChart();
    const drawn = await readFile(PICTURE, 'utf8');
    const [style = ''] = /<style>.*<\/style>/.exec(drawn) ?? [];
    const used = new Set(Array.from(drawn.matchAll(/ (fill|stroke)="([^"]+)"/g), ([, , colour = '']) => colour));
    used.delete('none');
    // Besides the lines: two inks, the grid and the background.
    assert.equal(used.size, lines.length + 4);
    for (const colour of used)
      assert.match(style, new RegExp(`\\[fill="${colour}"\\]\\{fill:#(?!${colour.slice(1)})`), colour);
  });

  it('the picture names every size, and the time of every line at the largest size as the saved figures have it', async () => {
    const { title, lines, sizes } = await readChart();
    const text = await readFile(PICTURE, 'utf8');
    const document = new DOMParser({ onError: onErrorStopParsing }).parseFromString(text, 'image/svg+xml');
    const texts = [...document.getElementsByTagName('text')].map(({ textContent }) => textContent);
    assert.ok(lines.length >= 3 && sizes.length >= 4);
    for (const shown of [title, ...sizes.map(count)]) assert.ok(texts.includes(shown), `${shown}. ${HINT}`);
    for (const { name, times } of lines) {
      const time = Number(texts.find((shown) => shown?.endsWith(`s ${name}`))?.replace(/ .*/, ''));
      assert.ok(Math.abs(time / (times.at(-1) ?? NaN) - 1) < 0.1, `${name}: ${time}. ${HINT}`);
    }
  });
});
