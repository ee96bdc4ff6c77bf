import assert from 'node:assert/strict';
import { setPlan } from '../../src/limits/plans.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import { readGuide, tableOf } from '../support/guides.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { freePort } from '../support/programs/free-port.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { testWorld } from '../support/world.js';
import { startReceiver, TOKEN, type Receiver } from './receiver.js';

const DAY_S = 86_400;

describe('notices to the operator', () => {
  const world = testWorld({ ownServer: true, redis: true });
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
    const [first] = [await receiver.get('key.expiring', { key_prefix: prefix })];
    const { expires_at: expiresAt, ...data } = first.data;
    assert.deepEqual(data, { key_prefix: prefix, developer_id: developerId });
    assert.ok(
      Math.abs(Date.parse(String(expiresAt)) / 1000 - Date.now() / 1000 - 13.9 * DAY_S) < 60,
      String(expiresAt),
    );
    await world
      .db('api_keys')
      .where({ prefix })
      .update({ expires_at: world.db.raw("now() + interval '5 days'") });
    await eventually('a second notice', () => receiver.find('key.expiring', { key_prefix: prefix }).length === 2);
    await world
      .db('api_keys')
      .where({ prefix })
      .update({ expires_at: world.db.raw("now() + interval '71 hours'") });
    await eventually('a third notice', () => receiver.find('key.expiring', { key_prefix: prefix }).length === 3);
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
    const resetsIn = (Date.parse(String(resetsAt)) - Date.now()) / 1000;
    assert.ok(resetsIn > DAY_S - 60 && resetsIn <= DAY_S, String(resetsAt));
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

  it('a component that several servers lose has one notice, and another one when it is back', async () => {
    await world.redis.kill();
    await receiver.get('component.lost', { component: 'redis' });
    await world.redis.restart();
    await receiver.get('component.back', { component: 'redis' });
    await eventually('each server has Redis back', () =>
      services.every(({ changes }) => changes.includes('redis back')),
    );
    await passRounds();
    // On a busy machine, a server may lose Redis once more.
    const losses = services.map(({ changes }) => changes.filter((change) => change === 'redis lost').length);
    for (const type of ['component.lost', 'component.back']) {
      assert.ok(receiver.find(type, { component: 'redis' }).length <= Math.max(...losses), type);
    }
  });

  it('a database that was lost has its notices when it is back, with the time of its loss', async () => {
    await settle();
    await world.postgres.stop('immediate');
    await eventually('each server has noted the loss', () =>
      services.every(({ changes }) => changes.includes('database lost')),
    );
    const restarting = new Date().toISOString();
    await world.postgres.restart();
    const { timestamp } = await receiver.get('component.lost', { component: 'database' });
    assert.ok(timestamp <= restarting, timestamp);
    await receiver.get('component.back', { component: 'database' });
  });

  it('a notice that its receiver refuses is sent again later, with the same id, and the log has no address', async () => {
    await settle();
    receiver.respond = (response) => response.writeHead(500).end('an error');
    const { prefix } = await newKey(90, 2);
    const { id } = await receiver.get('key.expiring', { key_prefix: prefix });
    const dueIn = async (): Promise<number> => {
      const [row] = await world
        .db('notices')
        .where({ id: id.replace('msg_', '') })
        .select<{ seconds: number }[]>(world.db.raw('extract(epoch from next_attempt_at - now())::float as seconds'));
      return row?.seconds ?? assert.fail('the notice is not stored');
    };
    assert.ok((await dueIn()) > 25);
    await eventually('the metric counts it', async () => {
      return ((await scrape(metricsUrl)).series.get('catalog_notices_pending') ?? 0) > 0;
    });
    await passRounds();
    assert.equal(receiver.find('key.expiring', { key_prefix: prefix }).length, 1);
    const makeDue = () => world.db('notices').whereNull('delivered_at').update({ next_attempt_at: world.db.fn.now() });
    await makeDue();
    await eventually('a second attempt', () => receiver.find('key.expiring', { key_prefix: prefix }).length === 2);
    assert.ok((await dueIn()) > 55);
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

  it('each notice is sent by one of several servers, once', async () => {
    await settle();
    await world.db.raw(
      "insert into notices (type, subject, data) select 'notice.test', n, '{}' from generate_series(1, 60) n",
    );
    await settle();
    const ids = receiver.find('notice.test').map(({ id }) => id);
    assert.deepEqual([ids.length, new Set(ids).size], [60, 60]);
  });

  it('the guide lists exactly the types of notices that are sent, with their data', async () => {
    const rows = tableOf(await readGuide('operators/notices'), 'The notices');
    const documented = rows.map(([type = '', data = '']) => [type, data === 'none' ? [] : data.split(', ').sort()]);
    const sent = new Map(receiver.received.map(({ type, data }) => [type, Object.keys(data).sort()]));
    assert.deepEqual(Object.fromEntries(sent), Object.fromEntries(documented));
  });

  it('a server that stops waits for no receiver, and another server sends the notice', async () => {
    await settle();
    const stopped = await world.startService({ settings: { SITE: 'off', ...receiver.settings }, noticeIntervalMs: 5 });
    let hanging = 0;
    receiver.respond = () => (hanging += 1);
    const { prefix } = await newKey(90, 1);
    await eventually('an attempt hangs', () => hanging > 0);
    const before = Date.now();
    await Promise.all([stopped.stop(), services[1]?.stop()]);
    assert.ok(Date.now() - before < 3_000);
    receiver.respond = (response) => response.writeHead(204).end();
    assert.ok(receiver.find('key.expiring', { key_prefix: prefix }).length > 0);
  });
});
