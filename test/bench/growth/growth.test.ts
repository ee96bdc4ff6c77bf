import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { DOMParser, onErrorStopParsing } from '@xmldom/xmldom';
import { readGuide } from '../../support/guides.js';
import { count } from '../measure.js';
import { CASES, type CaseName } from '../speed/cases.js';
import { drawTimes } from './draw-times.js';
import { readFigures } from './growth.js';

describe('the picture of growth in the performance guide', () => {
  it('is drawn from the saved figures and has a text alternative', async () => {
    const picture = await readFile(new URL('../../../src/site/guides/pictures/times.svg', import.meta.url), 'utf8');
    assert.equal(picture, await drawTimes(await readFigures()), 'Draw it again: make bench PARTS=growth DRAW=1');
    assert.match(await readGuide('performance'), /!\[[^\]]{40,}\]\(pictures\/times\.svg\)/);
  });

  it('has another colour for each of its colours on a dark screen', async () => {
    const picture = await drawTimes(await readFigures());
    const [style = ''] = /<style>.*<\/style>/.exec(picture) ?? [];
    const used = new Set(Array.from(picture.matchAll(/ (fill|stroke)="([^"]+)"/g), ([, , colour = '']) => colour));
    used.delete('none');
    assert.equal(used.size, 9);
    for (const colour of used)
      assert.match(style, new RegExp(`\\[fill="${colour}"\\]\\{fill:#(?!${colour.slice(1)})`), colour);
  });

  it('names every size, and the time of every operation at the largest size', async () => {
    const results = await readFigures();
    const document = new DOMParser({ onError: onErrorStopParsing }).parseFromString(
      await drawTimes(results),
      'image/svg+xml',
    );
    const texts = [...document.getElementsByTagName('text')].map(({ textContent }) => textContent);
    const largest = Object.entries(results.bySize.at(-1)?.medianMs ?? {}) as [CaseName, number][];
    assert.equal(largest.length, Object.keys(CASES).length);
    const wanted = [
      ...largest.map(([name, ms]) => `${ms.toFixed(2)} ms ${CASES[name]}`),
      ...results.bySize.map(({ titles }) => count(titles)),
    ];
    assert.deepEqual(
      wanted.filter((text) => !texts.includes(text)),
      [],
    );
  });
});
