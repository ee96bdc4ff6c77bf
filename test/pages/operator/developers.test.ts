import assert from 'node:assert/strict';
import { KINDS, type UsageCounts } from '../../../src/usage/outcome.js';
import { eachCase } from '../../support/each-case.js';
import { eventually } from '../../support/eventually.js';
import { signInOperator } from '../../support/http/operator.js';
import type { Visitor } from '../../support/http/visitor.js';
import { addUsage, toColumns, total } from '../../support/keys/usage.js';
import { testWorld } from '../../support/world.js';
import { nextPageOf } from '../page-html.js';

const settings = { METRICS_ADDRESS: '127.0.0.1:0' };

const PERIODS = ['1h', 'today', '30d'] as const;

/** The number that the list is sorted by: its place among those of a row. */
const SORTS = {
  newest: undefined,
  requests: 0,
  'rate-limited': 3,
  'client-errors': 2,
  'server-errors': 4,
} as const;

type Sort = keyof typeof SORTS;

/** A developer with their requests in each period. */
interface Developer extends Readonly<Record<(typeof PERIODS)[number], UsageCounts>> {
  readonly id: number;
  readonly name: string;
}

/** A page of the list, as its HTML has it. */
interface Page {
  /** The id of each developer, with the number of all their requests and of each kind. */
  readonly rows: readonly (readonly number[])[];
  /** The queries of the links to other periods and orders. */
  readonly links: readonly string[];
  /** What the form that searches keeps of the query. */
  readonly kept: string;
  readonly next: string | undefined;
}

function readPage(text: string): Page {
  const query = (pairs: string): string => new URLSearchParams(pairs.replaceAll('&amp;', '&')).toString();
  return {
    rows: Array.from(text.matchAll(/href="\/developers\/(\d+)".*?<\/tr>/g), ([row, id]) => [
      Number(id),
      ...Array.from(row.matchAll(/>([\d,]+)<\/td>/g), ([, number = '']) => Number(number)),
    ]),
    links: Array.from(text.matchAll(/<li><a href="\/developers\?([^"]*)"/g), ([, pairs = '']) => query(pairs)),
    kept: Array.from(
      text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g),
      ([, name, value]) => `${name}=${value}`,
    ).join('&'),
    next: nextPageOf({ text }),
  };
}

describe('the list of developers', () => {
  const world = testWorld({ service: { settings } });
  const developers: Developer[] = [];
  let operator: Visitor;

  before(async () => {
    operator = await signInOperator(world.service);
    const none = { '1h': NONE, today: NONE, '30d': NONE };
    for (const id of await world.db('developers').pluck<number[]>('id')) developers.push({ id, name: 'Test', ...none });
    for (let n = 0; n < 60; n += 1) developers.push(await newDeveloper(n));
    await total(world.db);
  });

  /** Creates a developer. Many have the same number of requests, also where a page ends. */
  async function newDeveloper(n: number): Promise<Developer> {
    const name = n % 15 === 0 ? `Stranger ${n}` : `Film club ${n}`;
    const id = await world.newDeveloper(name);
    const [hour, day, before] = [
      { successful: 1 + (n % 11), clientErrors: 1 + (n % 7), rateLimited: 1 + (n % 5), serverErrors: 1 + (n % 3) },
      { successful: 30 + (n % 9), clientErrors: 20 + (n % 4), rateLimited: 10 + (n % 3), serverErrors: 9 + (n % 2) },
      { successful: n % 4, clientErrors: n % 3, rateLimited: n % 10, serverErrors: n % 8 },
    ] as const;
    const start = (unit: string, days: number) =>
      world.db.raw(`date_trunc(?, now(), 'UTC') - make_interval(days => ?)`, [unit, days]);
    await world.db('developer_usage').insert([
      { developer_id: id, period: 'hour', start: start('hour', 0), ...toColumns(hour) },
      { developer_id: id, period: 'day', start: start('day', 0), ...toColumns(day) },
      { developer_id: id, period: 'day', start: start('day', 29), ...toColumns(before) },
    ]);
    return { id, name, '1h': hour, today: day, '30d': sum(day, before) };
  }

  /** @returns the developers whom a list has, in order, with the number that it is sorted by, or that of all requests */
  function listed(period: (typeof PERIODS)[number], sort: Sort, search: string): number[][] {
    return developers
      .filter(({ name }) => name.toLowerCase().includes(search))
      .map((each) => [each.id, numberOf(each[period], SORTS[sort])])
      .filter(([, number]) => sort === 'newest' || number !== 0)
      .toSorted(([a = 0, ofA = 0], [b = 0, ofB = 0]) => (sort === 'newest' ? b - a : ofB - ofA || a - b));
  }

  it('each order of each period continues page by page, and links keep the rest of the address', async () => {
    const cases = PERIODS.flatMap((period) =>
      (Object.keys(SORTS) as Sort[]).flatMap((sort) => ['', 'film'].map((search) => ({ period, sort, search }))),
    );
    await eachCase(cases, async ({ period, sort, search }) => {
      const chosen = { ...(search !== '' && { q: search }), period, sort };
      const query = (changed: object): string => new URLSearchParams({ ...chosen, ...changed }).toString();
      const links = [
        ...PERIODS.map((other) => query({ period: other })),
        ...Object.keys(SORTS).map((other) => query({ sort: other })),
      ];
      const rows: (readonly number[])[] = [];
      let path: string | undefined = `/developers?${query({})}`;
      for (; path !== undefined;) {
        const page = readPage((await operator.get(path)).text);
        assert.deepEqual([page.links, page.kept], [links, new URLSearchParams({ period, sort }).toString()]);
        assert.ok(rows.push(...page.rows) > 50 || page.next !== undefined, 'there are two pages');
        path = page.next;
      }
      assert.deepEqual(
        rows.map(([id, ...numbers]) => [id, numbers[SORTS[sort] ?? 0]]),
        listed(period, sort, search),
      );
    });
  });

  it('a server adds up the 30 days of developers, as one of its jobs', async () => {
    const id = await world.newDeveloper('Novel club');
    const { prefix } = await world.newKey({ developerId: id });
    await addUsage(world.db, prefix, 0, { successful: 3, rateLimited: 4 });
    const server = await world.startService({ settings, jobIntervalMs: 20 });
    const there = await signInOperator(server);
    await eventually('the totals have the requests', async () => {
      const { text } = await there.get('/developers?period=30d&sort=rate-limited&q=novel');
      return readPage(text).rows.some(([each, requests]) => each === id && requests === 7);
    });
  });
});

const NONE: UsageCounts = { successful: 0, clientErrors: 0, rateLimited: 0, serverErrors: 0 };

/** @returns the number of requests in a place of a row: all of them come first */
function numberOf(counts: UsageCounts, place = 0): number {
  const numbers = KINDS.map((kind) => counts[kind]);
  return [numbers.reduce((all, each) => all + each, 0), ...numbers][place] ?? 0;
}

function sum(a: UsageCounts, b: UsageCounts): UsageCounts {
  return Object.fromEntries(KINDS.map((kind) => [kind, a[kind] + b[kind]])) as unknown as UsageCounts;
}
