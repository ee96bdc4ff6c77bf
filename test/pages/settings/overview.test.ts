import assert from 'node:assert/strict';
import { MemoryLimiter } from '../../../src/admission/charge/memory.js';
import type { CreatedKey } from '../../../src/keys/keys.js';
import { createKey } from '../../../src/keys/keys.js';
import { revokeFoundKeys, revokeKey } from '../../../src/keys/revoke.js';
import { rollKey } from '../../../src/keys/roll-key.js';
import { listPlans } from '../../../src/limits/plans.js';
import type { SiteOptions } from '../../../src/pages/parts/context.js';
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
    const site = { publicUrl: () => service.publicUrl, attribution: undefined } as SiteOptions;
    const now = new Date().toISOString();
    const suspendedAt = isSuspended ? now : null;
    const session = { id: 1, developerId, projectName: 'Test', suspendedAt, signedInAt: now, isRecent: true };
    return loadOverview({ db: service.db, limiter, site }, session);
  }

  /** What needs attention: of a key its name and the hint, of a quota the share that is used. */
  async function attention(isSuspended?: boolean): Promise<unknown[]> {
    return (await load(isSuspended)).attention.map((item) => {
      if (item.kind === 'key')
        return [item.record.label, item.hint.kind, ...('days' in item.hint ? [item.hint.days] : [])];
      if (item.kind === 'ended_key') return [item.record.label, item.hint];
      if (item.kind === 'errors') return [item.kind, item.errors, item.requests];
      if (item.kind === 'quota') return [item.plan.name, item.quota.name, item.share];
      return item.kind === 'refusals' ? [item.lately, item.before] : item.kind;
    });
  }

  /** Where the warnings of the page lead. */
  async function links(): Promise<string[]> {
    const { text } = await (await signIn(service, developerId)).get('/settings');
    assert.ok(!text.includes('<b>duction'), 'a label is text');
    return Array.from(text.matchAll(/<li class="notice tone-warning">.*? href="([^"]*)"/gs), ([, to = '']) => to);
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
    const { keys, today, plans } = await load();
    assert.deepEqual([keys.active, keys.rolled, keys.total], [2, 1, 4]);
    assert.deepEqual(today, { successful: 1_990, clientErrors: 0, rateLimited: 9, serverErrors: 1 });
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
      ['pro<b>duction', 'expires_soon', 3],
      ['lost', 'no_replacement'],
      ['unused', 'unused', 120],
    ]);
    assert.deepEqual(await attention(true), []);
    assert.deepEqual(await links(), [
      `/settings/keys/${soon.prefix}/roll`,
      '/settings/keys/new',
      `/settings/keys/${unused.prefix}/revoke`,
    ]);
    for (let i = 0; i < 5; i += 1) await expireIn(db, (await create(`k${i}`)).prefix, DAY_MS / 2);
    assert.deepEqual(await attention(), [...[0, 1, 2, 3, 4].map((i) => [`k${i}`, 'expires_soon', 0]), 'more_keys']);
    assert.equal((await links()).at(-1), '/settings/keys');
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
    assert.deepEqual(await attention(), [
      ['leaked', 'leaked'],
      ['expired and used', 'still_used'],
      ['expired in use', 'expired_in_use'],
      ['revoked in use', 'still_used'],
    ]);
    assert.equal((await links())[0], `/settings/keys/${leaked.prefix}`);
    assert.deepEqual(await attention(true), []);
  });

  it('errors of more than a tenth of the requests of this hour and the one before need attention', async () => {
    const { prefix } = await create();
    await service.db('api_keys').where({ prefix }).update({ last_used_at: service.db.fn.now() });
    await addUsage(service.db, prefix, 2, { serverErrors: 1_000 });
    await addUsage(service.db, prefix, 1, { successful: 90, clientErrors: 5, rateLimited: 1 });
    await addUsage(service.db, prefix, 0, { serverErrors: 4 });
    assert.deepEqual(await attention(), []);
    await addUsage(service.db, prefix, 0, { serverErrors: 1 });
    assert.deepEqual(await attention(), []);
    await addUsage(service.db, prefix, 0, { clientErrors: 1 });
    assert.deepEqual(await attention(), [['errors', 11, 102]]);
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
    const { key } = await create();
    const [free = assert.fail()] = await listPlans(service.db);
    const use = async (requests: number): Promise<unknown[]> => {
      for (let i = 0; i < requests; i += 1) await limiter.charge({ developerId, plan: free });
      return attention();
    };
    assert.deepEqual(await use(47), []);
    assert.deepEqual(await use(1), [['Free', 'minute', 0.8]]);
    assert.deepEqual(await use(12), [['Free', 'minute', 1]]);
    for (let i = 0; i < 48; i += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    assert.deepEqual(await links(), ['/settings/usage']);
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
    assert.deepEqual(await attention(), [[12, 6]]);
    assert.deepEqual(await links(), ['/settings/usage?range=24h']);
  });
});
