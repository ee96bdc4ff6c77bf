import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { pino } from 'pino';
import type { QuotaReader } from '../../src/admission/charge/limiter.js';
import { readConfig } from '../../src/config/config.js';
import { setPlan } from '../../src/limits/plans.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { claimNotice } from '../../src/notices/outbox.js';
import { CloseStack } from '../../src/platform/process/close-stack.js';
import { startNotices } from '../../src/service/parts/notices.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { freePort } from '../support/programs/free-port.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';
import { startReceiver, TOKEN, type Receiver } from './receiver.js';

const DAY_S = 86_400;

describe('notices to the operator', () => {
  const world = testWorld({ redis: true });
  let receiver: Receiver;
  let services: readonly TestService[];
  let metricsUrl: string;

  before(async () => {
    receiver = await startReceiver(world);
    const metricsAddress = `127.0.0.1:${await freePort()}`;
    metricsUrl = `http://${metricsAddress}/metrics`;
    const start = (settings: Readonly<Record<string, string>>): Promise<TestService> =>
      world.startService({
        settings: { SITE: 'off', ...receiver.settings, ...settings },
        noticeIntervalMs: 20,
        flushIntervalMs: 50,
      });
    services = [await start({ METRICS_ADDRESS: metricsAddress }), await start({})];
  });

  afterEach(() => {
    receiver.respond = (response) => response.writeHead(204).end();
  });

  /** Waits until everything that was recorded so far is delivered. */
  async function settle(): Promise<void> {
    await eventually('all notices are delivered', async () => {
      return (await world.db('notices').whereNull('delivered_at').whereNull('given_up_at')).length === 0;
    });
  }

  /** Lets some rounds of each server pass. */
  async function passRounds(): Promise<void> {
    const before = services.map(({ queries }) => queries.length);
    await eventually('each server has looked for notices again', () =>
      services.every(({ queries }, i) => queries.slice(before[i]).filter((sql) => sql.includes('count(*)')).length > 7),
    );
  }

  /** Creates a key. @param created - how many days ago @param expires - in how many days */
  async function newKey(created: number, expires: number): Promise<{ prefix: string; developerId: number }> {
    const key = await world.newKey();
    await world.db.raw(
      `update api_keys set created_at = now() - ? * interval '1 day', expires_at = now() + ? * interval '1 day'
        where prefix = ?`,
      [created, expires, key.prefix],
    );
    return key;
  }

  it('a key that a finder revokes is a notice with its prefix and no secret, signed', async () => {
    const { key, prefix, developerId } = await world.newKey();
    const [{ url } = assert.fail()] = services;
    const headers = { 'content-type': 'application/json' };
    const { status } = await send(url, '/revoke-leaked-key', {
      method: 'POST',
      headers,
      body: JSON.stringify({ key }),
    });
    assert.equal(status, 200);
    const { id, text, timestamp, data, headers: received } = await receiver.get('key.leaked', { key_prefix: prefix });
    assert.deepEqual(data, { key_prefix: prefix, developer_id: developerId });
    assert.match(id, /^msg_[0-9a-f-]{36}$/);
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
    assert.equal(received['content-type'], 'application/json');
    assert.ok(!text.includes(key.slice(prefix.length + 1)));
    const other = await world.newKey();
    await revokeKey(world.db, other.prefix);
    await passRounds();
    assert.deepEqual(receiver.find('key.leaked', { key_prefix: other.prefix }), []);
  });

  it('a key that expires has a notice 14 and 3 days before, and again for another expiry', async () => {
    const { prefix, developerId } = await newKey(90, 13.9);
    const [expiresAt] = await world.db('api_keys').where({ prefix }).pluck<string[]>('expires_at');
    const { data } = await receiver.get('key.expiring', { key_prefix: prefix });
    assert.deepEqual(data, { key_prefix: prefix, developer_id: developerId, expires_at: expiresAt });
    for (const [count, expiry] of [
      [2, '5 days'],
      [3, '71 hours'],
    ] as const) {
      const change = world.db('api_keys').where({ prefix });
      await change.update({ expires_at: world.db.raw('now() + cast(? as interval)', [expiry]) });
      await eventually(`notice ${count}`, () => receiver.find('key.expiring', { key_prefix: prefix }).length === count);
    }
    await passRounds();
    assert.equal(receiver.find('key.expiring', { key_prefix: prefix }).length, 3);
  });

  it('a key has no notice that expires later, lives too short a time, was rolled, was revoked or has expired', async () => {
    const rolled = await world.newKey();
    await rollKey(world.db, rolled.prefix, 5 * DAY_S);
    const revoked = await createKey(world.db, { developerId: rolled.developerId });
    await revokeKey(world.db, revoked.prefix);
    await world.db.raw("update api_keys set created_at = now() - interval '90 days' where prefix = any(?)", [
      [rolled.prefix, revoked.prefix],
    ]);
    await world.db.raw("update api_keys set expires_at = now() + interval '5 days' where prefix = ?", [revoked.prefix]);
    const keys = [rolled, revoked, await newKey(90, 14.1), await newKey(1, 12), await newKey(90, -1)];
    await passRounds();
    for (const { prefix } of keys) assert.deepEqual(receiver.find('key.expiring', { key_prefix: prefix }), [], prefix);
    const short = await newKey(10, 2.9);
    await receiver.get('key.expiring', { key_prefix: short.prefix });
  });

  it('a developer has one notice at 80 % and one at 100 % of a day, for all keys of a plan together', async () => {
    await setPlan(world.db, 'small', {
      name: 'Small',
      requestsPerMinute: 1_000,
      requestsPerDay: 10,
      commercialUse: false,
    });
    const { key, developerId } = await world.newKey({ planId: 'small' });
    const { key: second } = await world.newKey({ planId: 'small', developerId });
    const begin = Date.now();
    const use = async (n: number, by: string): Promise<void> => {
      for (let i = 0; i < n; i += 1) {
        await send(services[i % 2]?.url ?? '', '/api/v1/me', { headers: { 'x-api-key': by } });
      }
    };
    await use(7, key);
    await passRounds();
    assert.deepEqual(receiver.find('quota.reached', { developer_id: developerId }), []);
    await use(1, second);
    const { data } = await receiver.get('quota.reached', { developer_id: developerId });
    const { resets_at: resetsAt, ...rest } = data;
    assert.deepEqual(rest, { developer_id: developerId, plan_id: 'small', percent: 80, used: 8, limit: 10 });
    const resets = Date.parse(String(resetsAt)) - DAY_S * 1_000;
    // It is rounded up to a second.
    assert.ok(resets >= begin && resets <= Date.now() + 1_000, String(resetsAt));
    await use(5, key);
    await receiver.get('quota.reached', { developer_id: developerId, percent: 100, used: 10 });
    await passRounds();
    assert.equal(receiver.find('quota.reached', { developer_id: developerId }).length, 2);
    // Another window of the same quota, a day later.
    await world.db.raw("update notices set occurred_at = occurred_at - interval '1 day' where type = 'quota.reached'");
    await eventually(
      'a notice of the next window',
      () => receiver.find('quota.reached', { developer_id: developerId, percent: 100 }).length === 2,
    );
  });

  it('a notice that its receiver refuses is sent again later, with the same id, and the log has no address', async () => {
    await settle();
    receiver.respond = (response) => response.writeHead(500).end('an error');
    let before = Date.now();
    const { prefix } = await newKey(90, 2);
    const { id } = await receiver.get('key.expiring', { key_prefix: prefix });
    /** Checks the shortest time between an attempt that began later than `before` and the next one. */
    const assertPause = async (seconds: number): Promise<void> => {
      const due = await world
        .db('notices')
        .where({ id: id.replace('msg_', '') })
        .pluck<string[]>('next_attempt_at');
      assert.ok(Date.parse(due[0] ?? '') >= before + seconds * 1_000, due[0]);
    };
    await assertPause(30);
    await eventually('the metric counts it', async () => {
      return ((await scrape(metricsUrl)).series.get('catalog_notices_pending') ?? 0) > 0;
    });
    await passRounds();
    assert.equal(receiver.find('key.expiring', { key_prefix: prefix }).length, 1);
    const makeDue = () => world.db('notices').whereNull('delivered_at').update({ next_attempt_at: world.db.fn.now() });
    before = Date.now();
    await makeDue();
    await eventually('a second attempt', () => receiver.find('key.expiring', { key_prefix: prefix }).length === 2);
    await assertPause(60);
    receiver.respond = (response) => response.writeHead(200).end('{}');
    await makeDue();
    await settle();
    const attempts = receiver.find('key.expiring', { key_prefix: prefix });
    assert.deepEqual(new Set(attempts.map((attempt) => attempt.id)), new Set([id]));
    assert.equal(new Set(attempts.map(({ text }) => text)).size, 1);
    const log = services.flatMap(({ logged }) => logged);
    const attemptsLogged = log.filter((line) => line.includes(`"notice":"${id}"`));
    assert.equal(attemptsLogged.filter((line) => line.includes('status 500')).length, 2);
    const { NOTIFY_SECRET: secret } = receiver.settings;
    for (const text of [TOKEN, secret, secret.replace('whsec_', '')]) assert.ok(!log.join('\n').includes(text), text);
  });

  it('a notice is given up after three days, which the log and a metric report', async () => {
    await settle();
    await world.db.raw(
      `insert into notices (type, subject, data, created_at, attempts)
       values ('notice.test', 'old', '{}', now() - interval '73 hours', 77)`,
    );
    const find = (): string | undefined =>
      services.flatMap(({ logged }) => logged).find((line) => line.includes('a notice was given up'));
    const { type, attempts } = JSON.parse(await eventually('the log has it', find)) as Record<string, unknown>;
    assert.deepEqual([type, attempts], ['notice.test', 77]);
    await passRounds();
    assert.deepEqual(receiver.find('notice.test'), []);
    const counted = (await scrape(metricsUrl)).series.get('catalog_notices_given_up_total') ?? 0;
    const own = services[0]?.logged.filter((line) => line.includes('a notice was given up')).length;
    assert.equal(counted, own);
  });

  it('a notice that is to be given up is not sent, whatever has not given it up yet', async () => {
    await settle();
    // Uncommitted, so that no server sees it.
    await world.db.transaction(async (transaction) => {
      const insert = (age: string) =>
        transaction.raw(
          `insert into notices (type, subject, data, created_at)
           values ('notice.test', ?, '{}', now() - cast(? as interval))`,
          [age, age],
        );
      await insert('73 hours');
      assert.equal(await claimNotice(transaction), undefined);
      await insert('71 hours');
      assert.equal((await claimNotice(transaction))?.type, 'notice.test');
      await transaction.rollback();
    });
  });

  it('each notice is sent by one of several servers, once', async () => {
    await settle();
    await world.db.raw(
      "insert into notices (type, subject, data) select 'notice.test', n, '{}' from generate_series(1, 60) n",
    );
    await settle();
    const ids = receiver.find('notice.test').map(({ id }) => id);
    assert.deepEqual([ids.length, new Set(ids).size], [60, 60]);
  });

  it('a server that stops waits for no receiver, and another server sends the notice', async () => {
    await settle();
    const stopped = await world.startService({ settings: { SITE: 'off', ...receiver.settings }, noticeIntervalMs: 5 });
    let hanging = 0;
    receiver.respond = () => (hanging += 1);
    const { prefix } = await newKey(90, 1);
    await eventually('an attempt hangs', () => hanging > 0);
    await Promise.all([stopped.stop(), services[1]?.stop()]);
    // Waiting would have ended with the bound on an attempt.
    assert.ok(![...stopped.logged, ...(services[1]?.logged ?? [])].some((line) => line.includes('no response within')));
    receiver.respond = (response) => response.writeHead(204).end();
    assert.ok(receiver.find('key.expiring', { key_prefix: prefix }).length > 0);
  });

  it('the quotas of developers whose requests were served or failed are read one at a time, so that others are served', async () => {
    await world
      .db('plans')
      .insert({ id: 'tiny', name: 'Tiny', requests_per_minute: 1, requests_per_day: 1, commercial_use: false });
    const developers: number[] = [];
    for (let i = 0; i < 5; i += 1) developers.push((await world.newKey({ planId: 'tiny' })).developerId);
    await world.db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
       select id, date_trunc('hour', now(), 'UTC'), id % 2, 0, 1 - id % 2 from api_keys where plan_id = 'tiny'`,
    );
    let reading = 0;
    let most = 0;
    const read = new Set<number>();
    const quotas: QuotaReader = {
      async read({ developerId }) {
        most = Math.max(most, (reading += 1));
        await setImmediate();
        reading -= 1;
        read.add(developerId);
        return { quotas: [], countedIn: 'process' };
      },
    };
    const opened = new CloseStack((error) => assert.fail(String(error)));
    world.defer(() => opened.close());
    const config = readConfig({ NOTIFY_URL: 'http://127.0.0.1:1/', NOTIFY_SECRET: receiver.settings.NOTIFY_SECRET });
    const options = { config, log: pino({ level: 'silent' }), overrides: { noticeIntervalMs: 5 } };
    startNotices(options, world.db, quotas, opened);
    await eventually('all quotas are read', () => developers.every((id) => read.has(id)));
    assert.equal(most, 1);
  });
});
