import assert from 'node:assert/strict';
import { Redis } from 'ioredis';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { generateToken } from '../../../src/accounts/tokens.js';
import { TIMELINE_KEY } from '../../../src/admission/versions.js';
import { suspendDeveloper } from '../../../src/developers/developers.js';
import { setKeyPlan } from '../../../src/keys/edit-key.js';
import { MOST_DAYS } from '../../../src/keys/expiry.js';
import { MAX_ACTIVE_KEYS } from '../../../src/keys/key-change.js';
import { createKey, listKeys, type CreatedKey, type KeyDetails } from '../../../src/keys/keys.js';
import { revokeKey } from '../../../src/keys/revoke.js';
import { setPlan } from '../../../src/limits/plans.js';
import { rollKey } from '../../../src/keys/roll-key.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { addKeys } from '../../support/keys/many-keys.js';
import { addUsage } from '../../support/keys/usage.js';
import { signIn, Visitor } from '../../support/http/visitor.js';
import { expireIn } from '../../support/keys/expiry.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { testWorld } from '../../support/world.js';
import { settingsPages } from '../pages.js';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;
const LIST = '/settings/keys';
const NEW = `${LIST}/new`;
const ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

/** The token of a form that was never sent. */
const newForm = (): string => generateToken().token;

const pathOf = ({ prefix }: Pick<CreatedKey, 'prefix'>, act = ''): string => `${LIST}/${prefix}${act}`;

/** The forms that change keys: where each is sent, and what it has been filled in with. */
const FORMS = {
  create: { pathOf: () => NEW, fields: { lifetime: 'none' } },
  roll: { pathOf: (key: CreatedKey) => pathOf(key, '/roll'), fields: { overlap: '24h' } },
  label: { pathOf: (key: CreatedKey) => pathOf(key, '/label'), fields: { label: 'x' } },
  expiry: { pathOf: (key: CreatedKey) => pathOf(key, '/expiry'), fields: { lifetime: '30' } },
  'expiry without end': { pathOf: (key: CreatedKey) => pathOf(key, '/expiry'), fields: { lifetime: 'none' } },
  revoke: { pathOf: (key: CreatedKey) => pathOf(key, '/revoke'), fields: {} },
} as const;

type FormName = keyof typeof FORMS;

/** The answer to forms that the rules of keys refuse. The rules, and what each of them refuses, are tested in test/keys. */
interface Refusal {
  /** Makes the rule apply to a key of the developer. */
  readonly arrange: (service: TestService, key: CreatedKey) => Promise<unknown>;
  readonly forms: readonly FormName[];
  readonly status?: number;
  readonly text: RegExp;
  /** Whether the page of the form has the reason in place of the form. */
  readonly isShownBefore?: true;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  unknown: {
    arrange: async ({ db }, { prefix }) =>
      db('api_keys')
        .where({ prefix })
        .update({ developer_id: db('developers').min('id') }),
    forms: ['roll', 'label', 'expiry', 'revoke'],
    status: 404,
    text: /You have no key with this prefix/,
    isShownBefore: true,
  },
  suspended: {
    arrange: ({ db }, { developerId }) => suspendDeveloper(db, developerId),
    forms: ['create', 'roll', 'label', 'expiry', 'revoke'],
    status: 403,
    text: /<title>Account suspended.*Contact your administrator/s,
    isShownBefore: true,
  },
  revoked: {
    arrange: ({ db }, { prefix }) => revokeKey(db, prefix),
    forms: ['roll', 'label', 'expiry'],
    text: /This key is revoked\. <a href="\/settings\/keys\/new">Create a new key</,
    isShownBefore: true,
  },
  rolled: {
    arrange: ({ db }, { prefix }) => rollKey(db, prefix, 3_600),
    forms: ['roll', 'expiry without end'],
    text: /This key was already replaced by <code>svc_\w{8}<\/code>.*href="\/settings\/keys\/svc_\w{8}\/roll"/s,
  },
  too_many: {
    arrange: async ({ db }, { developerId }) => {
      for (let i = 1; i < MAX_ACTIVE_KEYS; i += 1) await createKey(db, { developerId, planId: 'free' });
    },
    forms: ['create'],
    text: /You have reached the limit of 20 active keys/,
  },
};

