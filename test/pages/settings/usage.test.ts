import assert from 'node:assert/strict';
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import type { KeyRecord } from '../../../src/keys/key-record.js';
import { createKey } from '../../../src/keys/keys.js';
import type { Outcome } from '../../../src/usage/outcome.js';
import { appendUsage } from '../../../src/usage/usage-log.js';
import { Outcomes } from '../../../src/pages/parts/usage.js';
import { scaleLines } from '../../../src/pages/parts/usage-chart.js';
import { resetTime } from '../../../src/pages/settings/usage/quotas.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { signIn, type Visitor } from '../../support/http/visitor.js';
import { startService, type TestService } from '../../support/service.js';

const ATTACK = '<script>alert("x")</script>';

/** Requests to an operation that ended alike. */
type Way = readonly [operation: string, outcome: Outcome, requests: number];

describe('the usage page', () => {
  let service: TestService;
  let developerId: number;
  let visitor: Visitor;
  let key: KeyRecord & { readonly key: string };
  let odd: KeyRecord & { readonly key: string };

  before(async () => {
    service = await startService();
    developerId = await newDeveloper(service.db);
    visitor = await signIn(service, developerId);
    key = await createKey(service.db, { developerId, planId: 'free', label: 'production' });
    odd = await createKey(service.db, { developerId, planId: 'pro', label: `=1+1,"${ATTACK}` });
    await addUsage(key.prefix, 0, [
      ['getTitle', 'success', 1_000],
      ['getChanges', 'success', 234],
      ['getTitle', 'title_not_found', 6],
      ['', 'not_found', 1],
      ['getTitle', 'rate_limit_exceeded', 20],
      ['getChanges', 'service_unavailable', 3],
    ]);
    await addUsage(key.prefix, 3, [['getMe', 'success', 10]]);
    await addUsage(odd.prefix, 0, [['getMe', 'success', 5]]);
  });

  after(() => service.stop());

  /** Adds requests of a day to a key. @param days - how many days ago */
  async function addUsage(prefix: string, days: number, counts: readonly Way[]): Promise<void> {
    const [keyId = 0] = await service.db('api_keys').where({ prefix }).pluck<number[]>('id');
    const hour = Math.floor(Date.now() / 86_400_000 - days) * 24;
    await appendUsage(
      service.db,
      counts.map(([operation, outcome, requests]) => ({ keyId, hour, operation, outcome, requests, msAgo: 0 })),
    );
  }

  async function page(path = '/settings/usage'): Promise<string> {
    const { status, text } = await visitor.get(path);
    assert.equal(status, 200);
    return text;
  }

  /** The cells of the rows of a table, the row of totals last. */
  function table(text: string, caption: string): string[][] {
    const [, body = ''] = new RegExp(`<caption[^>]*>${caption}</caption>.*?<tbody>(.*?)</table>`, 's').exec(text) ?? [];
    return [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) =>
        cell.replace(/<(?:"[^"]*"|[^">])*>/g, ''),
      ),
    );
  }

  it('the page shows how much of each plan is used, and charges nothing', async () => {
    for (let i = 0; i < 3; i += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key.key } });
    for (let i = 0; i < 2; i += 1) {
      const text = await page();
      assert.match(text, /<h3>Free plan<\/h3>.*>3 of 60 requests; resets in \d+\u00A0s</s);
      assert.match(
        text,
        />3 of 10,000 requests; resets tomorrow at \d\d:\d\d\u00A0UTC \(in (?:24\u00A0h|23\u00A0h\u00A059\u00A0min)\)</,
      );
      assert.match(text, /<meter[^>]* max="60" low="48" high="57" optimum="0" value="3"/);
      assert.match(text, /<h3>Pro plan<\/h3>.*>0 of 600 requests</s);
      assert.ok(!text.includes('<h3>Scale plan</h3>'));
    }
  });

  it('a limit names the day and the time of its reset, in words that no line breaks apart', () => {
    const now = Date.parse('2026-11-28T22:30:00Z');
    for (const [seconds, text] of [
      [34, 'in 34_s'],
      [120, 'in 120_s'],
      [121, 'today at 22:32_UTC (in 3_min)'],
      [3_660, 'today at 23:31_UTC (in 1_h_1_min)'],
      [5_399, 'today at 23:59_UTC (in 1_h_30_min)'],
      [5_400, 'tomorrow at 00:00_UTC (in 1_h_30_min)'],
      [86_400, 'tomorrow at 22:30_UTC (in 24_h)'],
    ] as const) {
      assert.equal(resetTime(seconds, now), text.replaceAll('_', '\u00A0'));
    }
  });

  it('the chart and the tables by day, by operation and by key show the same numbers', async () => {
    const text = await page();
    const days = table(text, 'Requests by day');
    const dayOf = (ago: number): string =>
      new Date(Date.now() - ago * 86_400_000).toLocaleDateString('en-US', {
        month: 'short',
        day: 'numeric',
        timeZone: 'UTC',
      });
    assert.equal(days.length, 31);
    assert.deepEqual(days[0], [dayOf(0), '1,269', '1,239', '7', '20', '3', '97.6%']);
    assert.deepEqual(days[3]?.slice(1), ['10', '10', '0', '0', '0', '100%']);
    assert.deepEqual(days[29]?.slice(1), ['0', '0', '0', '0', '0', '–']);
    const total = ['Total', '1,279', '1,249', '7', '20', '3', '97.7%'];
    assert.deepEqual(days[30], total);
    const today = '1,239 successful, 7 client errors, 20 rate limited, 3 server errors';
    assert.ok(text.includes(`<title>${dayOf(0)}: ${today}</title>`));
    assert.ok(text.includes('aria-label="Chart by day, at most 1,269 in one day"'));
    for (const kind of ['successful', 'clientErrors', 'rateLimited', 'serverErrors'])
      assert.ok(text.includes(`chart-bar-${kind}"`), kind);
    for (const [query, kept] of [
      ['', ''],
      [
        `&key=${key.prefix}&operation=getTitle&outcome=title_not_found`,
        `key=${key.prefix}&amp;code=title_not_found&amp;operation=getTitle&amp;`,
      ],
    ] as const) {
      const chart = await page(`/settings/usage?range=24h${query}`);
      assert.deepEqual(
        [...chart.matchAll(/<a class="chart-bucket" href="([^"]+)"/g)].map(([, address]) =>
          address?.replace(/\d{4}-\d\d-\d\dT\d\d%3A00$/, 'HOUR'),
        ),
        [`/settings/usage/failed?${kept}hour=HOUR`],
      );
    }
    assert.deepEqual(table(text, 'Requests by key'), [
      [`production${key.prefix}`, '1,274', '1,244', '7', '20', '3', '97.6%'],
      [`=1+1,&quot;&lt;script>alert(&quot;x&quot;)&lt;/script>${odd.prefix}`, '5', '5', '0', '0', '0', '100%'],
      total,
    ]);
    assert.deepEqual(table(text, 'Requests by operation and outcome'), [
      ['getTitle', 'success', '1,000'],
      ['getChanges', 'success', '234'],
      ['getTitle', 'rate_limit_exceeded', '20'],
      ['getMe', 'success', '15'],
      ['getTitle', 'title_not_found', '6'],
      ['getChanges', 'service_unavailable', '3'],
      ['Other paths', 'not_found', '1'],
    ]);
  });

  it('the page is limited to a key, an operation and an outcome, which its links and its form keep', async () => {
    const text = await page(`/settings/usage?range=24h&key=${key.prefix}&operation=getTitle&outcome=title_not_found`);
    const hours = table(text, 'Requests by hour');
    assert.deepEqual([hours.length, hours.at(-1)?.[1]], [25, '6']);
    assert.match(hours[0]?.[0] ?? '', new RegExp(` ${new Date().toISOString().slice(11, 13)}:00$`));
    assert.deepEqual(table(text, 'Requests by operation and outcome'), [['getTitle', 'title_not_found', '6']]);
    const limits = `key=${key.prefix}&amp;operation=getTitle&amp;outcome=title_not_found`;
    for (const part of [
      'aria-current="true">24 hours<',
      '<input type="hidden" name="range" value="24h"',
      `<option value="${key.prefix}" selected>`,
      `<option value="${odd.prefix}">\u2068=1+1,`,
      '<option value="getTitle" selected>',
      '<option value="title_not_found" selected>',
      `href="/settings/usage?range=7d&amp;${limits}"`,
      `href="/settings/usage.csv?range=24h&amp;${limits}"`,
      `href="/settings/usage?range=24h&amp;key=${key.prefix}&amp;operation=getTitle"`,
      `href="/settings/usage/failed?key=${key.prefix}&amp;code=title_not_found&amp;operation=getTitle"`,
      '<a href="/settings/usage?range=24h">Show all<',
    ]) {
      assert.ok(text.includes(part), part);
    }
  });

  it('the same requests are downloaded as CSV', async () => {
    const { status, headers, text } = await visitor.get(`/settings/usage.csv?key=${key.prefix}&operation=getTitle`);
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'text/csv; charset=utf-8');
    assert.equal(headers['content-disposition'], 'attachment; filename="usage.csv"');
    assert.equal(headers['cache-control'], 'no-store');
    const day = new Date().toISOString().slice(0, 10);
    const of = `${day},${key.prefix},"production",getTitle`;
    assert.deepEqual(text.split('\r\n'), [
      'day,key_prefix,label,operation,outcome,kind,requests',
      `${of},rate_limit_exceeded,rate limited,20`,
      `${of},success,successful,1000`,
      `${of},title_not_found,client errors,6`,
      '',
    ]);
  });

  it('nothing of another developer is shown for any key', async () => {
    const stranger = await signIn(service, await newDeveloper(service.db, 'Stranger'));
    for (const path of ['/settings/usage', '/settings/usage.csv']) {
      for (const query of ['', `?key=${key.prefix}`]) {
        const { text } = await stranger.get(path + query);
        assert.ok(!text.includes('1234') && !text.includes('1,234'), path + query);
      }
    }
    assert.ok((await stranger.get('/settings/usage')).text.includes('No such requests in the last 30 days'));
  });
});

