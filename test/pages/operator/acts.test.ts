import assert from 'node:assert/strict';
import { pino } from 'pino';
import { listEvents } from '../../../src/events/events.js';
import { listDevelopers } from '../../../src/developers/developers.js';
import { performAct } from '../../../src/pages/operator/acts.js';
import type { ChangeCallers } from '../../../src/admission/change-callers.js';
import type { OperatorParts } from '../../../src/pages/operator/context.js';
import type { PageContext } from '../../../src/pages/parts/context.js';
import { generateToken } from '../../../src/accounts/tokens.js';
import { metricsUrlOf, scrape } from '../../support/http/exposition.js';
import { signInOperator } from '../../support/http/operator.js';
import { Visitor } from '../../support/http/visitor.js';
import { readGuide } from '../../support/guides.js';
import type { Reply } from '../../support/request.js';
import { testWorld } from '../../support/world.js';
import { OPERATOR_FORMS, UNKNOWN } from '../pages.js';

const settings = { METRICS_ADDRESS: '127.0.0.1:0' };

describe('the acts of an operator', () => {
  const world = testWorld({ service: { settings } });
  let operator: Visitor;

  beforeEach(async () => {
    operator = await signInOperator(world.service);
  });

  async function eventsOf(developerId: number): Promise<string[]> {
    const events = await listEvents(world.db, { developerId, limit: 20 });
    return events.map(({ kind, actor }) => `${kind} by ${actor}`);
  }

  it('a developer is created once, however often the form is sent, and has a page', async () => {
    const form = generateToken().token;
    const fields = { project_name: 'Кино & Ко', attribution: 'on', form };
    const answers = await Promise.all([1, 2, 3].map(() => operator.post('/developers/new', fields)));
    const [address = assert.fail()] = new Set(answers.map(({ headers }) => headers.location));
    assert.ok(answers.every(({ headers }) => headers.location === address));
    const { id, projectName, attributionRequired } = (await listDevelopers(world.db)).at(-1) ?? assert.fail();
    assert.deepEqual([`/developers/${id}`, projectName, attributionRequired], [address, 'Кино & Ко', true]);
    assert.ok((await operator.get(address)).text.includes('Кино &amp; Ко'));
    assert.deepEqual(await eventsOf(id), ['registered by operator']);
    assert.match(
      world.service.logged.at(-1) ?? '',
      /"act":"create_developer","affects_keys":false,"msg":"operator act"/,
    );
  });

  it('a form whose change failed creates the developer when it is sent again', async () => {
    const fields = { project_name: 'Second try', form: generateToken().token };
    await world.db.raw('alter table developers rename to away');
    const failed = await operator.post('/developers/new', fields);
    await world.db.raw('alter table away rename to developers');
    assert.equal(failed.status, 500);
    const { series } = await scrape(`${world.service.operatorUrl}/metrics`);
    assert.equal(series.get('catalog_http_changes_failed_total'), 1);
    assert.ok((await operator.get('/')).text.includes('A change such as a revocation failed on this server'));
    const { status, headers } = await operator.post('/developers/new', fields);
    const { id, projectName } = (await listDevelopers(world.db)).at(-1) ?? assert.fail();
    assert.deepEqual([status, headers.location, projectName], [303, `/developers/${id}`, 'Second try']);
  });

  it('a name that does not fit is shown again with what is wrong, and creates nobody', async () => {
    const before = await listDevelopers(world.db);
    for (const project_name of ['', 'x'.repeat(201), 'a\u202Eb']) {
      const { status, text } = await operator.post('/developers/new', { project_name, form: UNKNOWN.token });
      assert.equal(status, 422);
      assert.ok(text.includes('<title>Error: Create a developer') && text.includes('Enter a name of 1 to 200'), text);
    }
    const { key } = await world.newKey({ developerId: before[0]?.id ?? (await world.newDeveloper()) });
    const { status, text } = await operator.post('/developers/new', { project_name: key, form: UNKNOWN.token });
    assert.equal(status, 422);
    assert.ok(text.includes('This looks like an API key') && !text.includes(key), text);
    assert.equal((await operator.post('/developers/new', { project_name: 'Without a token' })).status, 400);
    assert.deepEqual(await listDevelopers(world.db), before);
  });

  it('a sign-in link is shown once to the operator and signs the developer in', async () => {
    const id = await world.newDeveloper('Film club');
    const { status, text } = await operator.post(`/developers/${id}/sign-in-link`);
    assert.equal(status, 200);
    const link = /http:\/\/localhost:\d+\/sign-in\/link\/([0-9a-f]{64})/.exec(text) ?? assert.fail(text);
    assert.equal(new URL(link[0]).origin, world.service.publicUrl);
    const developer = new Visitor(world.service.url);
    assert.equal((await developer.post('/sign-in/link', { token: link[1] ?? '' })).status, 303);
    assert.ok((await developer.get('/settings')).text.includes('Film club'));
    assert.ok(
      world.service.logged.every((line) => !line.includes(link[1] ?? '')),
      'the log has no token',
    );
  });

  it('with SITE=off, where a sign-in link would lead nowhere, the operator gets none', async () => {
    const id = await world.newDeveloper('Film club');
    const alone = await world.startService({ settings: { METRICS_ADDRESS: '127.0.0.1:0', SITE: 'off' } });
    const there = await signInOperator(alone);
    assert.ok(!(await there.get(`/developers/${id}`)).text.includes('sign-in-link'));
    assert.equal((await there.post(`/developers/${id}/sign-in-link`)).status, 404);
  });

  it('an act is logged once its change is committed, even if dropping the cached callers fails', async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => lines.push(line) });
    const changeCallers: ChangeCallers = async (change, affected) => {
      await affected(await change());
      throw new Error('superseded');
    };
    const parts = { db: world.db, log, changeCallers } as unknown as OperatorParts;
    const ctx = { state: { requestId: 'r-1' } } as PageContext;
    const act = performAct(
      ctx,
      parts,
      { act: 'suspend' },
      () => Promise.resolve(),
      () => [1],
    );
    await assert.rejects(act, /superseded/);
    assert.match(lines.join(''), /"request_id":"r-1","act":"suspend","affects_keys":true/);
  });

  it('an act is reported on the page that it leads to, once, and recorded as the operator’s', async () => {
    const { prefix, developerId } = await world.newKey({ planId: 'free', label: 'production' });
    const developer = `/developers/${developerId}`;
    assert.ok((await operator.get(`/keys/${prefix}/revoke`)).text.includes('(<bdi>production</bdi>)'));
    for (const [path, fields, report] of [
      [`${developer}/suspend`, {}, 'Their keys are refused from now on.'],
      [`${developer}/reinstate`, {}, 'Their keys are accepted again.'],
      [`${developer}/plan`, { plan: 'pro' }, 'The plan of new keys has been changed.'],
      [`${developer}/plan`, { plan: 'pro', keys: 'on' }, 'of all active keys has been changed.'],
      [`/keys/${prefix}/revoke`, {}, 'Requests with it now fail.'],
      [`/keys/${prefix}/revoke`, {}, 'This key was already revoked.'],
    ] as const) {
      const { status, headers, text } = await operator.post(path, fields);
      assert.equal(status, 303, text);
      const isReported = async (page: string): Promise<boolean> => (await operator.get(page)).text.includes(report);
      const { location = '' } = headers;
      const shown = [await isReported('/developers'), await isReported(location), await isReported(location)];
      assert.deepEqual(shown, [false, true, false], report);
    }
    assert.deepEqual(
      (await eventsOf(developerId)).slice(0, 5),
      ['revoked', 'plan_changed', 'plan_changed', 'reinstated', 'suspended'].map((kind) => `${kind} by operator`),
    );
    const keyChanges = (await operator.get(`${developer}/events?kind=key-changes`)).text;
    assert.ok(keyChanges.includes('Key revoked') && !keyChanges.includes('Account suspended'), keyChanges);
    for (const path of [`${developer}/events?kind=nope`, '/developers?period=nope&sort=nope']) {
      const { text } = await operator.get(path);
      const named = new URLSearchParams(path.split('?')[1]).size;
      assert.equal(text.split('=nope</code> was left out').length, named + 1, text);
    }
    const { status, headers } = await operator.get(`/keys/${prefix}/revoke`);
    assert.deepEqual([status, headers.location], [303, `/keys/${prefix}`], 'no form for a key that is revoked');
    assert.equal((await operator.post(`${developer}/plan`, { plan: 'nope' })).status, 404);
  });

  it('a developer, a key or a plan that does not exist is answered with 404, and nothing is changed', async () => {
    for (const path of OPERATOR_FORMS.filter((each) => /\/(?:developers|keys)\/\w+\/|svc_/.test(each))) {
      const { status, text } = await operator.post(path, { plan: 'pro' });
      assert.equal(status, 404, path);
      assert.ok(text.includes('Nothing was changed.') && !text.includes('catalog '), text);
    }
    for (const path of ['/developers/0', '/developers/99999999999', '/developers/x', '/keys/svc_short']) {
      assert.equal((await operator.get(path)).status, 404, path);
    }
  });

  it('developers are found by id, by a part of the name and by the prefix of a key, and a key leaves the address', async () => {
    const developerId = await world.newDeveloper('Straße & Söhne');
    const { key, prefix } = await world.newKey({ developerId });
    await world.newDeveloper('Another one');
    for (const search of [String(developerId), 'straße', prefix]) {
      const { text } = await operator.get(`/developers?q=${encodeURIComponent(search)}`);
      assert.ok(text.includes(`href="/developers/${developerId}"`) && !text.includes('Another one'), text);
    }
    const { status, headers } = await operator.get(`/developers?q=${key}`);
    assert.deepEqual([status, headers.location], [303, `/developers?q=${prefix}`]);
    assert.ok((await operator.get('/developers?q=nobody')).text.includes('No developer matches'));
  });

  it('addresses that sent invalid keys are listed with their number, the worst first', async () => {
    const operated = await world.startService({ settings, trustedProxies: 1 });
    const browser = await signInOperator(operated);
    const guess = async (address: string, times: number): Promise<void> => {
      const headers = {
        'x-api-key': (await world.newKey()).key.replace(/.{6}$/, 'xxxxxx'),
        'x-forwarded-for': address,
      };
      const revoked = await world.newKey();
      await world.db('api_keys').where({ prefix: revoked.prefix }).update({ revoked_at: world.db.fn.now() });
      for (let i = 0; i < times; i += 1) {
        await operated.get('/api/v1/me', { headers: { ...headers, 'x-api-key': revoked.key } });
      }
    };
    await guess('192.0.2.7', 2);
    await guess('2001:db8::1', 3);
    // Over the limit of 30.
    await guess('192.0.2.9', 33);
    const { text } = await browser.get('/failed-keys');
    assert.deepEqual(
      [...text.matchAll(/<code>([^<]+)<\/code><\/th><td class="numeric">(\d+)</g)]
        .map(([, address, count]) => [address, Number(count)])
        .filter(([address]) => address !== '127.0.0.1'),
      [
        ['192.0.2.9', 30],
        ['2001:db8:0:0::/64', 3],
        ['192.0.2.7', 2],
      ],
    );
  });

  it('settings are shown as the server has them, and no secret is', async () => {
    const { databaseUrl } = world.service;
    const { text } = await operator.get('/settings');
    assert.match(text, /DATABASE_URL<\/code><\/th><td[^>]*>set, not shown</);
    assert.match(text, /DATABASE_POOL_SIZE<\/code><\/th><td[^>]*><code>8<\/code>/);
    assert.match(text, /METRICS_ADDRESS<\/code><\/th><td[^>]*><code>127\.0\.0\.1:0<\/code>/);
    assert.match(text, /TRUST_PROXY<\/code><\/th><td[^>]*><span class="muted">off</);
    for (const secret of [databaseUrl, new URL(databaseUrl).pathname]) {
      assert.ok(!text.includes(secret), secret);
    }
  });
});

