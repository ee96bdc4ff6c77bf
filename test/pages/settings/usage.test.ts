import assert from 'node:assert/strict';
import type { KeyRecord } from '../../../src/keys/key-record.js';
import { createKey } from '../../../src/keys/keys.js';
import type { Outcome } from '../../../src/usage/outcome.js';
import { appendUsage } from '../../../src/usage/usage-log.js';
import { scaleLines } from '../../../src/pages/parts/usage.js';
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

  /** The numbers of the page, by their names. */
  function numbers(text: string): Record<string, string> {
    return Object.fromEntries(
      Array.from(text.matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)<\/dd>/g), ([, name = '', value = '']) => [name, value]),
    );
  }

  it('the page shows how much of each plan is used, and charges nothing', async () => {
    for (let i = 0; i < 3; i += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key.key } });
    for (let i = 0; i < 4; i += 1) {
      const text = await page();
      assert.match(text, /<h3>Free plan<\/h3>.*>3 of 60 requests; resets in \d+ s</s);
      const [, at = ''] =
        />3 of 10,000 requests; resets at (\d\d:\d\d) UTC, in (?:24 h|23 h 59 min)</.exec(text) ?? assert.fail(text);
      const inADay = [0, 60_000].map((before) => new Date(Date.now() - before).toISOString().slice(11, 16));
      assert.ok(inADay.includes(at), at);
      assert.match(text, /<meter[^>]* max="60" low="48" high="57" optimum="0" value="3"/);
      assert.match(text, /<h3>Pro plan<\/h3>.*>0 of 600 requests</s);
      assert.ok(!text.includes('<h3>Scale plan</h3>'));
    }
  });

  it('a table shows each of the last thirty days, and the charts the same numbers', async () => {
    const text = await page();
    const days = table(text, 'Requests by day');
    assert.equal(days.length, 31);
    const dayOf = (ago: number): string =>
      new Date(Date.now() - ago * 86_400_000).toLocaleDateString('en-US', {
        month: 'short',
        day: 'numeric',
        timeZone: 'UTC',
      });
    assert.deepEqual(days[0], [dayOf(0), '1,269', '1,239', '7', '20', '3', '97.6%']);
    assert.deepEqual(days[3]?.slice(1), ['10', '10', '0', '0', '0', '100%']);
    assert.deepEqual(days[29]?.slice(1), ['0', '0', '0', '0', '0', '–']);
    assert.deepEqual(days[30], ['Total', '1,279', '1,249', '7', '20', '3', '97.6%']);
    assert.deepEqual(numbers(text), {
      Requests: '1,279',
      'Success rate': '97.6%',
      'Client errors': '7',
      'Rate limited': '20',
      'Server errors': '3',
    });
    const today = '1,239 successful, 7 client errors, 20 rate limited, 3 server errors';
    assert.ok(text.includes(`<title>${dayOf(0)}: ${today}</title>`));
    assert.ok(text.includes('aria-label="Chart by day, at most 1,269 in one day"'));
    for (const kind of ['served', 'rejected', 'refused', 'failed'])
      assert.ok(text.includes(`chart-bar-${kind}"`), kind);
    assert.deepEqual(table(text, 'Requests by key'), [
      [`production${key.prefix}`, '1,274', '1,244', '7', '20', '3', '97.6%'],
      [`=1+1,&quot;&lt;script>alert(&quot;x&quot;)&lt;/script>${odd.prefix}`, '5', '5', '0', '0', '0', '100%'],
      ['Total', '1,279', '1,249', '7', '20', '3', '97.6%'],
    ]);
  });

  it('a range of 7 days is shown by day and one of 24 hours by hour, and any other value means 30 days', async () => {
    const week = await page('/settings/usage?range=7d');
    assert.equal(table(week, 'Requests by day').length, 8);
    assert.equal(numbers(week).Requests, '1,279');
    const day = await page(`/settings/usage?range=24h&key=${key.prefix}`);
    const hours = table(day, 'Requests by hour');
    assert.equal(hours.length, 25);
    assert.match(hours[0]?.[0] ?? '', new RegExp(` ${new Date().toISOString().slice(11, 13)}:00$`));
    // That of all requests of this day.
    assert.equal(hours.find(([name = '']) => name.endsWith(' 00:00'))?.[1], '1,264');
    assert.ok(
      day.includes('aria-current="true">24 hours<') && day.includes('<input type="hidden" name="range" value="24h"'),
    );
    assert.ok(day.includes(`href="/settings/usage?range=7d&amp;key=${key.prefix}"`));
    for (const range of ['', '1y', 'constructor']) {
      assert.equal(table(await page(`/settings/usage?range=${range}`), 'Requests by day').length, 31, range);
    }
  });

  it('the usage of one key is shown for its prefix, and that of all keys for an unknown one', async () => {
    const text = await page(`/settings/usage?key=${odd.prefix}`);
    assert.deepEqual(table(text, 'Requests by day')[0]?.slice(1), ['5', '5', '0', '0', '0', '100%']);
    assert.ok(text.includes(`<option value="${odd.prefix}" selected>\u2068=1+1,`));
    assert.match(text, new RegExp(`Only the key .*<code>${odd.prefix}</code>. <a href="/settings/usage">`));
    assert.ok(text.includes(`href="/settings/usage.csv?key=${odd.prefix}"`));
    const all = await page();
    assert.ok(all.includes(`<a href="/settings/usage?key=${odd.prefix}" title=`));
    for (const { prefix } of [key, odd]) assert.ok(all.includes(`<option value="${prefix}">`), prefix);
    for (const unknown of [ATTACK, 'svc_00000000', service.key.slice(0, 12)]) {
      const all = await page(`/settings/usage?key=${encodeURIComponent(unknown)}`);
      assert.equal(table(all, 'Requests by day')[0]?.[1], '1,269');
      assert.ok(!all.includes(unknown));
    }
  });

  it('the page shows which operation ended how, and the requests of one operation or outcome alone', async () => {
    const rows = (text: string): string[][] => table(text, 'Requests by operation and outcome');
    const all = await page();
    assert.deepEqual(rows(all), [
      ['getTitle', 'success', '1,000'],
      ['getChanges', 'success', '234'],
      ['getTitle', 'rate_limit_exceeded', '20'],
      ['getMe', 'success', '15'],
      ['getTitle', 'title_not_found', '6'],
      ['getChanges', 'service_unavailable', '3'],
      ['Other paths', 'not_found', '1'],
    ]);
    // Each link leads to the requests that its row counts, with the same sum as in its chart, its table and its file.
    const links = [...all.matchAll(/<a href="(\/settings\/usage\?(?:operation|outcome)=\w+)"/g)].map(
      ([, to = '']) => to,
    );
    assert.equal(new Set(links).size, 4 + 5);
    for (const address of new Set(links)) {
      const text = await page(address);
      const [of = '', value = ''] = address.split('?')[1]?.split('=') ?? [];
      const named = value === 'other' ? 'Other paths' : value;
      const column = of === 'operation' ? 0 : 1;
      const counted = rows(all).filter((row) => row[column] === named);
      assert.deepEqual(rows(text), counted, address);
      const sum = counted.reduce((added, [, , requests = '']) => added + Number(requests.replace(',', '')), 0);
      assert.equal(numbers(text).Requests, sum.toLocaleString('en-US'), address);
      assert.equal(table(text, 'Requests by day').at(-1)?.[1], numbers(text).Requests);
      assert.match(text, new RegExp(`<option value="${value}" selected`));
      assert.match(text, /Only .*<a href="\/settings\/usage">Show all requests</);
      const csv = await visitor.get(address.replace('?', '.csv?'));
      const inFile = csv.text.split('\r\n').slice(1, -1);
      const numbersOf = (line: string): number[] => line.split(',').slice(-4).map(Number);
      assert.equal(
        inFile.flatMap(numbersOf).reduce((added, each) => added + each, 0),
        sum,
        address,
      );
    }
    const both = await page('/settings/usage?operation=getTitle&outcome=title_not_found&range=7d');
    assert.deepEqual(rows(both), [['getTitle', 'title_not_found', '6']]);
    assert.equal(numbers(both)['Success rate'], '0.0%');
    const none = await page('/settings/usage?operation=constructor&outcome=__proto__');
    assert.equal(numbers(none).Requests, '1,279');
  });

  it('a CSV file has the same numbers, and no label that is a formula', async () => {
    const { status, headers, text } = await visitor.get('/settings/usage.csv');
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'text/csv; charset=utf-8');
    assert.equal(headers['content-disposition'], 'attachment; filename="usage.csv"');
    assert.equal(headers['cache-control'], 'no-store');
    const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    assert.equal(
      text,
      [
        'day,key_prefix,label,served,refused,failed,rejected',
        `${day(3)},${key.prefix},"production",10,0,0,0`,
        `${day(0)},${key.prefix},"production",1234,20,3,7`,
        `${day(0)},${odd.prefix},"'=1+1,""${ATTACK.replaceAll('"', '""')}",5,0,0,0`,
        '',
      ].join('\r\n'),
    );
    for (const [label, cell] of [
      ['-1', `"'-1"`],
      ['+1', `"'+1"`],
      ['@sum', `"'@sum"`],
      ['1=1', '"1=1"'],
      [null, ''],
    ] as const) {
      await service.db('api_keys').where({ prefix: odd.prefix }).update({ label });
      assert.ok((await visitor.get('/settings/usage.csv')).text.includes(`${odd.prefix},${cell},5,0,0,0`), cell);
    }
    const one = await visitor.get(`/settings/usage.csv?key=${odd.prefix}`);
    assert.equal(one.text.trimEnd().split('\r\n').length, 2);
  });

  it('nothing of another developer is shown for any key', async () => {
    const stranger = await signIn(service, await newDeveloper(service.db, 'Stranger'));
    for (const path of ['/settings/usage', '/settings/usage.csv']) {
      const { text } = await stranger.get(`${path}?key=${key.prefix}`);
      assert.ok(!text.includes(key.prefix) && !text.includes('1234') && !text.includes('1,234'), path);
    }
    assert.ok((await stranger.get('/settings/usage')).text.includes('No such requests in the last 30 days'));
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
