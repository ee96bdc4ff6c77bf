import assert from 'node:assert/strict';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { readInParts } from '../../src/platform/postgres/rows.js';
import {
  readUsageByDeveloper,
  USAGE_SORTS,
  usageByKey,
  type DeveloperTotal,
  type OwnedKeyTotal,
  type UsageSort,
} from '../../src/usage/usage-totals.js';
import type { UsageCounts } from '../../src/usage/outcome.js';
import { addUsage, count, rollUp, saveAll, toColumns, total } from '../support/keys/usage.js';
import { runCommand } from '../support/programs/command.js';
import { testWorld } from '../support/world.js';

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;

/** Requests of a key: how many, with which status, how many days ago. */
type Requests = readonly (readonly [times: number, status: number, daysAgo: number])[];

function countsOf({ successful, clientErrors, rateLimited, serverErrors }: UsageCounts): number[] {
  return [successful, clientErrors, rateLimited, serverErrors];
}

function namesAndCounts(totals: readonly DeveloperTotal[]): unknown[] {
  return totals.map(({ projectName, ...counts }) => [projectName, ...countsOf(counts)]);
}

describe('the usage of all developers', () => {
  const world = testWorld();
  let [first, second, idle] = [0, 0, 0];
  const prefixes: string[] = [];

  before(async () => {
    first = await world.newDeveloper('First');
    second = await world.newDeveloper('Second');
    idle = await world.newDeveloper('Idle');
    await use(first, 'a', [
      [2, 200, 0],
      [1, 429, 6],
      [5, 404, 6],
    ]);
    await use(first, 'b', [[3, 500, 29]]);
    await use(second, 'c', [
      [4, 200, 0],
      [100, 200, 30],
    ]);
    await use(second, 'd', [[100, 200, 34]]);
    await use(idle, 'e', []);
  });

  async function use(developerId: number, label: string, requests: Requests): Promise<void> {
    const { prefix } = await world.newKey({ developerId, label });
    const [keyId = 0] = await world.db('api_keys').where({ prefix }).pluck<number[]>('id');
    const usage = new UsageCounter();
    for (const [times, status, daysAgo] of requests) {
      for (let n = 0; n < times; n += 1) count(usage, keyId, status, TODAY - daysAgo * DAY_MS);
    }
    await saveAll(world.db, usage);
    await rollUp(world.db);
    prefixes.push(prefix);
  }

  async function byDeveloper(query: Parameters<typeof readUsageByDeveloper>[1]): Promise<unknown[]> {
    await total(world.db);
    return namesAndCounts(await readUsageByDeveloper(world.db, query));
  }

  async function byKey(query: Parameters<typeof usageByKey>[0]): Promise<unknown[]> {
    const totals = [];
    for await (const rows of readInParts<OwnedKeyTotal>(world.db, usageByKey(query))) totals.push(...rows);
    return totals.map(({ label, ...counts }) => [label, ...countsOf(counts)]);
  }

  it('developers are listed by a kind of their requests, those without such requests not at all', async () => {
    const [one, two, none] = [
      ['First', 2, 5, 1, 3],
      ['Second', 4, 0, 0, 0],
      ['Idle', 0, 0, 0, 0],
    ];
    for (const [query, expected] of [
      [{ span: { days: 30 } }, [none, two, one]],
      [{ span: { days: 30 }, sort: 'requests' }, [one, two]],
      [{ span: { days: 7 }, sort: 'requests' }, [['First', 2, 5, 1, 0], two]],
      [{ span: { days: 35 }, sort: 'requests' }, [['Second', 204, 0, 0, 0], one]],
      [{ span: { days: 1 }, sort: 'requests' }, [two, ['First', 2, 0, 0, 0]]],
      [{ span: { days: 30 }, sort: 'requests', limit: 1 }, [one]],
      [{ span: { days: 30 }, sort: 'rate-limited' }, [one]],
      [{ span: { days: 6 }, sort: 'rate-limited' }, []],
      [{ span: { days: 7 }, sort: 'client-errors' }, [['First', 2, 5, 1, 0]]],
      [{ span: { days: 30 }, sort: 'server-errors' }, [one]],
      [{ span: { days: 7 }, sort: 'server-errors' }, []],
      [{ span: { days: 30 }, developerId: second }, [two]],
      [{ span: { days: 30 }, developerId: idle }, [none]],
      [{ span: { days: 30 }, search: 'eCO' }, [two]],
      [{ span: { days: 30 }, sort: 'requests', search: prefixes[0] }, [one]],
      [{ span: { days: 1 }, sort: 'requests', search: String(second) }, [two]],
      [{ span: { hours: 1 }, sort: 'requests', search: 'nobody' }, []],
    ] as const) {
      assert.deepEqual(await byDeveloper(query), expected, JSON.stringify(query));
    }
    const [row] = await readUsageByDeveloper(world.db, { span: { days: 30 }, sort: 'rate-limited' });
    const counts = { successful: 2, clientErrors: 5, rateLimited: 1, serverErrors: 3, rank: 1 };
    assert.deepEqual(row, { developerId: first, projectName: 'First', suspendedAt: null, ...counts });
  });

  it('keys of all developers are listed by a kind of their requests', async () => {
    const [a, b, c] = [
      ['a', 2, 5, 1, 0],
      ['b', 0, 0, 0, 3],
      ['c', 4, 0, 0, 0],
    ];
    for (const [query, expected] of [
      [{ span: { days: 30 } }, [a, c, b]],
      [{ span: { days: 1 } }, [c, ['a', 2, 0, 0, 0]]],
      [{ span: { days: 30 }, limit: 2 }, [a, c]],
      [{ span: { days: 30 }, sort: 'server-errors' }, [b]],
      [{ span: { days: 30 }, developerId: first }, [a, b]],
      [{ span: { days: 30 }, developerId: idle }, []],
    ] as const) {
      assert.deepEqual(await byKey(query), expected, JSON.stringify(query));
    }
  });

  /** Runs `catalog usage` without Redis. @returns what it printed */
  async function usage(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(['usage', ...args], { DATABASE_URL: world.url });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    return stdout;
  }

  it('"usage" prints the requests of developers without Redis, as a table and JSON', async () => {
    await world.db('developer_usage').where({ period: '30 days' }).delete();
    const missing = await runCommand(['usage'], { DATABASE_URL: world.url });
    assert.match(missing.stderr, /^catalog: No requests of 30 days are added up yet: .+ use --days 29\.\n$/);
    await total(world.db);
    const lines = (await usage()).trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => line.split(/ {2,}/)),
      [
        ['developer', 'project name', 'requests', 'successful', 'client errors', 'rate limited', 'server errors'],
        [String(first), 'First', '11', '2', '5', '1', '3'],
        [String(second), 'Second', '4', '4', '0', '0', '0'],
      ],
    );
    assert.deepEqual(JSON.parse(await usage('--json', '--days', '7', '--developer', String(first))), {
      days: 7,
      sort: 'requests',
      developers: [
        {
          ...{ developer_id: first, project_name: 'First', suspended_at: null },
          ...{ requests: 8, successful: 2, client_errors: 5, rate_limited: 1, server_errors: 0 },
        },
      ],
    });
    assert.match(await usage('--developer', String(idle)), /\nIdle +0 +0 +0 +0 +0\n$|Idle +0 +0 +0 +0 +0\n$/);
    assert.match(
      await usage('--sort', 'rate-limited', '--days', '7'),
      /^developer [^\n]+\n\d+ +First +8 +2 +5 +1 +0\n$/,
    );
  });

  it('"usage --by-key" prints the requests of each key', async () => {
    const developer = await world.newDeveloper('=1+1');
    await use(developer, '@a "b", c', [[9, 200, 0]]);
    const key = prefixes.at(-1) ?? '';
    const { keys } = JSON.parse(await usage('--by-key', '--json')) as { keys: { key_prefix: string }[] };
    assert.deepEqual(
      keys.map(({ key_prefix: prefix }) => prefix),
      [key, prefixes[0], prefixes[2], prefixes[1]],
    );
    assert.match(await usage('--by-key'), new RegExp(`^${key}  @a "b", c +${developer} +=1\\+1 +9 +9 +0 +0 +0$`, 'm'));
  });

  it('"usage" with a time out of range, or two of them, is misuse', async () => {
    for (const [args, message] of [
      [
        ['--days', '36'],
        /^catalog: error: option '--days <number>' argument '36' is invalid\. At most 35 days can be shown\./,
      ],
      [['--days', '0'], /^catalog: error: option '--days <number>' argument '0' is invalid\./],
      [['--hours', '25'], /argument '25' is invalid\. At most 24 hours can be shown\./],
      [['--hours', '1', '--days', '1'], /cannot be used with option '--days/],
    ] as const) {
      const { code, stdout, stderr } = await runCommand(['usage', ...args], { DATABASE_URL: world.url });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    }
  });
});

