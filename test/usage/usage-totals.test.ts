import assert from 'node:assert/strict';
import { UsageCounter } from '../../src/usage/usage-counter.js';
import { readUsageByDeveloper, readUsageByOwnedKey } from '../../src/usage/usage-totals.js';
import type { UsageCounts } from '../../src/usage/outcome.js';
import { count, rollUp, saveAll } from '../support/keys/usage.js';
import { runCommand } from '../support/programs/command.js';
import { testWorld } from '../support/world.js';

const DAY_MS = 86_400_000;
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS;

/** Requests of a key: how many, with which status, how many days ago. */
type Requests = readonly (readonly [times: number, status: number, daysAgo: number])[];

function countsOf({ served, rejected, refused, failed }: UsageCounts): number[] {
  return [served, rejected, refused, failed];
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
    const totals = await readUsageByDeveloper(world.db, query);
    return totals.map(({ projectName, ...counts }) => [projectName, ...countsOf(counts)]);
  }

  async function byKey(query: Parameters<typeof readUsageByOwnedKey>[1]): Promise<unknown[]> {
    const totals = await readUsageByOwnedKey(world.db, query);
    return totals.map(({ label, ...counts }) => [label, ...countsOf(counts)]);
  }

  it('developers are listed by their requests of the last days, those without requests last', async () => {
    const [one, two, none] = [
      ['First', 2, 5, 1, 3],
      ['Second', 4, 0, 0, 0],
      ['Idle', 0, 0, 0, 0],
    ];
    assert.deepEqual(await byDeveloper({ days: 30 }), [one, two, none]);
    assert.deepEqual(await byDeveloper({ days: 7 }), [['First', 2, 5, 1, 0], two, none]);
    assert.deepEqual(await byDeveloper({ days: 35 }), [['Second', 204, 0, 0, 0], one, none]);
    assert.deepEqual(await byDeveloper({ days: 1 }), [two, ['First', 2, 0, 0, 0], none]);
    assert.deepEqual(await byDeveloper({ days: 30, limit: 1, offset: 1 }), [two]);
    assert.deepEqual(await byDeveloper({ days: 30, developerId: second }), [two]);
    assert.deepEqual(await byDeveloper({ days: 30, developerId: idle }), [none]);
    assert.deepEqual((await readUsageByDeveloper(world.db, { days: 30, limit: 1 }))[0], {
      developerId: first,
      projectName: 'First',
      suspendedAt: null,
      served: 2,
      rejected: 5,
      refused: 1,
      failed: 3,
    });
  });

  it('keys of all developers are listed by their requests, and keys without requests are left out', async () => {
    const [a, b, c] = [
      ['a', 2, 5, 1, 0],
      ['b', 0, 0, 0, 3],
      ['c', 4, 0, 0, 0],
    ];
    assert.deepEqual(await byKey({ days: 30 }), [a, c, b]);
    assert.deepEqual(await byKey({ days: 1 }), [c, ['a', 2, 0, 0, 0]]);
    assert.deepEqual(await byKey({ days: 30, limit: 1, offset: 1 }), [c]);
    assert.deepEqual(await byKey({ days: 30, developerId: first }), [a, b]);
    assert.deepEqual(await byKey({ days: 30, developerId: idle }), []);
    assert.deepEqual((await readUsageByOwnedKey(world.db, { days: 30, limit: 1, offset: 1 }))[0], {
      keyPrefix: prefixes[2],
      label: 'c',
      developerId: second,
      projectName: 'Second',
      served: 4,
      rejected: 0,
      refused: 0,
      failed: 0,
    });
  });

  /** Runs `catalog usage` without Redis. @returns what it printed */
  async function usage(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(['usage', ...args], { DATABASE_URL: world.url });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    return stdout;
  }

  it('"usage" prints the requests of each developer without Redis, as a table and JSON', async () => {
    const lines = (await usage()).trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => line.split(/ {2,}/)),
      [
        ['developer', 'project name', 'requests', 'served', 'rejected', 'refused', 'failed'],
        [String(first), 'First', '11', '2', '5', '1', '3'],
        [String(second), 'Second', '4', '4', '0', '0', '0'],
        [String(idle), 'Idle', '0', '0', '0', '0', '0'],
      ],
    );
    assert.deepEqual(JSON.parse(await usage('--json', '--days', '7', '--developer', String(first))), {
      days: 7,
      developers: [
        {
          developer_id: first,
          project_name: 'First',
          suspended_at: null,
          served: 2,
          rejected: 5,
          refused: 1,
          failed: 0,
          requests: 8,
        },
      ],
    });
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

  it('"usage" with days out of range is misuse', async () => {
    for (const [args, message] of [
      [
        ['--days', '36'],
        /^catalog: error: option '--days <number>' argument '36' is invalid\. Usage is kept for 35 days\./,
      ],
      [['--days', '0'], /^catalog: error: option '--days <number>' argument '0' is invalid\./],
    ] as const) {
      const { code, stdout, stderr } = await runCommand(['usage', ...args], { DATABASE_URL: world.url });
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    }
  });
});
