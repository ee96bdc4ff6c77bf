import assert from 'node:assert/strict';
import { createSignInLink } from '../../../src/accounts/sign-in-links.js';
import { suspendDeveloper } from '../../../src/developers/developers.js';
import { MAX_EDITS_PER_DAY } from '../../../src/keys/edit-key.js';
import { createKey, findKeyOf, type CreatedKey, type KeyDetails } from '../../../src/keys/keys.js';
import { revokeKey } from '../../../src/keys/revoke.js';
import { rollKey } from '../../../src/keys/roll-key.js';
import { newDeveloper, signIn, type Visitor } from '../../support/http/visitor.js';
import { expireIn } from '../../support/keys/expiry.js';
import type { Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';

const LIST = '/settings/keys';
const NEW = '/settings/keys/new';

describe('the list of keys and the page of a key', () => {
  let service: TestService;
  let developerId: number;
  let visitor: Visitor;

  before(async () => (service = await startService()));
  after(() => service.stop());

  beforeEach(async () => {
    developerId = await newDeveloper(service);
    visitor = await signIn(service, developerId);
  });

  const newKey = (details: Partial<KeyDetails> = {}): Promise<CreatedKey> =>
    createKey(service.db, { developerId, planId: 'free', ...details });

  /** The text of a page, without what is only seen on hovering. */
  async function read(path: string): Promise<string> {
    const { status, text } = await visitor.get(path);
    assert.equal(status, 200, path);
    const main = /<main.*<\/main>/s.exec(text)?.[0] ?? assert.fail('no main');
    return main.replaceAll(/<(?:"[^"]*"|[^">])*>/g, ' ').replaceAll(/\s+/g, ' ');
  }

  const path = ({ prefix }: { prefix: string }, act = ''): string => `${LIST}/${prefix}${act}`;

  /** Sends the form of a page that GET shows, with some values changed. */
  async function submit(page: string, fields: Record<string, string>): Promise<Reply> {
    const { text } = await visitor.get(page);
    const form = /name="form" value="([0-9a-f]{64})"/.exec(text)?.[1] ?? '';
    return visitor.post(page, { form, ...fields });
  }

  async function makeSignInOld(): Promise<void> {
    const signedInAt = service.db.raw("now() - interval '16 minutes'");
    await service.db('sessions').where({ developer_id: developerId }).update({ signed_in_at: signedInAt });
  }

  it('a developer who has edited keys as often as a day allows reads why, and nothing is changed', async () => {
    const key = await newKey({ label: 'staging' });
    await service.db('events').insert(
      Array.from({ length: MAX_EDITS_PER_DAY }, () => {
        return { developer_id: developerId, kind: 'label_changed', actor: 'developer', key_prefix: key.prefix };
      }),
    );
    for (const [act, fields] of [
      ['/label', { label: 'production' }],
      ['/expiry', { lifetime: '30', date: '' }],
    ] as const) {
      const { status, text } = await visitor.post(path(key, act), fields);
      assert.equal(status, 409, act);
      assert.match(
        text,
        /<title>Error: Nothing was changed .*limit of 200 changes of labels and expiries in 24 hours/s,
      );
    }
    const { label, expiresAt } = (await findKeyOf(service.db, developerId, key.prefix)) ?? assert.fail();
    assert.deepEqual([label, expiresAt], ['staging', null]);
  });

  it('a key has one of the states Active, Suspended, Expired, Revoked and Replaced on the list and on its page', async () => {
    const states: [CreatedKey, RegExp][] = [];
    const add = async (state: RegExp, label: string): Promise<CreatedKey> => {
      const key = await newKey({ label });
      states.push([key, state]);
      return key;
    };
    await add(/ Active /, 'one');
    const revoked = await add(/ Revoked /, 'two');
    const expired = await add(/ Expired /, 'three');
    const ended = await newKey({ label: 'four' });
    const rolled = await newKey({ label: 'five' });
    await revokeKey(service.db, revoked.prefix);
    await expireIn(service.db, expired.prefix, 0);
    const successor = (await rollKey(service.db, ended.prefix, 0)).successor;
    const second = (await rollKey(service.db, rolled.prefix, 3_600)).successor;
    states.push([ended, new RegExp(` Replaced by ${successor.prefix} \\( four \\)`)]);
    states.push([rolled, new RegExp(` Active until \\d\\d:\\d\\d UTC Replaced by ${second.prefix} \\( five \\)`)]);
    const list = await read(LIST);
    for (const [key, state] of states) {
      const page = await read(path(key));
      assert.match(page, state);
      assert.match(list.slice(list.indexOf(key.prefix)), state);
    }
    assert.ok(!(await read(path(ended))).includes('Expired'), 'its owner has ended it');
    assert.match((await visitor.get(LIST)).text, new RegExp(`by <a[^>]* href="${path(successor)}"`));
    await suspendDeveloper(service.db, developerId);
    const suspended = await read(LIST);
    assert.doesNotMatch(suspended, / Active (?!keys)/);
    assert.equal(suspended.split(' Suspended ').length, 5);
    for (const { prefix } of [ended, revoked]) assert.ok(!(await read(`${LIST}/${prefix}`)).includes(' Suspended '));
  });

  it('the list counts the keys that were rolled and are still active apart from the limit of active keys', async () => {
    const [first, second] = [await newKey(), await newKey()];
    assert.match(await read(LIST), / 2 of 20 active keys (?!,)/);
    await rollKey(service.db, first.prefix, 3_600);
    await rollKey(service.db, second.prefix, 7 * 86_400);
    const list = await read(LIST);
    assert.match(list, / 2 of 20 active keys, and 2 rolled /);
    assert.match(list, / Active until \d\d:\d\d UTC .* Active until \d{4}-\d\d-\d\d |Active until \d{4}-/);
  });

  it('the page of a successor names the key that it replaces, and leads to revoking it while it is active', async () => {
    const key = await newKey({ label: 'production' });
    const { successor } = await rollKey(service.db, key.prefix, 3_600);
    const page = async (): Promise<string> => read(path(successor));
    const revokes = async (): Promise<boolean> =>
      (await visitor.get(path(successor))).text.includes(`href="${path(key, '/revoke')}"`);
    assert.match(await page(), new RegExp(`Replaces ${key.prefix} active until \\d{4}-\\S+ \\d\\d:\\d\\d UTC`));
    assert.ok(await revokes());
    await expireIn(service.db, key.prefix, 0);
    assert.match(await page(), new RegExp(`Replaces ${key.prefix} ended \\d{4}-`));
    assert.ok(!(await revokes()));
    await revokeKey(service.db, key.prefix);
    assert.match(await page(), new RegExp(`Replaces ${key.prefix} revoked \\d{4}-`));
    assert.ok(!(await revokes()));
    assert.ok(!(await read(path(key))).includes('Replaces '));
  });

  it('the list is filtered by a part of a label or a prefix, which its pages keep', async () => {
    assert.ok(!(await visitor.get(LIST)).text.includes('id="filter"'));
    const [production, other] = [await newKey({ label: 'Production 100% & more' }), await newKey({ label: 'staging' })];
    for (let i = 0; i < 4; i += 1) await newKey();
    assert.ok((await visitor.get(LIST)).text.includes('id="filter"'));
    for (const q of ['PRODUCTION', '100%25+%26', production.prefix, production.prefix.slice(4).toUpperCase()]) {
      const page = await read(`${LIST}?q=${q}`);
      assert.ok(page.includes(production.prefix) && !page.includes(other.prefix), q);
    }
    // A pattern of LIKE or of regular expressions is text.
    for (const q of ['%25', '_', '.*']) {
      const page = await read(`${LIST}?q=${q}`);
      assert.equal(page.includes(other.prefix), q === '_', q);
    }
    // PostgreSQL stores no NUL.
    assert.match(await read(`${LIST}?q=%00`), /No key has “ \uFFFD ” in its label or prefix/);
    const none = await read(`${LIST}?q=%3Cb%3E+nothing`);
    assert.match(none, /No key has “ &lt;b> nothing ” in its label or prefix\. Show all keys/);
    await service.db.raw(
      `insert into api_keys (prefix, hash, developer_id, plan_id, label)
       select 'svc_' || substr(md5(:id || '-' || n), 1, 8), sha256((:id || '/' || n)::bytea), :id, 'free', 'many keys'
         from generate_series(1, 60) n`,
      { id: developerId },
    );
    const { text } = await visitor.get(`${LIST}?q=many+keys`);
    const next = /<a href="([^"]*)" rel="next">/.exec(text)?.[1] ?? assert.fail('no next page');
    const second = await read(next.replaceAll('&amp;', '&'));
    assert.equal(second.split(' many keys ').length - 1, 10);
  });

  it('the page of a key leads back to the list as it was filtered, and to no other address', async () => {
    const key = await newKey();
    for (const [referer, back] of [
      [`${service.url}${LIST}?q=eu+%26+us&page=2`, `href="${LIST}?q=eu%20%26%20us&amp;page=2">Filtered keys</a>`],
      [`${service.url}${LIST}?page=2`, `href="${LIST}?page=2">All keys</a>`],
      [`${service.url}/settings?q=x`, `href="${LIST}">All keys</a>`],
      [`https://evil.example${LIST}?q=x`, `href="${LIST}">All keys</a>`],
      ['evil', `href="${LIST}">All keys</a>`],
    ] as const) {
      const { text } = await visitor.get(path(key), { referer });
      assert.ok(text.includes(back), `${referer} ${text}`);
    }
  });

  it('the page of a key has its facts, its usage and its events alone', async () => {
    const [key, other] = [await newKey({ label: 'production' }), await newKey()];
    await service.db.raw(
      `insert into api_key_usage (key_id, hour, served, refused, failed)
       select id, date_trunc('hour', now(), 'UTC'), 1200, 30, 4 from api_keys where prefix = ?`,
      [key.prefix],
    );
    const page = await read(path(key));
    assert.match(page, /Requests 1,234 Served 1,200 Refused 30 Failed 4/);
    assert.match(page, /Plan free Created just now .* Expires Never .* Last used Never/);
    assert.ok(page.includes('Key created on the free plan') && !page.includes(other.prefix));
    const { text } = await visitor.get(path(key));
    for (const link of [
      `/settings/usage?key=${key.prefix}`,
      ...['/label', '/expiry', '/roll', '/revoke'].map((act) => path(key, act)),
    ]) {
      assert.ok(text.includes(`href="${link}"`), link);
    }
    assert.match(await read(path(other)), /Requests in the last 30 days None\./);
  });

  it('a key that was never used comes with a first call that names its prefix, and a used one without', async () => {
    const key = await newKey();
    const page = await read(path(key));
    assert.ok(page.includes('Make your first call') && page.includes(`${key.prefix}_…`));
    await service
      .db('api_keys')
      .where({ prefix: key.prefix })
      .update({ last_used_at: service.db.raw('now()') });
    assert.ok(!(await read(path(key))).includes('Make your first call'));
  });

  it('the page of an inactive key, and of a suspended developer, only reads', async () => {
    const [revoked, expired, active] = [await newKey(), await newKey(), await newKey()];
    await revokeKey(service.db, revoked.prefix);
    await expireIn(service.db, expired.prefix, 0);
    const changes = (key: CreatedKey): RegExp => new RegExp(`href="${path(key)}/`);
    for (const key of [revoked, expired]) {
      assert.doesNotMatch((await visitor.get(path(key))).text, changes(key));
      for (const act of ['/label', '/expiry']) {
        for (const reply of [
          await visitor.get(path(key, act)),
          await visitor.post(path(key, act), { label: 'x', lifetime: '30' }),
        ]) {
          assert.equal(reply.status, 409, act);
          assert.match(reply.text, /This key (is revoked|has expired)\./);
        }
      }
    }
    assert.match((await visitor.get(path(active))).text, changes(active));
    await suspendDeveloper(service.db, developerId);
    assert.doesNotMatch((await visitor.get(path(active))).text, changes(active));
    for (const act of ['/label', '/expiry']) {
      assert.equal((await visitor.get(path(active, act))).status, 403);
      assert.equal((await visitor.post(path(active, act), { label: 'x', lifetime: '30' })).status, 403);
    }
    const record = await findKeyOf(service.db, developerId, active.prefix);
    assert.deepEqual([record?.label, record?.expiresAt], [null, null]);
  });

  it('a label is changed and removed by any session, and the change is an event of the developer', async () => {
    const key = await newKey({ label: 'production' });
    await makeSignInOld();
    assert.ok((await visitor.get(path(key, '/label'))).text.includes('value="production"'));
    for (const [label, event] of [
      ['production, EU', 'Label changed to production, EU'],
      ['', 'Label removed'],
    ] as const) {
      const { status, headers } = await submit(path(key, '/label'), { label });
      assert.deepEqual([status, headers.location], [303, path(key)]);
      const page = await read(path(key));
      assert.ok(page.includes('The label has been changed.'));
      assert.match(page, new RegExp(`${event} +You `));
      assert.equal((await findKeyOf(service.db, developerId, key.prefix))?.label, label === '' ? null : label);
    }
    const wrong = await submit(path(key, '/label'), { label: 'x'.repeat(201) });
    assert.equal(wrong.status, 422);
    assert.match(wrong.text, /<title>Error: Change the label/);
  });

  it('an expiry is changed and removed after a sign-in of the last 15 minutes alone', async () => {
    const key = await newKey();
    const expiry = async (): Promise<string | null | undefined> =>
      (await findKeyOf(service.db, developerId, key.prefix))?.expiresAt;
    const { headers } = await submit(path(key, '/expiry'), { lifetime: 'date', date: '2100-02-28' });
    assert.equal(headers.location, path(key));
    assert.equal(await expiry(), '2100-02-28T00:00:00.000000Z');
    assert.ok((await read(path(key))).includes('The expiry has been changed. It applies to the next request.'));
    assert.match(
      (await visitor.get(path(key, '/expiry'))).text,
      /<option value="keep" selected>Keep: 2100-02-28 00:00 UTC</,
    );
    await submit(path(key, '/expiry'), { lifetime: '30' });
    assert.ok((await read(path(key))).includes('The expiry has been changed.'));
    await submit(path(key, '/expiry'), { lifetime: '30' });
    assert.ok((await read(path(key))).includes('No changes were made.'));
    await submit(path(key, '/expiry'), { lifetime: 'none' });
    assert.equal(await expiry(), null);
    for (const fields of [
      { lifetime: 'date', date: '2020-01-01' },
      { lifetime: 'date', date: '' },
    ]) {
      const { status, text } = await submit(path(key, '/expiry'), fields);
      assert.equal(status, 422);
      assert.match(text, /<title>Error: .*role="alert".*href="#date"/s);
    }
    assert.equal((await visitor.post(path(key, '/expiry'), { lifetime: '1' })).status, 400);
    await makeSignInOld();
    for (const reply of [
      await visitor.get(path(key, '/expiry')),
      await visitor.post(path(key, '/expiry'), { lifetime: '30' }),
    ]) {
      assert.deepEqual([reply.status, reply.headers.location], [303, '/sign-in']);
    }
    assert.equal(await expiry(), null);
  });

  it('a key that ends by a new expiry is refused from the next request, and a rolled key must expire', async () => {
    const key = await newKey();
    await rollKey(service.db, key.prefix, 3_600);
    assert.ok(!(await visitor.get(path(key, '/expiry'))).text.includes('<option value="none"'));
    const { status, text } = await visitor.post(path(key, '/expiry'), { lifetime: 'none' });
    assert.equal(status, 409);
    assert.ok(text.includes('was already replaced'));
    assert.notEqual((await findKeyOf(service.db, developerId, key.prefix))?.expiresAt, null);
  });

  it('the label of another active key is accepted once the developer was warned', async () => {
    const first = await newKey({ label: 'production' });
    const warning = /You already have an active key with the label “.*production.*”.*Nothing was changed\./s;
    const count = async (): Promise<number> =>
      Number((await service.db('api_keys').where({ developer_id: developerId }).count())[0]?.count);
    const warned = await submit(NEW, { label: 'production', lifetime: '30' });
    assert.equal(warned.status, 409);
    assert.match(warned.text, warning);
    assert.ok(warned.text.includes(`href="${path(first)}"`) && warned.text.includes('>Create anyway</button>'));
    assert.match(warned.text, /value="30" selected/);
    assert.equal(await count(), 1);
    const form = /name="form" value="([0-9a-f]{64})"/.exec(warned.text)?.[1] ?? '';
    const [, confirmed = ''] = /name="confirmed" value="([^"]*)"/.exec(warned.text) ?? [];
    const fields = { form, lifetime: '30', confirmed };
    // Another label that is taken is warned of again.
    const second = await newKey({ label: 'staging' });
    assert.equal((await visitor.post(NEW, { ...fields, label: 'staging' })).status, 409);
    assert.equal((await visitor.post(NEW, { ...fields, label: 'production' })).status, 200);
    assert.equal(await count(), 3);
    // The same for a label that is changed. A key may keep its own label.
    assert.match((await submit(path(second, '/label'), { label: 'production' })).text, warning);
    assert.equal((await submit(path(second, '/label'), { label: 'staging' })).status, 303);
    assert.equal((await submit(path(second, '/label'), { label: 'production', confirmed: 'production' })).status, 303);
  });

  it('labels of inactive keys, of keys that were rolled and of other developers may be used again', async () => {
    const [revoked, rolled] = [await newKey({ label: 'a' }), await newKey({ label: 'b' })];
    await revokeKey(service.db, revoked.prefix);
    const { successor } = await rollKey(service.db, rolled.prefix, 3_600);
    await revokeKey(service.db, successor.prefix);
    await createKey(service.db, { developerId: await newDeveloper(service), planId: 'free', label: 'c' });
    for (const label of ['a', 'b', 'c'])
      assert.equal((await submit(NEW, { label, lifetime: '30' })).status, 200, label);
  });

  it('a label that was cleared stays cleared when the form comes back after a sign-in', async () => {
    const key = await newKey({ label: 'production' });
    await service.db('sessions').where({ developer_id: developerId }).delete();
    await visitor.post(path(key, '/label'), { label: '' });
    const token = await createSignInLink(service.db, developerId);
    const { headers } = await visitor.post('/sign-in/link', { token });
    assert.match((await visitor.get(headers.location ?? '')).text, /<input[^>]* name="label"[^>]* value(?:="")?\/>/);
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
      [path(key, '/roll?overlap=7d'), /value="7d" checked/],
      [path(key, '/roll?overlap=9d'), /value="24h" checked/],
      [path(key, '/label?label=x+y'), /value="x y"/],
      [path(key, '/expiry?lifetime=365'), /value="365" selected/],
    ] as const) {
      const { status, text } = await visitor.get(address);
      assert.equal(status, 200);
      assert.match(text, shown, address);
      assert.ok(!text.includes('f'.repeat(64)), address);
    }
  });
});
