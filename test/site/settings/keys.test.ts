import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { EPOCH_KEY } from '../../../src/admission/epoch.js';
import { setDeveloperPlan, suspendDeveloper } from '../../../src/developers/developers.js';
import { listEvents } from '../../../src/events/events.js';
import { createKey, listKeys } from '../../../src/keys/keys.js';
import { revokeKey } from '../../../src/keys/revoke.js';
import type { CreatedKey } from '../../../src/keys/keys.js';
import { MAX_ACTIVE_KEYS, MAX_KEYS_PER_DAY } from '../../../src/keys/key-change.js';
import { newDeveloper, signIn, Visitor } from '../../support/http/visitor.js';
import { eventually } from '../../support/eventually.js';
import { holdCommits } from '../../support/postgres/held-commits.js';
import { expireIn } from '../../support/keys/expiry.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;
const ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

describe('the keys page', () => {
  let service: TestService;
  let developerId: number;
  let visitor: Visitor;

  before(async () => (service = await startService()));
  after(() => service.stop());

  beforeEach(async () => {
    developerId = await newDeveloper(service);
    visitor = await signIn(service, developerId);
  });

  /** The secret of the form of a page. */
  async function formOf(path: string): Promise<string> {
    const { text, status } = await visitor.get(path);
    assert.equal(status, 200, path);
    return /name="form" value="([0-9a-f]{64})"/.exec(text)?.[1] ?? assert.fail('no form');
  }

  async function create(fields: Record<string, string> = {}): Promise<Reply> {
    return visitor.post('/settings/keys/new', {
      form: await formOf('/settings/keys/new'),
      lifetime: 'none',
      ...fields,
    });
  }

  async function newKey(fields: Record<string, string> = {}): Promise<{ key: string; prefix: string }> {
    const { text, status } = await create(fields);
    assert.equal(status, 200, text);
    const key = KEY.exec(text)?.[0] ?? assert.fail('no key is shown');
    return { key, prefix: key.slice(0, 12) };
  }

  async function statusOf(key: string): Promise<number> {
    return (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  it('shows a new key in the answer itself, with three calls, and never again', async () => {
    const reply = await create({ label: 'production', lifetime: '90' });
    const key = KEY.exec(reply.text)?.[0] ?? assert.fail('no key is shown');
    assert.equal(reply.headers['cache-control'], 'no-store');
    for (const path of ['/api/v1/me', '/api/v1/stats', '/api/v1/changes?since=']) {
      assert.ok(reply.text.includes(`curl -H 'Authorization: Bearer ${key}' '${service.url}${path}`), path);
    }
    assert.equal(await statusOf(key), 200);
    for (const path of ['/settings', '/settings/keys', '/settings/keys/new', '/settings/events']) {
      assert.doesNotMatch((await visitor.get(path)).text, KEY, path);
    }
    const [record, ...others] = await listKeys(service.db, developerId);
    assert.deepEqual(others, []);
    assert.deepEqual([record?.label, record?.planId], ['production', 'free']);
    assert.equal(Date.parse(record?.expiresAt ?? '') - Date.parse(record?.createdAt ?? ''), 90 * 86_400_000);
    assert.ok(!service.logged.some((line) => line.includes(key.slice(13))));
  });

  it('makes nothing of a form that is sent again, and offers to roll the key that it made', async () => {
    const form = await formOf('/settings/keys/new');
    const replies = await Promise.all(
      [1, 2, 3].map(() => visitor.post('/settings/keys/new', { form, lifetime: 'none' })),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409]);
    const [{ prefix } = assert.fail(), ...others] = await listKeys(service.db, developerId);
    assert.deepEqual(others, []);
    const [kept] = await service.db('api_keys').where({ prefix }).pluck<Buffer[]>('form_hash');
    assert.deepEqual(kept, hash('sha256', form, 'buffer'));
    for (const { text, status } of replies) {
      if (status === 200) continue;
      assert.doesNotMatch(text, KEY);
      assert.ok(text.includes(`href="/settings/keys/${prefix}/roll"`));
    }
  });

  it('takes the plan of the developer, whatever the form says', async () => {
    await setDeveloperPlan(service.db, developerId, 'pro');
    await create({ plan: 'scale', plan_id: 'scale', developer_id: '1' });
    assert.deepEqual(
      (await listKeys(service.db, developerId)).map(({ planId }) => planId),
      ['pro'],
    );
  });

  it('takes an end on a date, and asks again where the day is over or does not exist', async () => {
    const { prefix } = await newKey({ lifetime: 'date', date: '2100-02-28' });
    const [record] = await listKeys(service.db, developerId);
    assert.deepEqual([record?.prefix, record?.expiresAt], [prefix, '2100-02-28T00:00:00.000000Z']);
    for (const date of ['2020-01-01', '2100-02-30', 'soon', '']) {
      const { status, text } = await create({ lifetime: 'date', date, label: 'kept' });
      assert.equal(status, 422, date);
      assert.ok(text.includes('Choose a date in the future') && text.includes('value="kept"'), date);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
  });

  it('takes no date beside another choice, since one of the two would be dropped in silence', async () => {
    for (const [lifetime, label] of [
      ['none', 'Never'],
      ['30', 'In 30 days'],
    ] as const) {
      const { status, text } = await create({ lifetime, date: '2100-02-28' });
      assert.equal(status, 422, lifetime);
      assert.ok(text.includes(`You chose &quot;${label}&quot; but also gave a date.`), text);
      assert.ok(text.includes('value="2100-02-28"') && text.includes(`value="${lifetime}" selected`), lifetime);
    }
    assert.deepEqual(await listKeys(service.db, developerId), []);
  });

  it('refuses a lifetime that the form does not offer, rather than make a key that never expires', async () => {
    for (const lifetime of ['zzz', '', '31']) {
      const { status, text } = await create({ lifetime });
      assert.equal(status, 400, lifetime);
      assert.doesNotMatch(text, KEY);
    }
    assert.deepEqual(await listKeys(service.db, developerId), []);
  });

  it('finds no key by what cannot be a prefix', async () => {
    const form = await formOf('/settings/keys/new');
    for (const act of ['roll', 'revoke']) {
      const { status } = await visitor.post(`/settings/keys/svc_XXXXXXXX%00/${act}`, { form, overlap: 'now' });
      assert.equal(status, 404, act);
    }
  });

  it('refuses a label that is too long or holds a line end, and a form without its token', async () => {
    for (const label of ['x'.repeat(201), 'a\nb', 'a\u0000b', 'a\u202Eb', 'a\u2069b']) {
      const { status, text } = await create({ label });
      assert.equal(status, 422);
      assert.ok(text.includes('aria-invalid="true"'));
    }
    for (const form of ['', 'x', 'F'.repeat(64)]) {
      assert.equal((await visitor.post('/settings/keys/new', { form, lifetime: 'none' })).status, 400);
    }
    assert.deepEqual(await listKeys(service.db, developerId), []);
  });

  it('shows a label as text', async () => {
    const { prefix } = await newKey({ label: ATTACK });
    for (const path of ['/settings/keys', `/settings/keys/${prefix}/roll`, `/settings/keys/${prefix}/revoke`]) {
      const { text } = await visitor.get(path);
      assert.ok(text.includes('&lt;script>alert(1)') && !text.includes('<script>alert'), path);
    }
  });

  it('keeps the direction of a label to the label, also where the command line has let its controls in', async () => {
    const { prefix } = await createKey(service.db, { developerId, planId: 'free', label: 'מפתח \u202Eno\u2069' });
    for (const path of ['/settings/keys', `/settings/keys/${prefix}/roll`, `/settings/keys/${prefix}/revoke`]) {
      assert.ok((await visitor.get(path)).text.includes('<bdi>מפתח \uFFFDno\uFFFD</bdi>'), path);
    }
    const { text } = await create({ label: 'מפתח' });
    assert.ok(text.includes('Your key (\u2068מפתח\u2069)'));
  });

  it('holds a developer to 20 keys that work', async () => {
    const planId = 'free';
    for (let i = 1; i < MAX_ACTIVE_KEYS; i += 1) await createKey(service.db, { developerId, planId });
    await newKey();
    const { status, text } = await create();
    assert.equal(status, 409);
    assert.ok(text.includes('You have reached the limit of 20 active keys'));
    assert.equal((await listKeys(service.db, developerId)).length, 20);
  });

  it('holds a developer to 100 keys in 24 hours, rolled ones included, and says so', async () => {
    const { prefix } = await newKey();
    await service.db.raw(
      `insert into api_keys (prefix, hash, developer_id, plan_id, revoked_at, form_hash)
       select 'svc_' || substr(md5(:id || '-' || n), 1, 8), sha256((:id || '-' || n)::bytea), :id, 'free', now(), sha256(n::text::bytea)
         from generate_series(2, :most) n`,
      { id: developerId, most: MAX_KEYS_PER_DAY },
    );
    const roll = `/settings/keys/${prefix}/roll`;
    for (const refused of [await create(), await visitor.post(roll, { form: await formOf(roll), overlap: '24h' })]) {
      assert.equal(refused.status, 409);
      assert.ok(refused.text.includes('You have reached the limit of 100 new keys in 24 hours'));
      assert.doesNotMatch(refused.text, KEY);
    }
    assert.equal((await listKeys(service.db, developerId)).length, MAX_KEYS_PER_DAY);
  });

  it('rolls a key: both work for the overlap, and the list says until when', async () => {
    const old = await newKey({ label: 'ci' });
    const form = await formOf(`/settings/keys/${old.prefix}/roll`);
    const reply = await visitor.post(`/settings/keys/${old.prefix}/roll`, { form, overlap: '24h' });
    assert.equal(reply.status, 200);
    const successor = KEY.exec(reply.text)?.[0] ?? assert.fail('no key is shown');
    assert.deepEqual([await statusOf(old.key), await statusOf(successor)], [200, 200]);
    const list = (await visitor.get('/settings/keys')).text;
    assert.match(list, /Rolled<\/span> active until <time/);
    assert.ok(list.includes(`aria-label="Revoke ${old.prefix}"`));
    assert.ok(!list.includes(`aria-label="Roll ${old.prefix}"`));
    const again = await visitor.post(`/settings/keys/${old.prefix}/roll`, { form, overlap: '24h' });
    assert.equal(again.status, 409);
    assert.doesNotMatch(again.text, KEY);
    // Ended early.
    assert.equal((await visitor.post(`/settings/keys/${old.prefix}/revoke`)).status, 303);
    assert.deepEqual([await statusOf(old.key), await statusOf(successor)], [401, 200]);
  });

  for (const [overlap, seconds] of [
    ['now', 0],
    ['1h', 3_600],
    ['24h', 86_400],
    ['7d', 604_800],
  ] as const) {
    it(`lets a rolled key go on as chosen: ${overlap}`, async () => {
      const { key, prefix } = await newKey();
      const form = await formOf(`/settings/keys/${prefix}/roll`);
      assert.equal((await visitor.post(`/settings/keys/${prefix}/roll`, { form, overlap })).status, 200);
      const [old, successor] = await listKeys(service.db, developerId);
      assert.equal(Date.parse(old?.expiresAt ?? '') - Date.parse(successor?.createdAt ?? ''), seconds * 1_000);
      assert.equal(await statusOf(key), seconds === 0 ? 401 : 200);
    });
  }

  it('refuses an overlap that the form does not offer', async () => {
    const { prefix } = await newKey();
    const form = await formOf(`/settings/keys/${prefix}/roll`);
    for (const overlap of ['', '2h', '365d', '-1']) {
      assert.equal((await visitor.post(`/settings/keys/${prefix}/roll`, { form, overlap })).status, 400);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
  });

  it('asks before it revokes, with the last use, and the key is refused on its next request', async () => {
    const { key, prefix } = await newKey();
    const path = `/settings/keys/${prefix}/revoke`;
    assert.ok((await visitor.get(path)).text.includes('It has never been used.'));
    assert.equal(await statusOf(key), 200);
    await service.db('api_keys').where({ prefix }).update({ last_used_at: '2026-01-02T03:04:05Z' });
    assert.ok((await visitor.get(path)).text.includes('2026-01-02 03:04 UTC'));
    const { status, headers } = await visitor.post(path);
    assert.equal(status, 303);
    assert.equal(await statusOf(key), 401);
    const { text } = await visitor.get(headers.location ?? '');
    assert.ok(text.includes('has been revoked. Requests with it now fail.'));
    assert.ok(text.includes('Inactive keys'));
    // The notice tells only of what is so.
    const other = await newKey();
    for (const claim of [other.prefix, service.key.slice(0, 12), 'svc_00000000', ATTACK]) {
      const lie = await visitor.get(`/settings/keys?revoked=${encodeURIComponent(claim)}&propagation=immediate`);
      assert.ok(!lie.text.includes('notice-ok'), claim);
    }
  });

  it('names the successor of a rolled key and whether it works, and warns before it is revoked', async () => {
    const first = await newKey();
    const rollForm = (prefix: string): string => `/settings/keys/${prefix}/roll`;
    const roll = async (prefix: string, overlap: string): Promise<string> => {
      const { text } = await visitor.post(rollForm(prefix), { form: await formOf(rollForm(prefix)), overlap });
      return (KEY.exec(text)?.[0] ?? assert.fail('no key is shown')).slice(0, 12);
    };
    const second = await roll(first.prefix, '24h');
    const list = async (): Promise<string> =>
      (await visitor.get('/settings/keys')).text.replaceAll(/<\/?(?:code|span)[^>]*>/g, '').replaceAll(/\s+/g, ' ');
    assert.match(await list(), new RegExp(`Rolled active until .*, replaced by ${second}<`));
    const question = async (prefix: string): Promise<string> =>
      (await visitor.get(`/settings/keys/${prefix}/revoke`)).text;
    const warning = /This key replaces <code>(svc_\w{8})<\/code>, which stays active until <time/g;
    assert.deepEqual(
      Array.from((await question(second)).matchAll(warning), ([, prefix]) => prefix),
      [first.prefix],
    );
    const third = await roll(second, 'now');
    assert.match(await list(), new RegExp(`, replaced by ${second}, which is no longer active`));
    // A past key names its successor too, so that the list leads to the last one.
    assert.match(await list(), new RegExp(`Expired, replaced by ${third}<`));
    for (const prefix of [first.prefix, third]) assert.doesNotMatch(await question(prefix), warning);
    for (const again of [
      await visitor.get(rollForm(first.prefix)),
      await visitor.post(rollForm(first.prefix), { form: 'a'.repeat(64), overlap: '24h' }),
    ]) {
      assert.equal(again.status, 409);
      assert.match(
        again.text,
        /was replaced by <code>svc_\w{8}<\/code>, which is no longer active\. <a href="\/settings\/keys\/new"/,
      );
    }
  });

  it('asks nothing about a key that cannot be rolled or is revoked, and says why', async () => {
    const { prefix } = await newKey();
    const [roll, revoke] = [`/settings/keys/${prefix}/roll`, `/settings/keys/${prefix}/revoke`];
    const rolled = await visitor.post(roll, { form: await formOf(roll), overlap: '24h' });
    const successor = (KEY.exec(rolled.text)?.[0] ?? assert.fail('no key is shown')).slice(0, 12);
    const second = await visitor.get(roll);
    assert.equal(second.status, 409);
    assert.ok(second.text.includes(`was already replaced by <code>${successor}</code>`));
    await visitor.post(revoke);
    const third = await visitor.get(roll);
    assert.equal(third.status, 409);
    assert.ok(third.text.includes('This key is revoked.') && !third.text.includes('<form class="form"'));
    const question = await visitor.get(revoke);
    assert.equal(question.status, 303);
    assert.ok((await visitor.get(question.headers.location ?? '')).text.includes('is already revoked'));
  });

  it('keeps past keys in the list, with their state', async () => {
    const { prefix } = await newKey();
    await expireIn(service.db, prefix, 0);
    const { text } = await visitor.get('/settings/keys');
    assert.match(text, /Inactive keys[\s\S]*Expired/);
    const rolled = await visitor.post(`/settings/keys/${prefix}/roll`, { form: 'a'.repeat(64), overlap: 'now' });
    assert.equal(rolled.status, 409);
    assert.match(rolled.text, /This key has expired\. <a href="\/settings\/keys\/new">Create a new key/);
  });

  it('shows and changes no key of another developer', async () => {
    const { prefix } = await service.newKey();
    assert.ok(!(await visitor.get('/settings/keys')).text.includes(prefix));
    for (const act of ['roll', 'revoke']) {
      assert.equal((await visitor.get(`/settings/keys/${prefix}/${act}`)).status, 404);
      const reply = await visitor.post(`/settings/keys/${prefix}/${act}`, { form: 'a'.repeat(64), overlap: 'now' });
      assert.equal(reply.status, 404, act);
    }
    const [record] = (await listKeys(service.db)).filter((key) => key.prefix === prefix);
    assert.deepEqual([record?.revokedAt, record?.successor], [null, null]);
  });

  it('lets a suspended developer read, and change nothing', async () => {
    const { prefix } = await newKey();
    const form = await formOf('/settings/keys/new');
    await suspendDeveloper(service.db, developerId);
    const { status, text } = await visitor.get('/settings/keys');
    assert.equal(status, 200);
    assert.ok(text.includes(prefix) && !text.includes('Create a key') && !text.includes('/revoke"'));
    for (const path of ['/settings/keys/new', `/settings/keys/${prefix}/roll`, `/settings/keys/${prefix}/revoke`]) {
      assert.equal((await visitor.get(path)).status, 403, path);
      assert.equal((await visitor.post(path, { form, overlap: 'now' })).status, 403, path);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
  });

  /** Makes the sign-in of the developer older than what creates and rolls keys. */
  async function ageSignIn(): Promise<void> {
    const signedInAt = service.db.raw("now() - interval '16 minutes'");
    await service.db('sessions').where({ developer_id: developerId }).update({ signed_in_at: signedInAt });
  }

  it('asks for a sign-in of the last 15 minutes before it makes a key, and says so beside the buttons', async () => {
    const { prefix } = await newKey();
    const form = await formOf('/settings/keys/new');
    const need = /Sign in again to create or roll a key.*\(sign in first\)/s;
    assert.doesNotMatch((await visitor.get('/settings/keys')).text, need);
    await ageSignIn();
    assert.match((await visitor.get('/settings/keys')).text, need);
    for (const path of ['/settings/keys/new', `/settings/keys/${prefix}/roll`]) {
      const reply = await visitor.post(path, { form, overlap: 'now' });
      assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-in'], path);
    }
    assert.deepEqual(
      (await listKeys(service.db, developerId)).map(({ prefix: each, revokedAt }) => [each, revokedAt]),
      [[prefix, null]],
    );
    // After the sign-in, the form that was asked for last.
    const { headers } = await signInAgain();
    assert.equal(headers.location, `/settings/keys/${prefix}/roll`);
  });

  it('revokes a key however old the sign-in is', async () => {
    const { key, prefix } = await newKey();
    await ageSignIn();
    const path = `/settings/keys/${prefix}/revoke`;
    assert.ok((await visitor.get(path)).text.includes(`Revoke ${prefix}</button>`));
    const { status, headers } = await visitor.post(path);
    assert.deepEqual([status, headers.location], [303, `/settings/keys?revoked=${prefix}&propagation=immediate`]);
    assert.equal(await statusOf(key), 401);
  });

  async function signInAgain(): Promise<Reply> {
    return visitor.post('/sign-in/link', { token: await createSignInLink(service.db, developerId) });
  }

  it('shows nothing to a visitor who is not signed in, and takes no form of another site', async () => {
    const { prefix } = await newKey();
    const stranger = new Visitor(service.url);
    for (const path of ['/settings/keys', '/settings/keys/new', '/settings/events']) {
      assert.equal((await stranger.get(path)).headers.location, '/sign-in', path);
    }
    assert.equal((await stranger.post(`/settings/keys/${prefix}/revoke`)).headers.location, '/sign-in');
    const forged = await visitor.post(`/settings/keys/${prefix}/revoke`, {}, { 'sec-fetch-site': 'cross-site' });
    assert.equal(forged.status, 403);
    const [record] = await listKeys(service.db, developerId);
    assert.equal(record?.revokedAt, null);
  });

  it('tells on the events page what happened and who did it, and how the key ended', async () => {
    const { prefix } = await newKey();
    await visitor.post(`/settings/keys/${prefix}/revoke`);
    const { text } = await visitor.get('/settings/events');
    const rows = [...text.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row = '']) => row.replace(/<[^>]+>/g, '|'));
    const told = rows.filter((row) => row.includes(prefix)).map((row) => row.split('|').filter((cell) => cell !== ''));
    assert.deepEqual(
      told.map((cells) => cells.slice(1)),
      [
        ['Key revoked', prefix, 'You'],
        ['Key created on plan free', prefix, 'You'],
      ],
    );
    const [, revoked] = await listEvents(service.db, { developerId, limit: 2 });
    assert.equal(revoked?.actor, 'developer');
  });
});

describe('the keys page of a server that shares a Redis', () => {
  let service: TestService;
  let redis: TestRedis;
  let direct: Redis;
  let developerId: number;
  let visitor: Visitor;

  before(async () => {
    redis = await startRedis();
    direct = new Redis(redis.url);
    direct.on('error', () => undefined);
    service = await startService({ redisUrl: redis.url });
    developerId = await newDeveloper(service);
    visitor = await signIn(service, developerId);
  });

  after(async () => {
    await service.stop();
    direct.disconnect();
    await redis.stop();
  });

  const newKey = (): Promise<CreatedKey> => createKey(service.db, { developerId, planId: 'free' });

  /** @returns whether something has ended the epoch by the time of its answer */
  async function endsEpoch(act: () => Promise<Reply>): Promise<boolean> {
    const before = await direct.get(EPOCH_KEY);
    assert.ok((await act()).status < 400);
    return (await direct.get(EPOCH_KEY)) !== before;
  }

  it('ends the epoch before it answers, where it has changed a key', async () => {
    const [first, second, third] = [await newKey(), await newKey(), await newKey()];
    const revoke = (): Promise<Reply> => visitor.post(`/settings/keys/${first.prefix}/revoke`);
    const roll = (): Promise<Reply> =>
      visitor.post(`/settings/keys/${second.prefix}/roll`, { form: 'a'.repeat(64), overlap: 'now' });
    const find = (): Promise<Reply> => visitor.post('/revoke-leaked-key', { key: third.key });
    for (const act of [revoke, roll, find]) assert.equal(await endsEpoch(act), true);
    // Anybody could make all servers ask anew about all keys otherwise, again and again.
    const create = async (): Promise<Reply> =>
      visitor.post('/settings/keys/new', { form: newForm(), lifetime: 'none' });
    for (const act of [revoke, find, create]) assert.equal(await endsEpoch(act), false);
  });

  it('ends the epoch when a change is committed, and not before: a server would read the old key again', async () => {
    const [{ prefix: first }, { prefix: second }, { key }] = [await newKey(), await newKey(), await newKey()];
    for (const act of [
      () => visitor.post(`/settings/keys/${first}/revoke`),
      () => visitor.post(`/settings/keys/${second}/roll`, { form: newForm(), overlap: 'now' }),
      () => visitor.post('/revoke-leaked-key', { key }),
    ]) {
      await direct.set(EPOCH_KEY, 'before');
      const held = await holdCommits(service.db, 'api_keys', 'catalog serve');
      const reply = act();
      try {
        await eventually('the commit is held', () => held.isWaitedFor());
        assert.equal(await direct.get(EPOCH_KEY), 'before');
      } finally {
        await held.release();
      }
      assert.ok((await reply).status < 400);
      assert.notEqual(await direct.get(EPOCH_KEY), 'before');
    }
  });

  /** Revokes and rolls keys, each in every way. All pages must say from when on the old key fails. */
  async function assertWithinMoments(): Promise<void> {
    const [first, second, third] = [await newKey(), await newKey(), await newKey()];
    const { status, headers } = await visitor.post(`/settings/keys/${first.prefix}/revoke`);
    assert.deepEqual([status, headers.location], [303, `/settings/keys?revoked=${first.prefix}&propagation=eventual`]);
    assert.ok((await visitor.get(headers.location ?? '')).text.includes('fail within moments.'));
    const rolled = await visitor.post(`/settings/keys/${second.prefix}/roll`, { form: newForm(), overlap: 'now' });
    assert.match(rolled.text, /which\s+expires within moments\./);
    const find = (): Promise<Reply> => visitor.post('/revoke-leaked-key', { key: third.key });
    assert.ok((await find()).text.includes('fails within moments.'));
    // A second attempt says nothing about the moment.
    assert.ok((await find()).text.includes('This key was already revoked.'));
    const again = await visitor.post(`/settings/keys/${first.prefix}/revoke`);
    assert.match((await visitor.get(again.headers.location ?? '')).text, /is already revoked\./);
  }

  it('says "within moments" where Redis cannot be reached', async () => {
    await redis.kill();
    await assertWithinMoments();
  });
});

describe('the keys page of a server on a primary that was replaced', () => {
  let redis: TestRedis;
  let direct: Redis;
  let service: TestService;

  before(async () => {
    redis = await startRedis();
    direct = new Redis(redis.url);
  });

  beforeEach(async () => {
    await direct.flushall();
    service = await startService({ redisUrl: redis.url });
  });

  afterEach(() => service.stop());

  after(async () => {
    direct.disconnect();
    await redis.stop();
  });

  for (const [what, pathFor] of [
    ['that a key is made', () => 'new'],
    ['that a key was revoked before', (prefix) => `${prefix}/revoke`],
  ] as readonly (readonly [string, (prefix: string) => string])[]) {
    it(`does not report ${what}`, async () => {
      const developerId = await newDeveloper(service);
      const { prefix } = await createKey(service.db, { developerId, planId: 'free' });
      await revokeKey(service.db, prefix);
      const visitor = await signIn(service, developerId);
      // What a server publishes that is connected to the next primary.
      await direct.set(EPOCH_KEY, ((await direct.get(EPOCH_KEY)) ?? '').replace('/1/', '/2/'));
      const fields = { form: newForm(), lifetime: 'none' };
      const { status } = await visitor.post(`/settings/keys/${pathFor(prefix)}`, fields);
      assert.equal(status, 503);
    });
  }
});

/** The secret of a form that was never sent. */
function newForm(): string {
  return randomBytes(32).toString('hex');
}
