import assert from 'node:assert/strict';
import { setPlan } from '../../src/limits/plans.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { rollKey } from '../../src/keys/roll-key.js';
import type { Quota } from '../../src/limits/quotas.js';
import { claimNotice } from '../../src/notices/outbox.js';
import { QuotaNotices } from '../../src/notices/quota-notices.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { freePort } from '../support/programs/free-port.js';
import { untilWaiting } from '../support/postgres/until-waiting.js';
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
        jobIntervalMs: 20,
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

  /** Lets some rounds of each server pass, and some in which one looks for keys that expire. */
  async function passRounds(): Promise<void> {
    const before = services.map(({ queries }) => queries.length);
    const since = (text: string): number[] =>
      services.map(({ queries }, i) => queries.slice(before[i]).filter((sql) => sql.includes(text)).length);
    await eventually('servers have looked for notices again', () => {
      const [first = 0, second = 0] = since("'key.expiring'");
      return first + second > 2 && since('count(*)').every((rounds) => rounds > 7);
    });
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

  it('a notice whose delivery could not be stored is a failure that is reported, and the notice is sent again', async () => {
    await settle();
    const failures = (): string[] =>
      services.flatMap(({ logged }) => logged.filter((line) => line.includes('job \\"send notices\\"')));
    await world.db.raw(`
      create function refuse_to_write() returns trigger language plpgsql as $$
      begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
      create trigger refuse before update of delivered_at on notices execute function refuse_to_write()`);
    try {
      await world.db.raw("insert into notices (type, subject, data) values ('notice.test', 'stored', '{}')");
      await eventually('the failure is reported', () => failures().length > 0);
    } finally {
      await world.db.raw('drop function refuse_to_write cascade');
    }
    await world.db('notices').where({ subject: 'stored' }).update({ next_attempt_at: world.db.fn.now() });
    await settle();
    await eventually('it works again', () => failures().length > 1);
    const [first, ...again] = receiver.find('notice.test').slice(-2);
    assert.deepEqual([again.length, again[0]?.id], [1, first?.id]);
  });

  it('a server that stops waits for no receiver, and another server sends the notice', async () => {
    await settle();
    const stopped = await world.startService({ settings: { SITE: 'off', ...receiver.settings }, jobIntervalMs: 5 });
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

  it('a finder revokes a key whatever happens to the notice of it', async () => {
    const [{ url } = assert.fail()] = services;
    const revoke = async (): Promise<number> => {
      const { key, prefix } = await world.newKey();
      const headers = { 'content-type': 'application/json' };
      const report = { method: 'POST', headers, body: JSON.stringify({ key }) } as const;
      const { status } = await send(url, '/revoke-leaked-key', report);
      assert.equal((await send(url, '/api/v1/me', { headers: { 'x-api-key': key } })).status, 401);
      const records = await world.db('api_keys').where({ prefix }).whereNotNull('revoked_at');
      assert.equal(records.length, 1);
      return status;
    };
    await world.db.raw('alter table notices rename to away');
    try {
      assert.equal(await revoke(), 200, 'without the table');
    } finally {
      await world.db.raw('alter table away rename to notices');
    }
    await world.db.transaction(async (transaction) => {
      await transaction.raw('lock table notices');
      assert.equal(await revoke(), 200, 'while somebody holds the table');
    });
    await world.db.raw("alter table notices add constraint refuse check (type <> 'key.leaked') not valid");
    try {
      assert.equal(await revoke(), 200, 'while the table refuses the row');
    } finally {
      await world.db.raw('alter table notices drop constraint refuse');
    }
  });

  it('a used-up quota is recorded once for its window and at most once a day over all servers', async () => {
    const plan = { id: 'noted', name: 'Noted', requestsPerMinute: 9, requestsPerDay: 10, commercialUse: false };
    const recorded = async (developerId: number): Promise<unknown[]> =>
      (await world.db('notices').where({ type: 'quota.reached' }).orderBy('occurred_at', 'created_at'))
        .map(({ data }) => data as { developer_id: number; percent: number; used: number })
        .filter((data) => data.developer_id === developerId)
        .map(({ percent, used }) => [percent, used]);
    const quotas = (used: number, resetSeconds: number): readonly Quota[] => [
      { name: 'minute', limit: 9, windowSeconds: 60, remaining: 0, resetSeconds: 60 },
      { name: 'day', limit: 10, windowSeconds: DAY_S, remaining: 10 - used, resetSeconds },
    ];
    const [developerId, other] = [await world.newDeveloper(), await world.newDeveloper()];
    const [one, two] = [new QuotaNotices(), new QuotaNotices()];
    /** Uses requests, at a time in the window. */
    const use = async (server: QuotaNotices, used: number, elapsed: number, by = developerId): Promise<unknown> => {
      server.note({ developerId: by, plan }, quotas(used, DAY_S - elapsed));
      while (await server.save(world.db));
      return recorded(by);
    };
    const age = (hours: number): Promise<unknown> =>
      world.db.raw(
        "update notices set occurred_at = occurred_at - make_interval(hours => ?) where type = 'quota.reached'",
        [hours],
      );
    assert.deepEqual(await use(one, 7, 0), []);
    assert.deepEqual(await use(one, 8, 0), [[80, 8]]);
    assert.deepEqual(await use(one, 9, 10), [[80, 8]]);
    assert.deepEqual(await use(two, 9, 20), [[80, 8]]);
    assert.deepEqual(await use(two, 8, 20, other), [[80, 8]]);
    // The day of UTC may have changed, and the window has not.
    await age(23);
    assert.deepEqual(await use(new QuotaNotices(), 9, 23 * 3_600), [[80, 8]]);
    // The next window.
    await age(2);
    assert.deepEqual(await use(new QuotaNotices(), 8, 60), [
      [80, 8],
      [80, 8],
    ]);
    assert.deepEqual(await use(one, 10, 60), [
      [80, 8],
      [80, 8],
      [100, 10],
    ]);
    // Several servers at the same time.
    const servers = Array.from({ length: 4 }, () => new QuotaNotices());
    await world.db('notices').where({ type: 'quota.reached' }).delete();
    const uses = await world.db.transaction(async (transaction) => {
      const first = new QuotaNotices();
      first.note({ developerId, plan }, quotas(8, DAY_S));
      await first.save(transaction);
      const others = servers.map((server) => use(server, 8, 0));
      await untilWaiting('the others wait', world.db, servers.length);
      return others;
    });
    await Promise.all(uses);
    assert.deepEqual(await recorded(developerId), [[80, 8]]);
  });

  it('quotas that could not be recorded are recorded later, with those noted meanwhile', async () => {
    const plan = { id: 'later', name: 'Later', requestsPerMinute: 9, requestsPerDay: 10, commercialUse: false };
    const quotas = new QuotaNotices(2);
    const note = (developerId: number): void =>
      quotas.note({ developerId, plan }, [
        { name: 'day', limit: 10, windowSeconds: DAY_S, remaining: 0, resetSeconds: DAY_S },
      ]);
    note(900_001);
    await world.db.raw('alter table notices rename to away');
    try {
      const saving = quotas.save(world.db);
      note(900_002);
      await assert.rejects(saving, { code: '42P01' });
    } finally {
      await world.db.raw('alter table away rename to notices');
    }
    note(900_001);
    // There is no room for a third one, which a later request notes again.
    note(900_003);
    assert.equal(quotas.lost, 1);
    while (await quotas.save(world.db));
    const subjects = await world.db('notices').where('subject', 'like', 'quota.reached 90000%').pluck('subject');
    assert.deepEqual(subjects.sort(), ['quota.reached 900001 later 100', 'quota.reached 900002 later 100']);
    note(900_003);
    await quotas.save(world.db);
    assert.ok(await world.db('notices').where({ subject: 'quota.reached 900003 later 100' }).first());
  });
});