describe('the totals of developers', () => {
  const world = testWorld();

  it('the last hour counts from the start of the one before', async () => {
    const [now, before] = [await world.newDeveloper('Now'), await world.newDeveloper('Before')];
    const keys = [await world.newKey({ developerId: now }), await world.newKey({ developerId: before })];
    const [one = assert.fail(), other = assert.fail()] = keys.map(({ prefix }) => prefix);
    await addUsage(world.db, other, 1, { rate_limit_exceeded: 6, internal_error: 2 });
    await addUsage(world.db, other, 2, { rate_limit_exceeded: 50, success: 50 });
    const list = async (sort: UsageSort): Promise<unknown[]> => {
      await rollUp(world.db);
      return namesAndCounts(await readUsageByDeveloper(world.db, { span: { hours: 1 }, sort, search: 'o' }));
    };
    assert.deepEqual(await list('rate-limited'), [['Before', 0, 0, 6, 2]]);
    await addUsage(world.db, one, 0, { rate_limit_exceeded: 7, success: 1 });
    await addUsage(world.db, one, 2, { rate_limit_exceeded: 70 });
    assert.deepEqual(await list('rate-limited'), [
      ['Now', 1, 0, 7, 0],
      ['Before', 0, 0, 6, 2],
    ]);
    await addUsage(world.db, other, 0, { rate_limit_exceeded: 7, title_not_found: 1 });
    assert.deepEqual(await list('client-errors'), [['Before', 0, 1, 13, 2]]);
    assert.deepEqual(await list('requests'), [
      ['Before', 0, 1, 13, 2],
      ['Now', 1, 0, 7, 0],
    ]);
  });

  it('each developer is in one part of the list, whatever they have in common', async () => {
    const others = await world
      .db('developers')
      .insert(Array.from({ length: 5 }, (_, n) => ({ project_name: `Twin ${n}` })))
      .returning<{ id: number }[]>('id');
    await world.db('developer_usage').insert(
      others.map(({ id }) => ({
        ...{ developer_id: id, period: 'day', start: world.db.raw("date_trunc('day', now(), 'UTC')") },
        ...toColumns({ successful: 3, clientErrors: 3, rateLimited: 3, serverErrors: 3 }),
      })),
    );
    await total(world.db);
    for (const span of [{ days: 1 }, { days: 30 }]) {
      for (const sort of [undefined, ...USAGE_SORTS]) {
        const whole = await readUsageByDeveloper(world.db, { span, sort });
        const parts: DeveloperTotal[] = [];
        for (let rows = whole; rows.length > 0; parts.push(...rows))
          rows = await readUsageByDeveloper(world.db, { span, sort, limit: 2, after: parts.at(-1) });
        assert.deepEqual(parts, whole, JSON.stringify([span, sort]));
      }
    }
    await world
      .db('developers')
      .whereIn(
        'id',
        others.map(({ id }) => id),
      )
      .delete();
    const left = await readUsageByDeveloper(world.db, { span: { days: 1 }, sort: 'server-errors' });
    assert.deepEqual(
      left.map(({ projectName }) => projectName),
      [...Array<string>(5).fill('deleted'), 'Before'],
    );
  });

  it('the totals of 30 days follow their days, in steps of any size, and end with them', async () => {
    const gone = await world.newDeveloper('Gone');
    const day = (ago: number) => world.db.raw(`date_trunc('day', now(), 'UTC') - make_interval(days => ${ago})`);
    const counts = { served: 1, rejected: 2, refused: 3, failed: 4 };
    await world
      .db('developer_usage')
      .insert([29, 30].map((ago) => ({ developer_id: gone, period: 'day', start: day(ago), ...counts })));
    const totals = async (): Promise<unknown[]> =>
      world
        .db('developer_usage')
        .where({ period: '30 days' })
        .orderBy('developer_id')
        .select('developer_id', 'served', 'failed');
    await total(world.db, 1);
    const stepped = await totals();
    assert.deepEqual(stepped.at(-1), { developer_id: gone, served: 1, failed: 4 });
    await total(world.db);
    assert.deepEqual(await totals(), stepped);
    await world
      .db('developer_usage')
      .where({ developer_id: gone, period: 'day' })
      .update({ served: 5 })
      .where('start', '>', day(30));
    await total(world.db);
    assert.deepEqual((await totals()).at(-1), { developer_id: gone, served: 5, failed: 4 });
    await world.db('developer_usage').where({ developer_id: gone, period: 'day' }).delete();
    await total(world.db);
    assert.deepEqual(await totals(), stepped.slice(0, -1));
  });
});
