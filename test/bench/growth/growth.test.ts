import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { DOMParser, onErrorStopParsing, type Element } from '@xmldom/xmldom';
import { readGuide } from '../../support/guides.js';
import { count } from '../measure.js';
import { CASES, type CaseName } from '../speed/cases.js';
import { CHARTS } from './charts.js';
import { drawThroughput } from './draw-throughput.js';
import { drawTimes } from './draw-times.js';
import { readResults, type GrowthResults } from './results.js';

/** All elements of a name in an SVG. @throws ParseError when it is not well-formed XML */
function elementsOf(svg: string, name: string): Element[] {
  const document = new DOMParser({ onError: onErrorStopParsing }).parseFromString(svg, 'image/svg+xml');
  return [...document.getElementsByTagName(name)];
}

function textsOf(svg: string): (string | null)[] {
  return elementsOf(svg, 'text').map(({ textContent }) => textContent);
}

/** How many things are drawn in the marks of a kind, such as `mark-line`. */
function marksOf(svg: string, kind: string): number {
  return elementsOf(svg, 'g')
    .filter((group) => group.getAttribute('class')?.startsWith(`${kind} role-mark`))
    .reduce((marks, group) => marks + group.getElementsByTagName('path').length, 0);
}

/** Those of the wanted texts that are missing. */
function missingIn(svg: string, wanted: readonly string[]): string[] {
  const texts = textsOf(svg);
  return wanted.filter((text) => !texts.includes(text));
}

describe('the charts of growth', () => {
  let results: GrowthResults;

  before(async () => {
    results = await readResults();
  });

  for (const { file, draw } of CHARTS) {
    const name = basename(file.pathname);

    it(`are drawn from the figures beside them: ${name}`, async () => {
      assert.equal(
        await readFile(file, 'utf8'),
        await draw(results),
        'Draw it again: make bench PARTS=growth DRAW=1. Or measure again, without DRAW=1.',
      );
    });

    it(`are in the performance guide, with words for a reader who cannot see them: ${name}`, async () => {
      const guide = await readGuide('performance');
      assert.match(guide, new RegExp(`!\\[[^\\]]{40,}\\]\\(pictures/${name}\\)`));
    });
  }

  it('show a line with a point for each size and with its name for each operation', async () => {
    const svg = await drawTimes(results);
    const { bySize } = results.reads;
    const largest = Object.entries(bySize.at(-1)?.medianMs ?? {}) as [CaseName, number][];
    assert.equal(largest.length, 5);
    assert.deepEqual(
      missingIn(svg, [
        ...largest.map(([operation, ms]) => `${ms.toFixed(2)} ms ${CASES[operation]}`),
        ...bySize.map(({ titles }) => count(titles)),
      ]),
      [],
    );
    assert.equal(marksOf(svg, 'mark-line'), 5);
    assert.equal(marksOf(svg, 'mark-symbol'), 5 * bySize.length);
  });

  it('show a bar with its number for each case and number of workers', async () => {
    const svg = await drawThroughput(results);
    const { byWorkers } = results.throughput;
    const rates = byWorkers.flatMap(
      ({ requestsPerSecond }) => Object.entries(requestsPerSecond) as [CaseName, number][],
    );
    assert.ok(rates.length > 0);
    assert.deepEqual(
      missingIn(svg, [
        ...rates.flatMap(([name, rate]) => [CASES[name], count(rate)]),
        ...byWorkers.map(({ workers }) => String(workers)),
      ]),
      [],
    );
    assert.equal(marksOf(svg, 'mark-rect'), rates.length);
  });

  it('keep the names of lines apart that lie on each other', async () => {
    const medianMs = { changes: 1, tail: 0.01, stats: 0.01, me: 0.01, title: 0.01 };
    const reads = { seconds: 1, bySize: [1_000, 10_000].map((titles) => ({ titles, medianMs })) };
    const names = elementsOf(await drawTimes({ ...results, reads }), 'text').filter(({ textContent }) =>
      /^\d\.\d\d ms /.test(textContent ?? ''),
    );
    const heights = names.map((name) => Number(/,([\d.]+)\)/.exec(name.getAttribute('transform') ?? '')?.[1]));
    assert.equal(heights.length, 5);
    heights.slice(1).forEach((height, place) => assert.ok(height - (heights[place] ?? NaN) >= 18, heights.join()));
  });
});
