import assert from 'node:assert/strict';
import { listKeys } from '../../src/keys/keys.js';
import { TABS } from '../../src/site/settings/settings-page.js';
import { settingsPages } from '../site/pages.js';
import { signIn, type Visitor } from '../support/http/visitor.js';
import type { Reply } from '../support/request.js';
import { testWorld } from '../support/world.js';

/** Past keys, each used once, and sessions of the largest developer. */
const MANY = 10_000;

/** How often a page is requested at most, to find what it costs when nothing else delays it. */
const ATTEMPTS = 20;

describe('the settings of a developer with thousands of past keys', () => {
  const world = testWorld({ service: true });
  let developerId: number;
  let visitor: Visitor;

  before(async () => {
    developerId = await world.newDeveloper();
    visitor = await signIn(world.service, developerId);
    await addKeys(developerId, 1, MANY, 'now()');
    await world.db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
       select id, date_trunc('hour', now(), 'UTC') - (id % 28) * interval '24 hours', 1, 0, 0
         from api_keys where developer_id = ?`,
      [developerId],
    );
    await world.db.raw(
      `insert into sessions (hash, developer_id, user_agent)
       select sha256(n::text::bytea), ?, 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
         from generate_series(1, ?) n`,
      [developerId, MANY],
    );
    await world.db.raw('analyze');
  });

  async function addKeys(owner: number, from: number, to: number, revokedAt: string): Promise<void> {
    await world.db.raw(
      `insert into api_keys (prefix, hash, developer_id, plan_id, label, created_at, revoked_at, form_hash)
       select 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), ?, 'free', 'key ' || n,
              now() - interval '2 days', ${revokedAt}, sha256(n::text::bytea)
         from generate_series(?::integer, ?) n`,
      [owner, from, to],
    );
  }

  async function get(path: string, by = visitor): Promise<Reply> {
    const reply = await by.get(path);
    assert.equal(reply.status, 200, path);
    return reply;
  }

  /** The numbers of rows of the tables of a page. */
  function rowsOf({ text }: Reply): number[] {
    return Array.from(text.matchAll(/<tbody>(.*?)<\/tbody>/gs), ([, body = '']) => body.split('<tr>').length - 1);
  }

  it('a page of the largest developer shows at most 50 rows, with as many queries as that of a new developer', async () => {
    const other = await signIn(world.service, await world.newDeveloper());
    for (const { path } of TABS) {
      const count = async (by: Visitor): Promise<number> => {
        const before = world.service.queries.length;
        await get(path, by);
        return world.service.queries.length - before;
      };
      assert.equal(await count(visitor), await count(other), path);
      const reply = await get(path);
      assert.ok(Math.max(0, ...rowsOf(reply)) <= 50 && reply.text.length < 64 * 1024, path);
    }
  });

  it('each list of the largest developer has links from its first page to its last and back', async () => {
    for (const path of ['keys', 'usage', 'events', 'sessions'].map((tab) => `/settings/${tab}`)) {
      const first = await get(path);
      assert.equal(Math.max(...rowsOf(first)), 50, path);
      assert.ok(
        first.text.includes(`<a href="${path}?page=2" rel="next">`) && !first.text.includes('rel="prev"'),
        path,
      );
      const second = await get(`${path}?page=2`);
      assert.equal(Math.max(...rowsOf(second)), 50, path);
      assert.ok(second.text.includes(`<a href="${path}" rel="prev">`), path);
      assert.ok(second.text.includes(`<a href="${path}?page=3" rel="next">`), path);
      const last = await get(`${path}?page=${MANY / 50 + 1}`);
      assert.ok(last.text.includes(`<a href="${path}?page=${MANY / 50}" rel="prev">`), path);
      assert.ok(!last.text.includes('rel="next"'), path);
    }
    // All lists read the number of the page alike.
    for (const page of ['-1', '0', '1.5', '9999999', 'x', '1 or 1=1']) {
      const { text } = await get(`/settings/keys?page=${encodeURIComponent(page)}`);
      assert.ok(text.includes('<a href="/settings/keys?page=2" rel="next">'), page);
    }
  });

  it('inactive keys are listed once each, after the active ones', async () => {
    const owner = await world.newDeveloper();
    const by = await signIn(world.service, owner);
    await addKeys(owner, 30_000, 30_009, 'null');
    await addKeys(owner, 30_010, 30_109, 'now()');
    const listed = async (page: number): Promise<string[]> => {
      const { text } = await get(`/settings/keys?page=${page}`, by);
      return Array.from(text.matchAll(/<th scope="row">.*?<code>svc_000(\d+)/g), ([, number = '']) => number);
    };
    const numbers = (from: number, to: number): string[] =>
      Array.from({ length: from - to + 1 }, (_, i) => String(from - i));
    assert.deepEqual(await listed(1), [...numbers(30_009, 30_000), ...numbers(30_109, 30_070)]);
    assert.deepEqual(await listed(2), numbers(30_069, 30_020));
    assert.deepEqual(await listed(3), numbers(30_019, 30_010));
    assert.ok(!(await get('/settings/keys?page=3', by)).text.includes('You have no active keys'));
  });

  it('the usage of the largest developer has all requests, and each key in the CSV', async () => {
    const { text } = await get('/settings/usage');
    assert.ok(text.includes(`<dt>Requests</dt><dd>${MANY.toLocaleString('en-US')}</dd>`));
    const csv = await get('/settings/usage.csv');
    assert.equal(new Set(csv.text.trimEnd().split('\r\n')).size, MANY + 1);
  });

  it('no page of the largest developer blocks the process for 10 ms', async () => {
    const { prefix } = await world.newKey({ developerId, planId: 'free' });
    for (const path of [...settingsPages(prefix), '/settings/usage.csv']) {
      let least = Infinity;
      for (let attempt = 0; attempt < ATTEMPTS && least >= 10; attempt += 1) {
        least = Math.min(least, await longestTurn(() => get(path)));
      }
      assert.ok(least < 10, `${path} blocked the process for ${least.toFixed(1)} ms`);
    }
  });

  it('the pages of a key at either end of ten thousand rolls are answered in time', async () => {
    const owner = await world.newDeveloper();
    const by = await signIn(world.service, owner);
    await addKeys(owner, 40_001, 40_000 + MANY, 'null');
    await world.db.transaction(async (transaction) => {
      // Without triggers, which take most of the time. These pages do not show what they write.
      await transaction.raw('set local session_replication_role = replica');
      await transaction.raw(
        `update api_keys k set successor_id = (select s.id from api_keys s where s.developer_id = :owner and s.id = k.id + 1),
                expires_at = now() + interval '1 day'
          where k.developer_id = :owner`,
        { owner },
      );
    });
    const [first, last] = ['svc_00040001', `svc_000${40_000 + MANY}`];
    for (const path of ['', '?page=2', `/${first}/revoke`, `/${last}/revoke`, `/${last}/roll`]) {
      await get(`/settings/keys${path}`, by);
    }
    assert.equal((await listKeys(world.db, owner)).length, MANY);
  });
});

/** @returns how long the process was busy without a break while something was done, in milliseconds of processor time */
async function longestTurn(act: () => Promise<unknown>): Promise<number> {
  const used = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };
  let longest = 0;
  let before = used();
  let isOver = false;
  const watch = (): void => {
    const now = used();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(watch);
  };
  watch();
  try {
    await act();
  } finally {
    isOver = true;
  }
  return longest;
}
