import assert from 'node:assert/strict';
import type { CreatedKey } from '../../../src/keys/keys.js';
import { createKey } from '../../../src/keys/keys.js';
import { revokeKey } from '../../../src/keys/revoke.js';
import { rollKey } from '../../../src/keys/roll-key.js';
import { expireIn } from '../../support/keys/expiry.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { addUsage, rollUp } from '../../support/keys/usage.js';
import { signIn } from '../../support/http/visitor.js';
import { startService, type TestService } from '../../support/service.js';

const DAY_MS = 86_400_000;

describe('the overview of the settings', () => {
  let service: TestService;
  let developerId: number;

  before(async () => (service = await startService()));
  after(() => service.stop());
  beforeEach(async () => (developerId = await newDeveloper(service.db)));

  /** The text of the overview, without tags and with single spaces. */
  async function overview(): Promise<{ html: string; text: string; warnings: string[] }> {
    const { status, text: html } = await (await signIn(service, developerId)).get('/settings');
    assert.equal(status, 200);
    const textOf = (part: string): string => part.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    const warnings = Array.from(html.matchAll(/<li class="notice tone-warning">(.*?)<\/li>/gs), ([, item = '']) =>
      `${textOf(item).trim()} → ${/href="([^"]*)"/.exec(item)?.[1] ?? ''}`.replaceAll(' .', '.'),
    );
    return { html, text: textOf(html), warnings };
  }

  function create(label?: string): Promise<CreatedKey> {
    return createKey(service.db, { developerId, planId: 'free', label });
  }

  it('the overview counts active keys, the requests of this day and what is left of the limits', async () => {
    const [{ key, prefix }, { prefix: rolled }, { prefix: revoked }] = [await create(), await create(), await create()];
    await rollKey(service.db, rolled, 3_600);
    await revokeKey(service.db, revoked);
    const hour = new Date().getUTCHours();
    await addUsage(service.db, prefix, 0, { served: 1_000, refused: 9 });
    await rollUp(service.db);
    // Not rolled up yet.
    await addUsage(service.db, prefix, 0, { served: 990 });
    await addUsage(service.db, revoked, 0, { failed: 1 });
    // Before this day began.
    await addUsage(service.db, prefix, hour + 1, { served: 5_000 });
    assert.equal((await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status, 200);
    const { text } = await overview();
    assert.match(text, /Active keys 2 of 20 Requests since 00:00 UTC 2,000 Success rate 99\.5% Rate limited 9 /);
    assert.match(text, /Free plan Per minute on the Free plan 1 used 1 of 60 requests; resets in \d+ s/);
  });

  it('the overview warns of keys that expire soon or are unused, and leads to rolling and revoking them', async () => {
    const [soon, unused, used] = [await create('pro<b>duction'), await create(), await create('fine')];
    await expireIn(service.db, soon.prefix, 3.5 * DAY_MS);
    const { db } = service;
    await db('api_keys').where({ prefix: soon.prefix }).update({ last_used_at: db.fn.now() });
    await db('api_keys').where({ prefix: used.prefix }).update({ last_used_at: db.fn.now() });
    const longAgo = db.raw("now() - interval '120 days'");
    await db('api_keys').where({ prefix: unused.prefix }).update({ created_at: longAgo, last_used_at: longAgo });
    assert.deepEqual((await overview()).warnings, [
      `pro&lt;b>duction expires in 3 days. Roll this key : pro&lt;b>duction → /settings/keys/${soon.prefix}/roll`,
      `${unused.prefix} has not been used for 120 days. Revoke this key : ${unused.prefix} → /settings/keys/${unused.prefix}/revoke`,
    ]);
    for (let i = 0; i < 5; i += 1) await expireIn(db, (await create(`k${i}`)).prefix, DAY_MS / 2);
    const { warnings } = await overview();
    assert.deepEqual(
      [warnings.length, warnings[0]?.includes('k0 expires within a day.'), warnings.at(-1)],
      [
        6,
        true,
        'More keys expire within 14 days, have not been used for 90 days, or end without a replacement. See all keys → /settings/keys',
      ],
    );
  });

  it('the overview and the page of a rolled key warn when the key that replaced it is no longer active', async () => {
    const { db } = service;
    const [{ prefix: lost }, { prefix: kept }, { prefix: chained }] = [
      await create('service-3'),
      await create('kept'),
      await create('chained'),
    ];
    const { successor } = await rollKey(db, lost, 3_600);
    await rollKey(db, kept, 3_600);
    // Its successor was replaced in turn, by a key that is active.
    await rollKey(db, (await rollKey(db, chained, 3_600)).successor.prefix, 0);
    assert.deepEqual((await overview()).warnings, []);
    await revokeKey(db, successor.prefix);
    const [warning, ...others] = (await overview()).warnings;
    assert.deepEqual(others, []);
    assert.match(
      warning ?? '',
      /^service-3 ends in 1 hour , [^,]* UTC , and its replacement is no longer active\. Create a key → \/settings\/keys\/new$/,
    );
    const visitor = await signIn(service, developerId);
    const warns = async (prefix: string): Promise<boolean> =>
      /class="notice tone-warning">This key ends .* has no replacement/.test(
        (await visitor.get(`/settings/keys/${prefix}`)).text,
      );
    assert.deepEqual([await warns(lost), await warns(kept), await warns(chained)], [true, false, false]);
    const { text } = await visitor.get('/settings/keys');
    assert.equal(text.split('>No replacement<').length, 2);
  });

  it('the overview and the guide name commercial use, and the credit that a project must show', async () => {
    const owed = async (from: TestService): Promise<string> => {
      const { text } = await (await signIn(from, developerId)).get('/settings');
      return text.replace(/<[^>]+>/g, '').replace(/\s+/g, ' ');
    };
    const guide = async (from: TestService): Promise<string> =>
      (await from.get('/docs/guides/calling-the-api.md')).text.replace(/\s+/g, ' ');
    assert.match(await owed(service), /Required wherever you show data from the catalogue\. Ask the operator of this/);
    assert.match(await guide(service), /must show the credit that the operator of this service asks for\./);
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

  it('the overview warns from 80 % of a limit on, and at the limit', async () => {
    const { key } = await create();
    const use = async (requests: number): Promise<string> => {
      for (let i = 0; i < requests; i += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
      return (await overview()).warnings.join();
    };
    assert.equal(await use(47), '');
    assert.match(
      await use(1),
      /^You have used 80% of the 60 requests per minute of the Free plan\. The limit resets in \d+ s\. /,
    );
    assert.match(
      await use(12),
      /^You have used all 60 requests per minute of the Free plan\. Further requests get 429 until the limit resets in \d+ s\. See your limits → \/settings\/usage$/,
    );
  });

  it('the overview warns when limits refuse many more requests than the day before', async () => {
    const { prefix } = await create();
    // On both sides of the ends of the two days.
    await addUsage(service.db, prefix, 48, { refused: 100 });
    await addUsage(service.db, prefix, 47, { refused: 2 });
    await addUsage(service.db, prefix, 24, { refused: 4 });
    await addUsage(service.db, prefix, 23, { refused: 11 });
    await rollUp(service.db);
    assert.deepEqual((await overview()).warnings, []);
    await addUsage(service.db, prefix, 0, { refused: 1 });
    assert.deepEqual((await overview()).warnings, [
      '12 requests hit your rate limit in the last 24 hours (6 the day before). See when → /settings/usage?range=24h',
    ]);
  });

  it('the events of one key are listed for its prefix, and all events for the prefix of another developer', async () => {
    const [own, other] = [await create('own'), await create('other')];
    const visitor = await signIn(service, developerId);
    const { text } = await visitor.get(`/settings/events?key=${own.prefix}`);
    assert.equal(text.match(/<th scope="row">/g)?.length, 1);
    assert.ok(
      text.includes(`<option value="${own.prefix}" selected>`) && text.includes(`<option value="${other.prefix}">`),
    );
    const all = await visitor.get(`/settings/events?key=${service.key.slice(0, 12)}`);
    assert.equal(all.text.match(/<th scope="row">/g)?.length, 4);
    assert.ok(!all.text.includes(service.key.slice(0, 12)));
  });
});
