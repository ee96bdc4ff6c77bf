import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { DOMParser, onErrorStopParsing } from '@xmldom/xmldom';
import { readGuide } from '../../support/guides.js';
import { TIMES } from '../growth/times.js';
import { count } from '../measure.js';
import { MIRRORS } from '../mirror/mirrors.js';

for (const [part, picture] of Object.entries({ growth: TIMES, mirror: MIRRORS })) {
  const { path, guide } = picture.options;

  describe(`the picture ${path} in the guide "${guide}"`, () => {
    it(`the picture ${path} has a text alternative`, async () => {
      assert.match(await readGuide(guide), new RegExp(`!\\[[^\\]]{40,}\\]\\(${path}\\)`));
    });

    it(`the picture ${path} has another colour for each of its colours on a dark screen`, async () => {
      const { lines } = await picture.readChart();
      const drawn = await readFile(picture.file, 'utf8');
      const [style = ''] = /<style>.*<\/style>/.exec(drawn) ?? [];
      const used = new Set(Array.from(drawn.matchAll(/ (fill|stroke)="([^"]+)"/g), ([, , colour = '']) => colour));
      used.delete('none');
      // Besides the lines: two inks, the grid and the background.
      assert.equal(used.size, lines.length + 4);
      for (const colour of used)
        assert.match(style, new RegExp(`\\[fill="${colour}"\\]\\{fill:#(?!${colour.slice(1)})`), colour);
    });

    it(`the picture ${path} names every size, and the time of every line at the largest size as the saved figures have it`, async () => {
      const { title, lines, sizes } = await picture.readChart();
      const text = await readFile(picture.file, 'utf8');
      const document = new DOMParser({ onError: onErrorStopParsing }).parseFromString(text, 'image/svg+xml');
      const texts = [...document.getElementsByTagName('text')].map(({ textContent }) => textContent);
      const hint = `Draw it again: make bench PARTS=${part} DRAW=1`;
      assert.ok(lines.length >= 3 && sizes.length >= 4);
      for (const shown of [title, ...sizes.map(count)]) assert.ok(texts.includes(shown), `${shown}. ${hint}`);
      for (const { name, times } of lines) {
        const time = Number(texts.find((shown) => shown?.endsWith(`s ${name}`))?.replace(/ .*/, ''));
        assert.ok(Math.abs(time / (times.at(-1) ?? NaN) - 1) < 0.1, `${name}: ${time}. ${hint}`);
      }
    });
  });
}