describe('a server whose role lacks the rights of the operator pages', () => {
  const world = testWorld();

  it('the acts that its role may not do are refused with what to grant, and done once it is granted', async () => {
    const blocks = async (guide: string): Promise<string> => {
      const [, sql = assert.fail(guide)] = /```sql\n([\s\S]+?)```/.exec(await readGuide(guide)) ?? [];
      return sql.replace('catalog_web', 'operated_server').replace('…', 'secret');
    };
    await world.db.raw(await blocks('configure'));
    world.defer(() => world.db.raw('drop role operated_server'));
    const url = new URL(world.url);
    [url.username, url.password] = ['operated_server', 'secret'];
    const server = await world.startServer({ ...settings, DATABASE_URL: url.href, SITE: 'on' });
    const { prefix, developerId } = await world.newKey({ planId: 'free' });
    const operator = await signInOperator({ operatorUrl: new URL(metricsUrlOf(server)).origin, db: world.db });
    const needsRights = [`/developers/${developerId}/suspend`, `/developers/${developerId}/plan`];
    const post = (path: string): Promise<Reply> =>
      operator.post(path, { plan: 'pro', keys: 'on', project_name: 'P', form: UNKNOWN.token });
    for (const path of needsRights) {
      const { status, text } = await post(path);
      assert.equal(status, 403);
      assert.ok(text.includes('database role may not do that') && text.includes('Nothing was changed.'), text);
      assert.ok(text.includes('href="/guides/operator-pages#developers"'), text);
    }
    await world.db.raw(await blocks('operator-pages'));
    const forms = OPERATOR_FORMS.filter((path) => !path.startsWith('/sign-'));
    for (const form of forms) {
      const path = form.replace(UNKNOWN.id, String(developerId)).replace(UNKNOWN.prefix, prefix);
      const { status, text } = await post(path);
      assert.ok(status === 303 || path.endsWith('/sign-in-link'), `${path} ${status} ${text}`);
    }
    assert.equal((await operator.get('/')).status, 200);
    for (const path of ['/developers', `/developers/${developerId}`, `/keys/${prefix}`]) {
      assert.equal((await operator.get(path)).status, 200, path);
    }
  });
});
