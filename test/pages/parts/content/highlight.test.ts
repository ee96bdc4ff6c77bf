import assert from 'node:assert/strict';
import { highlight, isLanguage } from '../../../../src/pages/parts/content/highlight.js';
import { programsOf } from '../../../../src/pages/parts/content/samples.js';
import { GUIDES, readGuide } from '../../../support/guides.js';

/** @returns the text that a browser shows for HTML made of `span` elements */
function shown(html: string): string {
  return html
    .replaceAll(/<span class="[cknst]">|<\/span>/g, '')
    .replaceAll(/&(lt|gt|quot|#x27|amp);/g, (_entity, name: string) => {
      return { lt: '<', gt: '>', quot: '"', '#x27': "'", amp: '&' }[name] ?? assert.fail(name);
    });
}

describe('highlighted code', () => {
  it('every sample and every program in a guide reads the same with its colours as without', async () => {
    const fences = (await Promise.all(GUIDES.map(readGuide))).flatMap((text) =>
      Array.from(text.matchAll(/^```(\w+)\n(.+?)^```/gms), ([, language = '', code = '']) => ({ language, code })),
    );
    let count = 0;
    for (const { language, code } of [...fences, ...programsOf('https://h/api/v1/stats')]) {
      if (!isLanguage(language)) continue;
      const html = highlight(code, language);
      assert.equal(shown(html), code);
      assert.equal(html.split('<span ').length, html.split('</span>').length, code);
      count += 1;
    }
    assert.ok(count > 30, String(count));
  });

  it('tokens have one class each, and markup in code is text', () => {
    assert.equal(
      highlight('{"a": [1, true, "</code><script>"]}', 'json'),
      '{<span class="t">&quot;a&quot;</span>: [<span class="n">1</span>, <span class="k">true</span>, ' +
        '<span class="s">&quot;&lt;/code&gt;&lt;script&gt;&quot;</span>]}',
    );
  });
});
