import assert from 'node:assert/strict';
import type { KeyRecord } from '../../../src/keys/key-record.js';
import { createKey } from '../../../src/keys/keys.js';
import { revokeKey } from '../../../src/keys/revoke.js';
import { expireIn } from '../../support/keys/expiry.js';
import { newDeveloper, signIn, type Visitor } from '../../support/http/visitor.js';
import { send } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { testWorld } from '../../support/world.js';

const ATTACK = '<script>alert("x")</script>';

describe('the usage page', () => {
  let service: TestService;
  let developerId: number;
  let visitor: Visitor;
  let key: KeyRecord & { readonly key: string };
  let odd: KeyRecord & { readonly key: string };

  before(async () => {
    service = await startService();
    developerId = await newDeveloper(service);
    visitor = await signIn(service, developerId);
    key = await createKey(service.db, { developerId, planId: 'free', label: 'production' });
    odd = await createKey(service.db, { developerId, planId: 'pro', label: `=1+1,"${ATTACK}` });
    await addUsage(key.prefix, 0, { served: 1_234, refused: 20, failed: 3 });
    await addUsage(key.prefix, 3, { served: 10, refused: 0, failed: 0 });
    await addUsage(odd.prefix, 0, { served: 5, refused: 0, failed: 0 });
  });

  after(() => service.stop());

  /** Adds counts of a day. @param days - how many days ago */
  async function addUsage(prefix: string, days: number, counts: Record<string, number>): Promise<void> {
    await service.db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
       select id, date_trunc('day', now(), 'UTC') - make_interval(days => ?), ?, ?, ? from api_keys where prefix = ?`,
      [days, counts.served, counts.refused, counts.failed, prefix].map((value) => value ?? 0),
    );
  }

  async function page(path = '/settings/usage'): Promise<string> {
    const { status, text } = await visitor.get(path);
    assert.equal(status, 200);
    return text;
  }

  /** The cells of the rows of a table. */
  function table(text: string, caption: string): string[][] {
    const [, body = ''] = new RegExp(`<caption[^>]*>${caption}</caption>.*?<tbody>(.*?)</tbody>`, 's').exec(text) ?? [];
    return [...body.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = '']) => cell.replace(/<[^>]+>/g, '')),
    );
  }

  it('the page shows what each plan has left, in this process alone without Redis, and charges nothing', async () => {
    for (let i = 0; i < 3; i += 1) await service.get('/api/v1/me', { headers: { 'x-api-key': key.key } });
    for (let i = 0; i < 4; i += 1) {
      const text = await page();
      assert.match(text, /<h3>Free<\/h3>.*57 of 60 left.*resets in \d+ s.*9,997 of 10,000 left.*resets in 24 h 0 min/s);
      assert.match(text, /<meter[^>]* max="60" low="48" high="57" optimum="0" value="3"/);
      assert.match(text, /<h3>Pro<\/h3>.*600 of 600 left</s);
      assert.ok(!text.includes('<h3>Scale</h3>'));
      assert.ok(text.includes('These numbers come from a single server process'));
    }
  });

  it('a table shows each of the last thirty days, and the chart the same numbers', async () => {
    const text = await page();
    const days = table(text, 'Requests by day');
    assert.equal(days.length, 30);
    const today = new Date().toISOString().slice(0, 10);
    assert.deepEqual(days[0], [today, '1,239', '20', '3', '1,262']);
    assert.deepEqual(days[3]?.slice(1), ['10', '0', '0', '10']);
    assert.deepEqual(days[29]?.slice(1), ['0', '0', '0', '0']);
    assert.ok(text.includes(`<title>${today}: 1,239 served, 20 refused, 3 failed</title>`));
    assert.ok(text.includes('1,249 served, 20 refused, 3 failed. The table below lists each day.'));
    assert.deepEqual(
      table(text, 'Requests by key').map((row) => [row[0], ...row.slice(2)]),
      [
        [key.prefix, '1,244', '20', '3', '1,267'],
        [odd.prefix, '5', '0', '0', '5'],
      ],
    );
  });

  it('the usage of one key is shown for its prefix, and that of all keys for an unknown one', async () => {
    const text = await page(`/settings/usage?key=${odd.prefix}`);
    assert.deepEqual(table(text, 'Requests by day')[0]?.slice(1), ['5', '0', '0', '5']);
    assert.match(text, new RegExp(`Showing only <code>${odd.prefix}</code>`));
    assert.ok(text.includes(`href="/settings/usage.csv?key=${odd.prefix}"`));
    assert.ok((await page()).includes(`<a href="/settings/usage?key=${odd.prefix}">`));
    for (const unknown of [ATTACK, 'svc_00000000', service.key.slice(0, 12)]) {
      const all = await page(`/settings/usage?key=${encodeURIComponent(unknown)}`);
      assert.equal(table(all, 'Requests by day')[0]?.[1], '1,239');
      assert.ok(!all.includes(unknown));
    }
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
        'day,key_prefix,label,served,refused,failed',
        `${day(3)},${key.prefix},"production",10,0,0`,
        `${day(0)},${key.prefix},"production",1234,20,3`,
        `${day(0)},${odd.prefix},"'=1+1,""${ATTACK.replaceAll('"', '""')}",5,0,0`,
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
      assert.ok((await visitor.get('/settings/usage.csv')).text.includes(`${odd.prefix},${cell},5,0,0`), cell);
    }
    const one = await visitor.get(`/settings/usage.csv?key=${odd.prefix}`);
    assert.equal(one.text.trimEnd().split('\r\n').length, 2);
  });

  it('nothing of another developer is shown for any key', async () => {
    const stranger = await signIn(service, await newDeveloper(service, 'Stranger'));
    for (const path of ['/settings/usage', '/settings/usage.csv']) {
      const { text } = await stranger.get(`${path}?key=${key.prefix}`);
      assert.ok(!text.includes(key.prefix) && !text.includes('1234') && !text.includes('1,234'), path);
    }
    assert.ok((await stranger.get('/settings/usage')).text.includes('No requests in the last 30 days'));
  });

  for (const [state, end] of [
    ['revoked', (prefix: string) => revokeKey(service.db, prefix)],
    ['expired', (prefix: string) => expireIn(service.db, prefix, -1_000)],
  ] as const) {
    it(`keys that are ${state} keep their usage, and their plan shows no quota`, async () => {
      const id = await newDeveloper(service);
      const { prefix } = await createKey(service.db, { developerId: id, planId: 'scale' });
      await addUsage(prefix, 1, { served: 7, refused: 0, failed: 0 });
      await service
        .db('api_keys')
        .where({ prefix })
        .update({ created_at: service.db.raw("now() - interval '1 hour'") });
      await end(prefix);
      const { text } = await (await signIn(service, id)).get('/settings/usage');
      assert.ok(text.includes(prefix) && !text.includes('<h3>Scale</h3>') && text.includes('<h3>Free</h3>'));
    });
  }
});

describe('the usage page of several servers', () => {
  const world = testWorld({ redis: true, service: true });

  it('each server shows what all servers have counted', async () => {
    const services = [world.service, await world.startService()];
    const { key, developerId } = await world.newKey({ planId: 'free' });
    for (const { url } of [...services, world.service]) {
      assert.equal((await send(url, '/api/v1/me', { headers: { 'x-api-key': key } })).status, 200);
    }
    for (const service of services) {
      const { text } = await (await signIn(service, developerId)).get('/settings/usage');
      assert.ok(text.includes('57 of 60 left'));
      assert.ok(!text.includes('single server process'));
    }
  });
});