describe('the numbers of requests', () => {
  const NONE = { successful: 0, clientErrors: 0, rateLimited: 0, serverErrors: 0 };

  it('a server error stands out, and other errors do above a tenth of the requests, not only by colour', () => {
    for (const [counts, tones] of [
      [{ successful: 1_000 }, []],
      [{ successful: 1_000, serverErrors: 1 }, ['danger 1']],
      [{ successful: 90, rateLimited: 10 }, []],
      [{ successful: 89, rateLimited: 11 }, ['warning 11']],
      [{ successful: 90, clientErrors: 10 }, []],
      [{ successful: 89, clientErrors: 11 }, ['danger 11']],
    ] as const) {
      const html = render(h(Outcomes, { counts: { ...NONE, ...counts } }));
      const alarms = html.matchAll(
        /<strong class="alarm tone-(\w+)">(\d+)<span class="visually-hidden">, needs attention/g,
      );
      assert.deepEqual(
        Array.from(alarms, ([, tone, count]) => `${tone} ${count}`),
        tones,
      );
    }
  });
});

describe('the scale of a chart', () => {
  it('a scale has whole steps, fits the highest count and has room for at most so many lines', () => {
    assert.deepEqual(scaleLines(0, 4), [0, 1]);
    assert.deepEqual(scaleLines(3, 4), [0, 1, 2, 3]);
    assert.deepEqual(scaleLines(51_000, 5), [0, 20_000, 40_000, 60_000]);
    for (let most = 1; most < 5_000; most += 7) {
      const lines = scaleLines(most, 3);
      const [above = 0, step = 0] = [lines.at(-1), lines[1]];
      assert.ok(lines.length <= 4 && above >= most && above - step < most, `${most}: ${lines.join()}`);
    }
  });
});
