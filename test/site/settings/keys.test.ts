import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { EPOCH_KEY } from '../../../src/admission/epoch.js';
import { setDeveloperPlan, suspendDeveloper } from '../../../src/developers/developers.js';
import { createKey, listKeys, type CreatedKey } from '../../../src/keys/keys.js';
import { revokeKey } from '../../../src/keys/revoke.js';
import { MAX_ACTIVE_KEYS, MAX_KEYS_PER_DAY } from '../../../src/keys/key-change.js';
import { newDeveloper, signIn, Visitor } from '../../support/http/visitor.js';
import { eventually } from '../../support/eventually.js';
import { holdCommits } from '../../support/postgres/held-commits.js';
import { expireIn } from '../../support/keys/expiry.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { testWorld } from '../../support/world.js';
import { settingsPages } from '../pages.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;
const NEW = '/settings/keys/new';
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
    return visitor.post(NEW, { form: await formOf(NEW), lifetime: 'none', ...fields });
  }

  async function newKey(fields: Record<string, string> = {}): Promise<{ key: string; prefix: string }> {
    const { text, status } = await create(fields);
    assert.equal(status, 200, text);
    const key = KEY.exec(text)?.[0] ?? assert.fail('no key is shown');
    return { key, prefix: key.slice(0, 12) };
  }

  async function roll(prefix: string, overlap: string): Promise<Reply> {
    const path = `/settings/keys/${prefix}/roll`;
    return visitor.post(path, { form: await formOf(path), overlap });
  }

  async function statusOf(key: string): Promise<number> {
    return (await service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;
  }

  it('a new key is shown by the answer itself with a first call without the key itself, and never again', async () => {
    const reply = await create({ label: 'production', lifetime: '90' });
    const key = KEY.exec(reply.text)?.[0] ?? assert.fail('no key is shown');
    assert.equal(reply.headers['cache-control'], 'no-store');
    assert.equal(reply.text.split(key).length, 2);
    assert.ok(reply.text.includes('read -rs KEY') && reply.text.includes(`${service.url}/api/v1/stats`));
    assert.equal(await statusOf(key), 200);
    for (const path of settingsPages(key.slice(0, 12))) assert.doesNotMatch((await visitor.get(path)).text, KEY, path);
    const [record, ...others] = await listKeys(service.db, developerId);
    assert.deepEqual(others, []);
    assert.deepEqual([record?.label, record?.planId], ['production', 'free']);
    assert.equal(Date.parse(record?.expiresAt ?? '') - Date.parse(record?.createdAt ?? ''), 90 * 86_400_000);
    assert.ok(!service.logged.some((line) => line.includes(key.slice(13))));
  });

  it('a form creates one key however often it is sent, and then offers to roll that key', async () => {
    const form = await formOf(NEW);
    const replies = await Promise.all([1, 2, 3].map(() => visitor.post(NEW, { form, lifetime: 'none' })));
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

  it('a new key is on the plan of the developer whatever the form names, and ends on the date that it names', async () => {
    await setDeveloperPlan(service.db, developerId, 'pro');
    const fields = { plan: 'scale', plan_id: 'scale', developer_id: '1', lifetime: 'date', date: '2100-02-28' };
    const { prefix } = await newKey(fields);
    assert.deepEqual(
      (await listKeys(service.db, developerId)).map((key) => [key.prefix, key.planId, key.expiresAt]),
      [[prefix, 'pro', '2100-02-28T00:00:00.000000Z']],
    );
  });

  const CORRECTIONS: readonly (readonly [string, Record<string, string>[], string])[] = [
    [
      'a date that is over or does not exist',
      ['2020-01-01', '2100-02-30', 'soon'].map((date) => ({ lifetime: 'date', date, label: 'kept' })),
      'Enter a date in the future.',
    ],
    ['a date that is missing', [{ lifetime: 'date', date: '', label: 'kept' }], 'Enter an expiry date.'],
    [
      'a label that is too long or has control characters',
      ['x'.repeat(201), 'a\nb', 'a\u0000b', 'a\u202Eb', 'a\u2069b'].map((label) => ({ label })),
      'Use at most 200 characters',
    ],
  ];
  for (const [what, forms, message] of CORRECTIONS) {
    it(`${what} is shown again with its error, and no key is created`, async () => {
      for (const fields of forms) {
        const { status, text } = await create(fields);
        assert.equal(status, 422, JSON.stringify(fields));
        assert.ok(text.includes(message) && text.includes('aria-invalid="true"'), text);
        assert.ok(fields.label !== 'kept' || text.includes('value="kept"'));
        assert.ok(text.includes(`value="${fields.lifetime ?? 'none'}" selected`));
      }
      assert.deepEqual(await listKeys(service.db, developerId), []);
    });
  }

  it('a form that no browser sends is refused and creates no key', async () => {
    for (const lifetime of ['zzz', '', '31']) assert.equal((await create({ lifetime })).status, 400, lifetime);
    for (const form of ['', 'x', 'F'.repeat(64)]) {
      assert.equal((await visitor.post(NEW, { form, lifetime: 'none' })).status, 400, form);
    }
    const { prefix } = await createKey(service.db, { developerId, planId: 'free' });
    const form = await formOf(NEW);
    for (const overlap of ['', '2h', '365d', '-1']) {
      assert.equal((await visitor.post(`/settings/keys/${prefix}/roll`, { form, overlap })).status, 400, overlap);
    }
    for (const act of ['roll', 'revoke']) {
      const { status } = await visitor.post(`/settings/keys/svc_XXXXXXXX%00/${act}`, { form, overlap: 'now' });
      assert.equal(status, 404, act);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
  });

  it('a label is shown as text and cannot turn the direction of the text around it', async () => {
    const label = `${ATTACK} מפתח \u202Eno\u2069`;
    const { prefix } = await createKey(service.db, { developerId, planId: 'free', label });
    for (const path of ['/settings/keys', `/settings/keys/${prefix}/roll`, `/settings/keys/${prefix}/revoke`]) {
      const { text } = await visitor.get(path);
      assert.match(text, /<bdi>[^<]*&lt;script>alert\(1\)[^<]*מפתח \uFFFDno\uFFFD<\/bdi>/, path);
      assert.ok(!text.includes('<script>alert'), path);
    }
    assert.ok((await create({ label: 'מפתח' })).text.includes('Your key (\u2068מפתח\u2069)'));
  });

  it('a developer has at most 20 active keys, and no form is offered for another one', async () => {
    const form = await formOf(NEW);
    for (let i = 0; i < MAX_ACTIVE_KEYS; i += 1) await createKey(service.db, { developerId, planId: 'free' });
    // The form was open before.
    const { status, text } = await visitor.post(NEW, { form, lifetime: 'none' });
    assert.equal(status, 409);
    assert.ok(text.includes('You have reached the limit of 20 active keys'));
    const said = /You have 20 of 20 active keys\.<\/strong> To create another one, first revoke a key/;
    for (const path of ['/settings/keys', NEW]) {
      const page = (await visitor.get(path)).text;
      assert.match(page, said, path);
      assert.doesNotMatch(page, /Create a key<\/a>|Create key<\/button>/, path);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 20);
  });

  it('a developer creates at most 100 keys in 24 hours, rolled ones included', async () => {
    const { prefix } = await newKey();
    await service.db.raw(
      `insert into api_keys (prefix, hash, developer_id, plan_id, revoked_at, form_hash)
       select 'svc_' || substr(md5(:id || '-' || n), 1, 8), sha256((:id || '-' || n)::bytea), :id, 'free', now(), sha256(n::text::bytea)
         from generate_series(2, :most) n`,
      { id: developerId, most: MAX_KEYS_PER_DAY },
    );
    for (const refused of [await create(), await roll(prefix, '24h')]) {
      assert.equal(refused.status, 409);
      assert.ok(refused.text.includes('You have reached the limit of 100 new keys in 24 hours'));
      assert.doesNotMatch(refused.text, KEY);
    }
    assert.equal((await listKeys(service.db, developerId)).length, MAX_KEYS_PER_DAY);
  });

  for (const [overlap, seconds] of [
    ['now', 0],
    ['1h', 3_600],
    ['24h', 86_400],
    ['7d', 604_800],
  ] as const) {
    it(`a key that is rolled with the overlap ${overlap} expires after ${seconds} s, and its successor is shown once`, async () => {
      const { key, prefix } = await newKey({ label: 'ci' });
      const form = await formOf(`/settings/keys/${prefix}/roll`);
      const { status, text } = await visitor.post(`/settings/keys/${prefix}/roll`, { form, overlap });
      assert.equal(status, 200);
      assert.equal(await statusOf(KEY.exec(text)?.[0] ?? assert.fail('no key is shown')), 200);
      const [old, successor] = await listKeys(service.db, developerId);
      assert.equal(Date.parse(old?.expiresAt ?? '') - Date.parse(successor?.createdAt ?? ''), seconds * 1_000);
      assert.equal(await statusOf(key), seconds === 0 ? 401 : 200);
      const again = await visitor.post(`/settings/keys/${prefix}/roll`, { form, overlap });
      assert.equal(again.status, 409);
      assert.doesNotMatch(again.text, KEY);
    });
  }

  it('a key is revoked after a question that names its last use', async () => {
    const { key, prefix } = await newKey();
    const path = `/settings/keys/${prefix}/revoke`;
    assert.ok((await visitor.get(path)).text.includes('has never been used.'));
    assert.equal(await statusOf(key), 200);
    await service.db('api_keys').where({ prefix }).update({ last_used_at: '2026-01-02T03:04:05Z' });
    assert.ok((await visitor.get(path)).text.includes('2026-01-02 03:04 UTC'));
    const { status, headers } = await visitor.post(path);
    assert.deepEqual([status, headers.location], [303, `/settings/keys/${prefix}`]);
    assert.equal(await statusOf(key), 401);
    const said = 'This key has been revoked. Requests that use it will fail immediately.';
    assert.ok((await visitor.get(`/settings/keys/${prefix}`)).text.includes(said));
    assert.ok(!(await visitor.get(`/settings/keys/${prefix}`)).text.includes(said));
    assert.ok((await visitor.get('/settings/keys')).text.includes('Inactive keys'));
  });

  it('a rolled key names its successor and whether that is active, and revoking the successor needs a warning', async () => {
    const first = await newKey();
    const successorOf = async (prefix: string, overlap: string): Promise<string> =>
      (KEY.exec((await roll(prefix, overlap)).text)?.[0] ?? assert.fail('no key is shown')).slice(0, 12);
    const second = await successorOf(first.prefix, '24h');
    const list = async (): Promise<string> =>
      (await visitor.get('/settings/keys')).text.replaceAll(/<\/?(?:code|span)[^>]*>/g, '').replaceAll(/\s+/g, ' ');
    assert.match(await list(), new RegExp(`Active until <time[^>]*>[^<]*</time> Replaced by <a[^>]*>${second}</a><`));
    assert.ok((await list()).includes(`aria-label="Revoke ${first.prefix}"`));
    assert.ok(!(await list()).includes(`aria-label="Roll ${first.prefix}"`));
    const question = async (prefix: string): Promise<string> =>
      (await visitor.get(`/settings/keys/${prefix}/revoke`)).text;
    const warning = /This key replaces <a[^>]*><code>(svc_\w{8})<\/code><\/a>, which stays active until <time/;
    assert.equal(warning.exec(await question(second))?.[1], first.prefix);
    const third = await successorOf(second, 'now');
    assert.match(await list(), new RegExp(`Replaced by <a[^>]*>${second}</a>, which is no longer active`));
    // An inactive key names its successor too, so that the list leads to the last one.
    assert.match(await list(), new RegExp(`Replaced by <a[^>]*>${third}</a><`));
    for (const prefix of [first.prefix, third]) assert.doesNotMatch(await question(prefix), warning);
  });

  it('a key that cannot be rolled or revoked gets the reason in place of the form', async () => {
    const { prefix } = await newKey();
    const rolled = await roll(prefix, '24h');
    const successor = (KEY.exec(rolled.text)?.[0] ?? assert.fail('no key is shown')).slice(0, 12);
    const path = `/settings/keys/${prefix}/roll`;
    const assertRefused = async (reason: RegExp): Promise<void> => {
      for (const reply of [
        await visitor.get(path),
        await visitor.post(path, { form: 'a'.repeat(64), overlap: '24h' }),
      ]) {
        assert.equal(reply.status, 409);
        assert.match(reply.text, reason);
        assert.ok(!reply.text.includes('<form class="form"'));
      }
    };
    await assertRefused(new RegExp(`was already replaced by <code>${successor}</code>`));
    await expireIn(service.db, successor, 0);
    await assertRefused(
      /was replaced by <code>svc_\w{8}<\/code>, which is no longer active\. <a href="\/settings\/keys\/new"/,
    );
    await expireIn(service.db, prefix, 0);
    await assertRefused(/was replaced by <code>svc_\w{8}<\/code>, which is no longer active/);
    await visitor.post(`/settings/keys/${prefix}/revoke`);
    await assertRefused(/This key is revoked\./);
    const question = await visitor.get(`/settings/keys/${prefix}/revoke`);
    assert.deepEqual([question.status, question.headers.location], [303, `/settings/keys/${prefix}`]);
    assert.ok((await visitor.get(`/settings/keys/${prefix}`)).text.includes('This key was already revoked.'));
  });

  it('a form about a key that has ended names the key and leads to it', async () => {
    const { prefix } = await newKey();
    await expireIn(service.db, prefix, 0);
    const path = `/settings/keys/${prefix}`;
    for (const act of ['label', 'expiry']) {
      for (const [reply, title] of [
        [await visitor.get(`${path}/${act}`), 'You cannot change this key'],
        [await visitor.post(`${path}/${act}`, { label: 'x', lifetime: '30' }), 'Nothing was changed'],
      ] as const) {
        assert.equal(reply.status, 409);
        assert.ok(reply.text.includes(`<h1>${title}</h1>`), reply.text);
        assert.ok(
          reply.text.includes(`<a href="${path}">${prefix}</a>`) && reply.text.includes('This key has expired.'),
        );
      }
    }
    const question = await visitor.get(`${path}/revoke`);
    assert.deepEqual([question.status, question.headers.location], [303, path]);
    assert.ok((await visitor.get(path)).text.includes('This key has already ended.'));
  });

  it('a whole key is accepted neither as a label nor as a filter, and is not shown again', async () => {
    const { key, prefix } = await newKey();
    for (const [path, fields] of [
      [NEW, { form: await formOf(NEW), lifetime: '30', label: `my ${key}` }],
      [`/settings/keys/${prefix}/label`, { label: key }],
    ] as const) {
      const { status, text } = await visitor.post(path, fields);
      assert.equal(status, 422, path);
      assert.ok(text.includes('This looks like an API key. Labels are not secret: use a name.'), text);
      assert.ok(!text.includes(key), path);
    }
    assert.ok(!(await visitor.get(`${NEW}?label=${key}`)).text.includes(key));
    assert.deepEqual(
      (await listKeys(service.db, developerId)).map(({ label }) => label),
      [null],
    );
    const { status, headers } = await visitor.get(`/settings/keys?q=%20${key}`);
    assert.deepEqual([status, headers.location], [303, `/settings/keys?q=${prefix}`]);
    const secret = key.slice(prefix.length + 1);
    const other = await visitor.get(`/settings/keys?q=${secret}`);
    assert.deepEqual([other.status, other.headers.location], [303, '/settings/keys']);
  });

  it('the form that rolls a key names the expiry of the new key, and an overlap that the old key does not live to see', async () => {
    const { prefix } = await newKey({ lifetime: '30' });
    await service
      .db('api_keys')
      .where({ prefix })
      .update({
        created_at: service.db.raw("now() - interval '27 days'"),
        expires_at: service.db.raw("now() + interval '3 days'"),
      });
    const { text } = await visitor.get(`/settings/keys/${prefix}/roll`);
    const date = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    assert.match(text, new RegExp(`expires on <time[^>]*>${date(30)} \\d\\d:\\d\\d UTC</time>`));
    assert.match(
      text,
      new RegExp(`value="7d"/> 7 days \\(the key expires sooner, on ${date(3)} \\d\\d:\\d\\d UTC\\)<`),
    );
    assert.match(text, /value="24h" checked\/> 24 hours</);
    assert.ok(text.includes('> Not at all: end it now<'));
  });

  it('a key of another developer is neither shown nor changed', async () => {
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

  it('a suspended developer reads the list of keys and changes nothing', async () => {
    const { prefix } = await newKey();
    const form = await formOf(NEW);
    await suspendDeveloper(service.db, developerId);
    const { status, text } = await visitor.get('/settings/keys');
    assert.equal(status, 200);
    assert.ok(text.includes(prefix) && !text.includes('Create a key') && !text.includes('/revoke"'));
    for (const path of [NEW, `/settings/keys/${prefix}/roll`, `/settings/keys/${prefix}/revoke`]) {
      const [shown, refused] = [await visitor.get(path), await visitor.post(path, { form, overlap: 'now' })];
      assert.deepEqual([shown.status, refused.status], [403, 403], path);
      for (const reply of [shown, refused]) {
        assert.match(reply.text, /<title>Error: Account suspended.*class="settings-nav".*>Go to your keys</s);
        assert.equal(reply.text.includes('Nothing was changed.'), reply === refused);
        assert.ok(!reply.text.includes('Back to the form'));
      }
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
  });

  it('creating and rolling keys need a sign-in of the last 15 minutes, and revoking does not', async () => {
    const { key, prefix } = await newKey();
    const form = await formOf(NEW);
    const need = /<a href="\/sign-in">Sign in again<\/a> to create or roll a key/;
    assert.doesNotMatch((await visitor.get('/settings/keys')).text, need);
    const signedInAt = service.db.raw("now() - interval '16 minutes'");
    await service.db('sessions').where({ developer_id: developerId }).update({ signed_in_at: signedInAt });
    assert.match((await visitor.get('/settings/keys')).text, need);
    for (const path of [NEW, `/settings/keys/${prefix}/roll`]) {
      const reply = await visitor.post(path, { form, overlap: 'now' });
      assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-in'], path);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
    const path = `/settings/keys/${prefix}/revoke`;
    assert.ok((await visitor.get(path)).text.includes(`Revoke ${prefix}</button>`));
    assert.equal((await visitor.post(path)).headers.location, `/settings/keys/${prefix}`);
    assert.equal(await statusOf(key), 401);
    // The sign-in leads back to the form that was sent last, as it was filled in.
    assert.ok((await visitor.get('/sign-in')).text.includes('Your form was not processed, and nothing was changed.'));
    const token = await createSignInLink(service.db, developerId);
    const { headers } = await visitor.post('/sign-in/link', { token });
    assert.equal(headers.location, `/settings/keys/${prefix}/roll?overlap=now`);
  });

  it('a visitor who is not signed in is redirected to sign-in by every page of the settings', async () => {
    const { prefix } = await newKey();
    const stranger = new Visitor(service.url);
    for (const path of settingsPages(prefix)) {
      assert.equal((await stranger.get(path)).headers.location, '/sign-in', path);
    }
    assert.equal((await stranger.post(`/settings/keys/${prefix}/revoke`)).headers.location, '/sign-in');
    assert.equal((await listKeys(service.db, developerId))[0]?.revokedAt, null);
  });

  it('the events page shows what happened to a key and who did it', async () => {
    const { prefix } = await newKey();
    await visitor.post(`/settings/keys/${prefix}/revoke`);
    const { text } = await visitor.get('/settings/events');
    const rows = [...text.matchAll(/<tr>(.*?)<\/tr>/g)].map(([, row = '']) => row.replace(/<[^>]+>/g, '|'));
    const shown = rows.filter((row) => row.includes(prefix)).map((row) => row.split('|').filter((cell) => cell !== ''));
    assert.deepEqual(
      shown.map((cells) => cells.slice(0, 3)),
      [
        ['Key revoked', prefix, 'You'],
        ['Key created on the free plan', prefix, 'You'],
      ],
    );
  });
});

describe('the pages that change keys, beside Redis', () => {
  const world = testWorld({ redis: true, service: true });
  let direct: Redis;
  let developerId: number;
  let visitor: Visitor;

  before(async () => {
    direct = new Redis(world.redis.url);
    direct.on('error', () => undefined);
    world.defer(() => direct.disconnect());
    developerId = await world.newDeveloper();
    visitor = await signIn(world.service, developerId);
  });

  const newKey = (): Promise<CreatedKey> => world.newKey({ developerId, planId: 'free' });
  const revoke = (prefix: string): Promise<Reply> => visitor.post(`/settings/keys/${prefix}/revoke`);
  const roll = (prefix: string): Promise<Reply> =>
    visitor.post(`/settings/keys/${prefix}/roll`, { form: newForm(), overlap: 'now' });
  const find = (key: string): Promise<Reply> => visitor.post('/revoke-leaked-key', { key });

  it('a change of a key renews the epoch after its commit and not before, and nothing else does', async () => {
    const [first, second, third] = [await newKey(), await newKey(), await newKey()];
    for (const act of [() => revoke(first.prefix), () => roll(second.prefix), () => find(third.key)]) {
      await direct.set(EPOCH_KEY, 'before');
      const held = await holdCommits(world.db, 'api_keys', 'catalog serve');
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
    // Otherwise anybody could make all servers read all keys anew, again and again.
    const epoch = await direct.get(EPOCH_KEY);
    const create = (): Promise<Reply> => visitor.post(NEW, { form: newForm(), lifetime: 'none' });
    for (const act of [() => revoke(first.prefix), () => find(third.key), create]) {
      assert.ok((await act()).status < 400);
      assert.equal(await direct.get(EPOCH_KEY), epoch);
    }
  });

  for (const [what, pathFor] of [
    ['a new key', () => 'new'],
    ['a revoked key', (prefix) => `${prefix}/revoke`],
  ] as readonly (readonly [string, (prefix: string) => string])[]) {
    it(`a server on a replaced primary does not confirm ${what}`, async () => {
      await direct.flushall();
      const service = await world.startService();
      const { prefix } = await newKey();
      await revokeKey(world.db, prefix);
      const there = await signIn(service, developerId);
      // As a server on the next primary publishes it.
      await direct.set(EPOCH_KEY, ((await direct.get(EPOCH_KEY)) ?? '').replace('/1/', '/2/'));
      const { status } = await there.post(`/settings/keys/${pathFor(prefix)}`, { form: newForm(), lifetime: 'none' });
      assert.equal(status, 503);
      await service.stop();
    });
  }

  it('each page that revokes or rolls a key says "within moments" while Redis is down', async () => {
    const [first, second, third] = [await newKey(), await newKey(), await newKey()];
    await direct.flushall();
    await world.redis.kill();
    const revoked = async (): Promise<string> => {
      const { headers } = await revoke(first.prefix);
      return (await visitor.get(headers.location ?? '')).text;
    };
    assert.ok((await revoked()).includes('will fail within moments.'));
    assert.match((await roll(second.prefix)).text, /which\s+stops working within moments\./);
    assert.ok((await find(third.key)).text.includes('fails within moments.'));
    // A second attempt says nothing about the moment.
    assert.ok((await find(third.key)).text.includes('This key was already revoked.'));
    assert.ok((await revoked()).includes('was already revoked.'));
  });
});

/** The token of a form that was never sent. */
function newForm(): string {
  return randomBytes(32).toString('hex');
}
