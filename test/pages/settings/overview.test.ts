import assert from 'node:assert/strict';
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { MemoryLimiter } from '../../../src/admission/charge/memory.js';
import type { CreatedKey } from '../../../src/keys/keys.js';
import { createKey } from '../../../src/keys/keys.js';
import { revokeFoundKeys, revokeKey } from '../../../src/keys/revoke.js';
import { rollKey } from '../../../src/keys/roll-key.js';
import { listPlans } from '../../../src/limits/plans.js';
import type { SiteOptions } from '../../../src/pages/parts/context.js';
import { NeedsAttention } from '../../../src/pages/settings/overview/attention.js';
import { loadOverview } from '../../../src/pages/settings/overview/overview.js';
import { hashOf } from '../../support/keys/key-hash.js';
import { expireIn } from '../../support/keys/expiry.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { addUsage, rollUp } from '../../support/keys/usage.js';
import { signIn } from '../../support/http/visitor.js';
import { startService, type TestService } from '../../support/service.js';

const DAY_MS = 86_400_000;

describe('the overview of the settings', () => {
  let service: TestService;
  let developerId: number;
  let limiter: MemoryLimiter;

  before(async () => (service = await startService()));
  after(() => service.stop());
  beforeEach(async () => {
    developerId = await newDeveloper(service.db);
    limiter = new MemoryLimiter();
  });

  /** What the overview shows, without its words. */
  function load(isSuspended = false): ReturnType<typeof loadOverview> {
    const site = { attribution: undefined } as SiteOptions;
    const suspendedAt = isSuspended ? new Date().toISOString() : null;
    return loadOverview({ db: service.db, limiter, site }, { developerId, suspendedAt });
  }

  /** What needs attention: each warning, and where it leads. */
  async function attention(isSuspended?: boolean): Promise<[text: string, address: string][]> {
    const html = render(h(NeedsAttention, await load(isSuspended)));
    assert.ok(!html.includes('<b>duction'), 'a label is text');
    return Array.from(html.matchAll(/<li class="notice tone-warning">(.*?)<\/li>/gs), ([, item = '']) => {
      const seen = item.replaceAll(/<span class="visually-hidden">.*?<\/span>/gs, '').replaceAll(/<[^>]*>/g, '');
      return [seen.replaceAll('\u00A0', ' '), / href="([^"]*)"/.exec(item)?.[1] ?? ''];
    });
  }

  function create(label?: string): Promise<CreatedKey> {
    return createKey(service.db, { developerId, planId: 'free', label });
  }

  it('the overview counts active keys, the requests of this day and what is left of the limits', async () => {
    const [{ prefix }, { prefix: rolled }, { prefix: revoked }] = [await create(), await create(), await create()];
    await rollKey(service.db, rolled, 3_600);
    await revokeKey(service.db, revoked);
    const hour = new Date().getUTCHours();
    await addUsage(service.db, prefix, 0, { successful: 1_000, rateLimited: 9 });
    await rollUp(service.db);
    // Not rolled up yet.
    await addUsage(service.db, prefix, 0, { successful: 990 });
    await addUsage(service.db, revoked, 0, { serverErrors: 1 });
    // Before this day began.
    await addUsage(service.db, prefix, hour + 1, { successful: 5_000 });
    const [free = assert.fail()] = await listPlans(service.db);
    await limiter.charge({ developerId, plan: free });
    const { keys, usage, plans } = await load();
    assert.deepEqual([keys.active, keys.rolled, keys.total], [2, 1, 4]);
    assert.deepEqual(usage.today, { successful: 1_990, clientErrors: 0, rateLimited: 9, serverErrors: 1 });
    assert.deepEqual(
      plans.map(({ plan, quotas }) => [plan.name, quotas.map(({ limit, remaining }) => [limit, remaining])]),
      [
        [
          'Free',
          [
            [60, 59],
            [10_000, 9_999],
          ],
        ],
      ],
    );
  });

  it('keys that expire soon, are unused or end without a replacement need attention, but not while their owner is suspended', async () => {
    const { db } = service;
    const use = (columns: object, { prefix }: CreatedKey) => db('api_keys').where({ prefix }).update(columns);
    const [soon, unused, used] = [await create('pro<b>duction'), await create('unused'), await create('fine')];
    await expireIn(db, soon.prefix, 3.5 * DAY_MS);
    for (const key of [soon, used]) await use({ last_used_at: db.fn.now() }, key);
    const longAgo = db.raw("now() - interval '120 days'");
    await use({ created_at: longAgo, last_used_at: longAgo }, unused);
    const [lost, chained] = [await create('lost'), await create('chained')];
    const { successor } = await rollKey(db, lost.prefix, 5 * 86_400);
    // Its successor was replaced in turn, by a key that is active.
    await rollKey(db, (await rollKey(db, chained.prefix, 3_600)).successor.prefix, 0);
    await revokeKey(db, successor.prefix);
    assert.deepEqual(await attention(), [
      ['pro&lt;b>duction expires in 3 days. Roll this key', `/settings/keys/${soon.prefix}/roll`],
      ['lost ends in 5 days, and its replacement is no longer active. Create a key', '/settings/keys/new'],
      ['unused has not been used for 120 days. Revoke this key', `/settings/keys/${unused.prefix}/revoke`],
    ]);
    assert.deepEqual(await attention(true), []);
    for (let i = 0; i < 5; i += 1) {
      if (i === 2) assert.equal((await attention()).length, 5);
      await expireIn(db, (await create(`k${i}`)).prefix, DAY_MS / 2);
    }
    const [more, ...others] = (await attention()).reverse();
    assert.equal(more?.[1], '/settings/keys');
    assert.deepEqual(
      others.map(([text]) => text).reverse(),
      [0, 1, 2, 3, 4].map((i) => `k${i} expires within a day. Roll this key`),
    );
  });

  it('keys need attention that a finder revoked, that are used after their end, or that expired in use, for 7 days', async () => {
    const { db } = service;
    const ago = (hours: number): object => db.raw('now() - make_interval(hours => ?)', [hours]);
    const [week, fine] = [7 * 24, 8 * 24];
    const cases: readonly [label: string, columns: Record<string, object>, hint: string | undefined][] = [
      ['active', { last_refused_at: ago(1) }, undefined],
      ['revoked', { revoked_at: ago(2) }, undefined],
      ['revoked in use', { revoked_at: ago(fine), last_refused_at: ago(week - 1) }, 'still_used'],
      ['silent for a week', { revoked_at: ago(fine), last_refused_at: ago(week + 1) }, undefined],
      // In a suspension before its end.
      ['refused before', { revoked_at: ago(2), last_refused_at: ago(3) }, undefined],
      ['refused, then revoked', { expires_at: ago(10), last_refused_at: ago(8), revoked_at: ago(6) }, undefined],
      ['expired', { expires_at: ago(2), last_used_at: ago(27) }, undefined],
      ['expired in use', { expires_at: ago(10), last_used_at: ago(11) }, 'expired_in_use'],
      [
        'rolled in use',
        {
          expires_at: ago(10),
          last_used_at: ago(11),
          successor_id: db('api_keys').select('id').where({ label: 'active' }),
        },
        undefined,
      ],
      ['long expired', { expires_at: ago(week + 1), last_used_at: ago(week + 2) }, undefined],
      ['expired and used', { expires_at: ago(10), last_used_at: ago(11), last_refused_at: ago(9) }, 'still_used'],
    ];
    for (const [label, columns] of cases) {
      const { prefix } = await create(label);
      await db('api_keys')
        .where({ prefix })
        .update({ created_at: ago(9_000), ...columns });
    }
    await db('api_keys').where({ label: 'active' }).update({ last_used_at: db.fn.now() });
    const leaked = await create('leaked');
    await revokeFoundKeys(db, [hashOf(leaked.key)]);
    const still = 'but is still in use: a request with it was refused';
    assert.deepEqual(
      (await attention()).map(([text]) => text.replace('. See this key', '')),
      [
        'leaked was revoked just now by somebody who found it. Find out where it leaked',
        `expired and used ended 10 hours ago ${still} 9 hours ago`,
        'expired in use expired 10 hours ago while it was in use',
        `revoked in use was revoked 8 days ago ${still} 7 days ago`,
      ],
    );
    assert.equal((await attention())[0]?.[1], `/settings/keys/${leaked.prefix}`);
    assert.deepEqual(await attention(true), []);
  });

  it('errors of more than a tenth of the requests of this hour and the one before need attention', async () => {
    const { prefix } = await create();
    await service.db('api_keys').where({ prefix }).update({ last_used_at: service.db.fn.now() });
    await addUsage(service.db, prefix, 2, { serverErrors: 1_000 });
    await addUsage(service.db, prefix, 1, { successful: 89, clientErrors: 5, rateLimited: 1 });
    await addUsage(service.db, prefix, 0, { serverErrors: 4 });
    assert.deepEqual(await attention(), []);
    await addUsage(service.db, prefix, 0, { serverErrors: 1 });
    assert.deepEqual(await attention(), []);
    await addUsage(service.db, prefix, 0, { clientErrors: 1 });
    const said = '11 of 101 requests in this hour and the one before had an error. See the request errors';
    assert.deepEqual(await attention(), [[said, '/settings/usage/failed']]);
  });

  it('the list and the page of a rolled key warn when the key that replaced it is no longer active', async () => {
    const { db } = service;
    const [{ prefix: lost }, { prefix: kept }] = [await create('lost'), await create('kept')];
    const { successor } = await rollKey(db, lost, 3_600);
    await rollKey(db, kept, 3_600);
    await revokeKey(db, successor.prefix);
    const visitor = await signIn(service, developerId);
    const warns = async (prefix: string): Promise<boolean> =>
      /class="notice tone-warning">This key ends .* has no replacement/.test(
        (await visitor.get(`/settings/keys/${prefix}`)).text,
      );
    assert.deepEqual([await warns(lost), await warns(kept)], [true, false]);
    assert.equal((await visitor.get('/settings/keys')).text.split('>No replacement<').length, 2);
  });

  it('the overview and the guide name commercial use, and the credit that a project must show', async () => {
    const owed = async (from: TestService): Promise<string> => {
      const { text } = await (await signIn(from, developerId)).get('/settings');
      return text.replace(/<[^>]+>/g, '').replace(/\s+/g, ' ');
    };
    const guide = async (from: TestService): Promise<string> =>
      (await from.get('/docs/guides/calling-the-api.md')).text.replace(/\s+/g, ' ');
    assert.match(
      await owed(service),
      /Required wherever you show data from the catalogue\. Ask your administrator for/,
    );
    assert.match(await guide(service), /must show the credit that your administrator requires\./);
    const credited = await startService({
      databaseUrl: service.databaseUrl,
      settings: { ATTRIBUTION: 'Data: <b>Example</b> & Co' },
    });
    try {
      assert.match(await owed(credited), /catalogue: “Data: &lt;b>Example&lt;\/b> &amp; Co”/);
      assert.match(await guide(credited), /must show this credit: `Data: <b>Example<\/b> & Co`\./);
    } finally {
      await credited.stop();
    }
    await service.db('developers').where({ id: developerId }).update({ attribution_required: false });
    assert.match(await owed(service), /10,000 requests per day, commercial use not allowed ?Attribution ?Not required/);
  });

  it('a limit needs attention from 80 % on', async () => {
    await create();
    const [free = assert.fail()] = await listPlans(service.db);
    const use = async (requests: number): Promise<unknown[]> => {
      for (let i = 0; i < requests; i += 1) await limiter.charge({ developerId, plan: free });
      return (await attention()).map(([text, address]) => [text.replace(/in \d+ s/, 'in …'), address]);
    };
    assert.deepEqual(await use(47), []);
    const high =
      'You have used 80% of the 60 requests per minute of the Free plan. The limit resets in …. See your limits';
    assert.deepEqual(await use(1), [[high, '/settings/usage']]);
    const full = 'all 60 requests per minute of the Free plan. Further requests get 429 until the limit resets in …';
    assert.deepEqual(await use(12), [[`You have used ${full}. See your limits`, '/settings/usage']]);
  });

  it('the overview warns when limits refuse many more requests than the day before', async () => {
    const { prefix } = await create();
    // On both sides of the ends of the two days.
    await addUsage(service.db, prefix, 48, { rateLimited: 100 });
    await addUsage(service.db, prefix, 47, { rateLimited: 2 });
    await addUsage(service.db, prefix, 24, { rateLimited: 4 });
    await addUsage(service.db, prefix, 23, { rateLimited: 11 });
    await rollUp(service.db);
    assert.deepEqual(await attention(), []);
    await addUsage(service.db, prefix, 0, { rateLimited: 1 });
    const said = '12 requests hit your rate limit in the last 24 hours (6 the day before). See when';
    assert.deepEqual(await attention(), [[said, '/settings/usage?range=24h']]);
  });
});