describe('the pages of keys', () => {
  let service: TestService;
  let developerId: number;
  let visitor: Visitor;

  before(async () => (service = await startService()));
  after(() => service.stop());

  beforeEach(async () => {
    developerId = await newDeveloper(service.db);
    visitor = await signIn(service, developerId);
  });

  const newKey = (details: Partial<KeyDetails> = {}): Promise<CreatedKey> =>
    createKey(service.db, { developerId, planId: 'free', ...details });

  const create = (fields: Record<string, string> = {}): Promise<Reply> =>
    visitor.post(NEW, { form: newForm(), lifetime: 'none', ...fields });

  const roll = (key: Pick<CreatedKey, 'prefix'>, overlap: string, form = newForm()): Promise<Reply> =>
    visitor.post(pathOf(key, '/roll'), { form, overlap });

  const htmlOf = async (path: string): Promise<string> => {
    const { status, text } = await visitor.get(path);
    assert.equal(status, 200, path);
    return text;
  };

  /** The text of a page, without what is only seen on hovering. */
  function textOf(html: string): string {
    const main = /<main.*<\/main>/s.exec(html)?.[0] ?? assert.fail('no main');
    return main.replaceAll(/<(?:"[^"]*"|[^">])*>/g, ' ').replaceAll(/\s+/g, ' ');
  }

  const read = async (path: string): Promise<string> => textOf(await htmlOf(path));

  async function makeSignInOld(): Promise<void> {
    const signedInAt = service.db.raw("now() - interval '16 minutes'");
    await service.db('sessions').where({ developer_id: developerId }).update({ signed_in_at: signedInAt });
  }

  it('a new key is shown once, by the answer to its form, with a first call without the key itself', async () => {
    const form = /name="form" value="([0-9a-f]{64})"/.exec(await htmlOf(NEW))?.[1] ?? assert.fail('no form');
    // Whatever the form names, the plan is that of the developer.
    const fields = { form, label: 'production', lifetime: '90', plan_id: 'scale', developer_id: '1' };
    const reply = await create(fields);
    const key = KEY.exec(reply.text)?.[0] ?? assert.fail('no key is shown');
    assert.equal(reply.headers['cache-control'], 'no-store');
    assert.equal(reply.text.split(key).length, 2);
    assert.ok(
      reply.text.includes('read -rs CATALOG_API_KEY') && reply.text.includes(`${service.publicUrl}/api/v1/stats`),
    );
    const again = await create(fields);
    assert.equal(again.status, 409);
    assert.doesNotMatch(again.text, KEY);
    assert.ok(again.text.includes(`href="/settings/keys/${key.slice(0, 12)}/roll"`));
    for (const path of settingsPages(key.slice(0, 12))) assert.doesNotMatch((await visitor.get(path)).text, KEY, path);
    const [record, ...others] = await listKeys(service.db, developerId);
    assert.deepEqual([record?.label, record?.planId, others], ['production', 'free', []]);
    assert.equal(Date.parse(record?.expiresAt ?? '') - Date.parse(record?.createdAt ?? ''), 90 * 86_400_000);
    assert.ok(!service.logged.some((line) => line.includes(key.slice(13))));
  });

  it('a form with a mistake is shown again with its error, and changes nothing', async () => {
    const key = await newKey({ label: 'staging' });
    const dates = ['2020-01-01', '2100-02-30', 'soon', '9999-12-31'];
    const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    const labels = ['x'.repeat(201), 'a\nb', 'a\u0000b', 'a\u202Eb', 'a\u2069b'];
    for (const [forms, message] of [
      [
        dates.map((date) => ({ lifetime: 'date', date, label: 'kept' })),
        `Enter a date from ${inDays(1)} to ${inDays(MOST_DAYS)}.`,
      ],
      [[{ lifetime: 'date', date: '', label: 'kept' }], '<a href="#date">Enter an expiry date.</a>'],
      [[{ lifetime: '30', date: '2100-02-28', label: 'kept' }], 'To use this date, choose “Custom date”.'],
      [labels.map((label) => ({ lifetime: '365', date: '', label })), 'Labels can have up to 200 characters'],
      [
        [{ lifetime: '365', date: '', label: key.key }],
        'This looks like an API key. Labels are not secret: use a name.',
      ],
    ] as const) {
      for (const fields of forms) {
        const { status, text } = await create(fields);
        assert.equal(status, 422, JSON.stringify(fields));
        assert.ok(text.includes(message) && text.includes('aria-invalid="true"') && !text.includes(key.key), text);
        assert.ok(fields.label !== 'kept' || text.includes('value="kept"'));
        assert.ok(text.includes(`value="${fields.lifetime}" selected`));
        const act = fields.label === 'kept' ? '/expiry' : '/label';
        const edited = await visitor.post(pathOf(key, act), fields);
        assert.equal(edited.status, 422, act);
        assert.ok(/<title>Error: .*role="alert"/s.test(edited.text) && edited.text.includes(message), act);
      }
    }
    const [{ label, expiresAt } = assert.fail(), ...others] = await listKeys(service.db, developerId);
    assert.deepEqual([label, expiresAt, others], ['staging', null, []]);
  });

  it('a form that no browser sends is refused and changes nothing', async () => {
    const key = await newKey();
    for (const lifetime of ['zzz', '', '31']) assert.equal((await create({ lifetime })).status, 400, lifetime);
    for (const form of ['', 'x', 'F'.repeat(64)]) assert.equal((await create({ form })).status, 400, form);
    for (const overlap of ['', '2h', '365d', '-1']) assert.equal((await roll(key, overlap)).status, 400, overlap);
    assert.equal((await visitor.post(pathOf(key, '/expiry'), { lifetime: '1' })).status, 400);
    for (const act of ['roll', 'revoke']) {
      const { status } = await visitor.post(`${LIST}/svc_XXXXXXXX%00/${act}`, { form: newForm(), overlap: 'now' });
      assert.equal(status, 404, act);
    }
    assert.equal((await listKeys(service.db, developerId)).length, 1);
  });

  for (const [reason, { arrange, forms, status = 409, text, isShownBefore }] of Object.entries(REFUSALS)) {
    it(`a change of a key that is refused as "${reason}" is answered with the reason, and changes nothing`, async () => {
      const key = await newKey();
      await arrange(service, key);
      const rows = (): Promise<unknown> => service.db('api_keys').orderBy('id');
      const before = await rows();
      for (const form of forms) {
        const path = FORMS[form].pathOf(key);
        const refused = await visitor.post(path, { form: newForm(), ...FORMS[form].fields });
        assert.equal(refused.status, status, form);
        assert.match(refused.text, text, form);
        assert.doesNotMatch(refused.text, KEY);
        assert.ok(refused.text.includes('Nothing was changed') || status === 404);
        if (isShownBefore === undefined) continue;
        const page = await visitor.get(path);
        assert.equal(page.status, status, form);
        assert.match(page.text, text, form);
        assert.ok(!page.text.includes('<form class="form"') && !page.text.includes('Nothing was changed'), form);
      }
      assert.deepEqual(await rows(), before);
    });
  }

  it('a label is shown as text and cannot turn the direction of the text around it', async () => {
    const key = await newKey({ label: `${ATTACK} מפתח \u202Eno\u2069` });
    for (const path of settingsPages(key.prefix)) {
      const { status, text } = await visitor.get(path);
      if (status !== 200) continue;
      // Where an element can stand, it isolates a name; elsewhere two characters do.
      const content = text.replaceAll(/<(title|option)\b.*?<\/\1>/gs, '').replaceAll(/<(?:"[^"]*"|[^">])*>/g, '');
      assert.doesNotMatch(content, /[\u2066-\u2069]/, path);
      assert.match(text, /<title>[^<]* · \u2068Test project\u2069 · Catalog Lookup Service<\/title>/, path);
      assert.ok(!text.includes('<script>alert'), path);
    }
    for (const path of [LIST, pathOf(key), pathOf(key, '/roll'), pathOf(key, '/revoke')]) {
      assert.match(await htmlOf(path), /<bdi>[^<]*&lt;script>alert\(1\)[^<]*מפתח \uFFFDno\uFFFD<\/bdi>/, path);
    }
    assert.ok((await create({ label: 'מפתח' })).text.includes('Your key (<bdi>מפתח</bdi>)'));
  });

  it('a key that is rolled expires after the overlap that was chosen, and its successor is shown once', async () => {
    for (const [overlap, seconds] of [
      ['now', 0],
      ['1h', 3_600],
      ['24h', 86_400],
      ['7d', 604_800],
    ] as const) {
      const old = await newKey({ label: 'ci' });
      const form = newForm();
      const [successor = assert.fail('no key is shown')] = KEY.exec((await roll(old, overlap, form)).text) ?? [];
      const records = await listKeys(service.db, developerId);
      const [before, after] = [old.key, successor].map((key) => records.find(({ prefix }) => key.startsWith(prefix)));
      assert.equal(Date.parse(before?.expiresAt ?? '') - Date.parse(after?.createdAt ?? ''), seconds * 1_000);
      assert.doesNotMatch((await roll(old, overlap, form)).text, KEY);
    }
    const ending = await newKey();
    await expireIn(service.db, ending.prefix, 2 * 3_600_000);
    const options = (await htmlOf(pathOf(ending, '/roll'))).match(/type="radio".*?<\/label>/gs) ?? [];
    assert.deepEqual(
      options.map((option) => option.includes('expires sooner')),
      [false, false, true, true],
    );
  });

  it('a key is revoked after a question that names its last use, and its page confirms it once', async () => {
    const { prefix } = await newKey();
    const path = `${LIST}/${prefix}/revoke`;
    assert.ok((await htmlOf(path)).includes('has never been used.'));
    await service.db('api_keys').where({ prefix }).update({ last_used_at: '2026-01-02T03:04:05Z' });
    assert.match(await read(path), / immediately\. It was last used .*2026-01-02 03:04 UTC/);
    await service.db('api_keys').where({ prefix }).update({ last_used_at: service.db.fn.now() });
    assert.match(await read(path), /Revoke svc_\w+ Warning: it was used just now/);
    // Revoking needs no recent sign-in.
    await makeSignInOld();
    const { status, headers } = await visitor.post(path);
    assert.deepEqual([status, headers.location], [303, `${LIST}/${prefix}`]);
    const said = 'This key has been revoked. Requests with it now fail.';
    assert.ok((await htmlOf(`${LIST}/${prefix}`)).includes(said));
    assert.ok(!(await htmlOf(`${LIST}/${prefix}`)).includes(said));
    assert.match(await read('/settings/events'), new RegExp(`Key revoked ${prefix} You .* Key created .* ${prefix} `));
  });

  it('a key has its state on the list and on its page, and only an active one can be changed or has a first call', async () => {
    const { db } = service;
    const [active, revoked, expired] = [await newKey(), await newKey(), await newKey()];
    const [ended, rolled] = [await newKey({ label: 'four' }), await newKey({ label: 'five' })];
    await revokeKey(db, revoked.prefix);
    await expireIn(db, expired.prefix, 0);
    const { successor } = await rollKey(db, ended.prefix, 0);
    const { successor: second } = await rollKey(db, rolled.prefix, 3_600);
    const states = [
      [active, [' Active ']],
      [revoked, [' Revoked ']],
      [expired, [' Expired ']],
      [ended, [' Replaced ', ` Replaced by ${successor.prefix} \\( four \\)`]],
      [rolled, [' Active until \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC ', ` Replaced by ${second.prefix} \\( five \\)`]],
    ] as const;
    const list = await read(LIST);
    for (const [key, texts] of states) {
      const page = await htmlOf(pathOf(key));
      for (const text of texts) {
        assert.match(textOf(page), new RegExp(text));
        assert.match(list.slice(list.indexOf(key.prefix)), new RegExp(text));
      }
      assert.equal(page.includes(`href="${pathOf(key)}/`), [active, rolled].includes(key), 'it can be changed');
      assert.equal(page.includes('Make your first call'), key === active);
    }
    assert.match(await read(pathOf(successor)), new RegExp(` Replaces ${ended.prefix} `));
    assert.match(list, / 3 of 20 keys in use \(1 more being rolled\) /);
    await suspendDeveloper(db, developerId);
    const suspended = await read(LIST);
    assert.doesNotMatch(suspended, / Active (?!keys)|Create a key/);
    assert.equal(suspended.split(' Suspended ').length, 5);
    for (const key of [ended, revoked]) assert.ok(!(await read(pathOf(key))).includes(' Suspended '));
    assert.doesNotMatch(await htmlOf(pathOf(active)), new RegExp(`href="${pathOf(active)}/|Make your first call`));
  });

  it('a whole key is not accepted as a filter, and is not shown again', async () => {
    const { key, prefix } = await newKey();
    assert.ok(!(await htmlOf(`${NEW}?label=${key}`)).includes(key));
    const failures = '/settings/usage/failed';
    for (const [address, location] of [
      [`${LIST}?q=%20${key}`, `${LIST}?q=${prefix}`],
      [`${LIST}?q=${key.slice(prefix.length + 1)}`, LIST],
      [`${failures}?hour=&request=${key}`, `${failures}?hour=&key=${prefix}`],
    ] as const) {
      const { status, headers } = await visitor.get(address);
      assert.deepEqual([status, headers.location], [303, location]);
    }
  });

  it('a list of more than a handful of keys has a filter', async () => {
    assert.ok(!(await htmlOf(LIST)).includes('id="filter"'));
    await addKeys(service.db, developerId, 50_000, 50_059, 'null');
    assert.ok((await htmlOf(LIST)).includes('id="filter"'));
    // PostgreSQL stores no NUL.
    assert.match(await read(`${LIST}?q=%00`), /No key has “ \uFFFD ” in its label or prefix/);
    const none = await read(`${LIST}?q=%3Cb%3E+nothing`);
    assert.match(none, /No key has “ &lt;b> nothing ” in its label or prefix\. Show all keys/);
  });

  it('pages show the name of a plan, also where a record has only its id', async () => {
    const { db } = service;
    const plan = { name: 'Partners & friends', requestsPerMinute: 5, requestsPerDay: 9, commercialUse: true };
    await setPlan(db, 'partner', plan);
    const key = await newKey({ planId: 'partner' });
    await setKeyPlan(db, key.prefix, 'pro');
    const page = await read(pathOf(key));
    assert.match(page, / Plan Pro Created /);
    assert.match(page, / Plan changed from Partners &amp; friends to Pro /);
    assert.match(page, / Key created on the Partners &amp; friends plan /);
    assert.match(await read(LIST), new RegExp(` ${key.prefix} .*? Pro Roll Revoke `));
    const { text } = await visitor.post(NEW, { form: newForm(), lifetime: 'none' });
    assert.match(text, /The key is on the Free plan/);
  });

  it('the page of a key has its facts, its usage, its events alone, and a first call until it was used', async () => {
    const [key, other] = [await newKey({ label: 'production' }), await newKey()];
    const { db } = service;
    // More than a day ago, since what the script polls has the latest.
    await addUsage(db, key.prefix, 25, { successful: 1_100, clientErrors: 100, rateLimited: 30, serverErrors: 4 });
    const page = await read(pathOf(key));
    assert.match(page, /Requests 1,234 Success rate 89.1% Client errors 100 Rate limited 30 Server errors 4/);
    assert.match(page, /Plan Free Created just now .* Expires Never .* Last used Never/);
    assert.ok(page.includes('Key created on the Free plan') && !page.includes(other.prefix));
    assert.ok(page.includes('Make your first call') && page.includes(`${key.prefix}_…`));
    const text = await htmlOf(pathOf(key));
    for (const link of [
      `/settings/usage?key=${key.prefix}`,
      ...['/label', '/expiry', '/roll', '/revoke'].map((act) => pathOf(key, act)),
    ]) {
      assert.ok(text.includes(`href="${link}"`), link);
    }
    assert.match(await read(pathOf(other)), /Requests in the last 30 days None\./);
    // What the script polls, and a link to the same without it.
    const wait = pathOf(key, '/first-request.txt');
    assert.ok(text.includes(`data-wait="${wait}"`) && text.includes(`<a href="${pathOf(key)}">Check now</a>`), text);
    assert.equal((await visitor.get(wait)).status, 204);
    await db('api_keys').where({ prefix: key.prefix }).update({ last_used_at: db.fn.now() });
    for (const [operation, outcome, text] of [
      ['', 'not_found', 'a request to a path that does not exist, which failed: not_found.'],
      ['getStats', 'success', 'a request to getStats, successful.'],
    ] as const) {
      await addUsage(db, key.prefix, 0, { [outcome]: operation === '' ? 1 : 2 }, operation);
      const received = await visitor.get(wait);
      assert.deepEqual([received.status, received.text], [200, `Received: ${text}`]);
    }
    const stranger = await signIn(service, await newDeveloper(db));
    assert.equal((await stranger.get(wait)).status, 404);
    assert.ok(!(await read(pathOf(key))).includes('Make your first call'));
  });

  it('a label is changed and removed by any session, and the change is an event of the developer', async () => {
    const key = await newKey({ label: 'production' });
    await makeSignInOld();
    assert.ok((await htmlOf(pathOf(key, '/label'))).includes('value="production"'));
    for (const [label, event] of [
      ['production, EU', 'Label changed to production, EU'],
      ['', 'Label removed'],
    ] as const) {
      const { status, headers } = await visitor.post(pathOf(key, '/label'), { label });
      assert.deepEqual([status, headers.location], [303, pathOf(key)]);
      const page = await read(pathOf(key));
      assert.ok(page.includes('The label has been changed.'));
      assert.match(page, new RegExp(`${event} +You `));
      assert.equal((await listKeys(service.db, developerId))[0]?.label, label === '' ? null : label);
    }
  });

  it('an expiry is changed, kept and removed', async () => {
    const key = await newKey();
    for (const [fields, said, expiry] of [
      [{ lifetime: 'date', date: '2100-02-28' }, 'The expiry has been changed.', /^2100-02-28T00:00/],
      [{ lifetime: 'keep' }, 'No changes were made.', /^2100-02-28T00:00/],
      [{ lifetime: '30', date: '' }, 'The expiry has been changed.', /^20/],
      [{ lifetime: 'none' }, 'The expiry has been changed.', /^null$/],
    ] as const) {
      const { headers } = await visitor.post(pathOf(key, '/expiry'), fields);
      assert.equal(headers.location, pathOf(key));
      assert.ok((await read(pathOf(key))).includes(said), said);
      assert.match(String((await listKeys(service.db, developerId))[0]?.expiresAt), expiry);
      if (fields.lifetime !== 'date') continue;
      const kept = /<option value="keep" selected>Keep: 2100-02-28 00:00 UTC</;
      assert.match(await htmlOf(pathOf(key, '/expiry')), kept);
    }
  });

  it('creating and rolling keys and changing an expiry need a sign-in of the last 15 minutes, which leads back to the form', async () => {
    const key = await newKey();
    const need = /<a href="\/sign-in">Sign in again<\/a> to create or roll a key/;
    assert.doesNotMatch(await htmlOf(LIST), need);
    await makeSignInOld();
    assert.match(await htmlOf(LIST), need);
    for (const name of ['create', 'expiry', 'roll'] as const) {
      const path = FORMS[name].pathOf(key);
      for (const reply of [
        await visitor.get(path),
        await visitor.post(path, { form: newForm(), ...FORMS[name].fields }),
      ]) {
        assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-in'], path);
      }
    }
    const [{ expiresAt, successor } = assert.fail(), ...others] = await listKeys(service.db, developerId);
    assert.deepEqual([expiresAt, successor, others], [null, null, []]);
    assert.ok((await htmlOf('/sign-in')).includes('Your form was not processed, and nothing was changed.'));
    const token = await createSignInLink(service.db, developerId);
    const { headers } = await visitor.post('/sign-in/link', { token });
    assert.equal(headers.location, `${pathOf(key, '/roll')}?overlap=24h`);
  });

  it('a visitor who is not signed in is redirected to sign-in by every page of the settings', async () => {
    const key = await newKey();
    const stranger = new Visitor(service.url);
    for (const path of settingsPages(key.prefix)) {
      assert.equal((await stranger.get(path)).headers.location, '/sign-in', path);
    }
    assert.equal((await stranger.post(pathOf(key, '/revoke'))).headers.location, '/sign-in');
    assert.equal((await listKeys(service.db, developerId))[0]?.revokedAt, null);
  });

  it('a form begins with the values of its address, if a form can have them, and proposes 90 days', async () => {
    const key = await newKey();
    for (const [address, shown] of [
      [NEW, /value="90" selected/],
      [
        `${NEW}?label=a%22b+%2B&lifetime=date&date=2100-02-28`,
        /value="a&quot;b \+".*value="date" selected.*value="2100-02-28"/s,
      ],
      [
        `${NEW}?lifetime=1&date=%22%3E&form=${'f'.repeat(64)}`,
        /value="90" selected.*<input[^>]* id="date"(?:(?!&quot;)[^>])*>/s,
      ],
      [pathOf(key, '/roll?overlap=7d'), /value="7d" checked/],
    ] as const) {
      const text = await htmlOf(address);
      assert.match(text, shown, address);
      assert.ok(!text.includes('f'.repeat(64)), address);
    }
  });
});

describe('the pages that change keys, beside Redis', () => {
  // The service does not read the timeline that a test publishes for another server.
  const world = testWorld({ redis: true, service: { timelineIntervalMs: 2 ** 30 } });

  it('a server on a replaced primary confirms neither a new nor a revoked key', async () => {
    const direct = new Redis(world.redis.url);
    world.defer(() => direct.disconnect());
    const developerId = await world.newDeveloper();
    const revoked = await world.newKey({ developerId, planId: 'free' });
    await revokeKey(world.db, revoked.prefix);
    const visitor = await signIn(world.service, developerId);
    // As a server on the next primary publishes it.
    await direct.set(TIMELINE_KEY, ((await direct.get(TIMELINE_KEY)) ?? '').replace('/1', '/2'));
    for (const path of [NEW, pathOf(revoked, '/revoke')]) {
      assert.equal((await visitor.post(path, { form: newForm(), lifetime: 'none' })).status, 503, path);
    }
  });
});
