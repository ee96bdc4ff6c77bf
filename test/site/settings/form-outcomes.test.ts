import assert from 'node:assert/strict';
import { listKeys } from '../../../src/keys/keys.js';
import { PAGE_LIMITS } from '../../../src/site/site.js';
import { eventually } from '../../support/eventually.js';
import { newDeveloper, signIn, type Visitor } from '../../support/http/visitor.js';
import { holdCommits } from '../../support/postgres/held-commits.js';
import { send } from '../../support/request.js';
import { testWorld } from '../../support/world.js';
import { serveWithoutDatabase } from '../site-alone.js';

const NEW = '/settings/keys/new';
const FIELDS = { label: 'EU & US', lifetime: '30', form: 'f'.repeat(64) };
/** Where such a form is filled in as it was sent, without its token. */
const BACK = `href="${NEW}?label=EU%20%26%20US&amp;lifetime=30"`;
const OWN = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };

/** Long enough for a busy machine to answer what is not locked, and short enough to wait for. */
const BOUND = { REQUEST_TIMEOUT_MS: '3000' };

describe('a form that fails', () => {
  const world = testWorld({ service: { settings: BOUND } });
  let developerId: number;
  let visitor: Visitor;

  beforeEach(async () => {
    developerId = await newDeveloper(world.service);
    visitor = await signIn(world.service, developerId);
  });

  it('says that nothing was changed, and leads back to the form as it was filled in, during an outage', async () => {
    const { url, server } = await serveWithoutDatabase();
    try {
      // Without a cookie, no session is looked up.
      const headers = { ...OWN, cookie: `catalog-session=${'f'.repeat(64)}` };
      const body = new URLSearchParams(FIELDS).toString();
      const { status, text } = await send(url, NEW, { method: 'POST', headers, body });
      assert.equal(status, 503);
      assert.ok(text.includes('Nothing was changed.') && text.includes(BACK), text);
      assert.ok(!text.includes('f'.repeat(64)));
    } finally {
      server.close();
    }
  });

  it('changes nothing after its page has said so, although the session is found later', async () => {
    const waiting = async (): Promise<number> => {
      const { rows } = await world.db.raw<{ rows: { waiting: number }[] }>(
        "select count(*) as waiting from pg_locks where relation = 'sessions'::regclass and not granted",
      );
      return rows[0]?.waiting ?? 0;
    };
    const transaction = await world.db.transaction();
    try {
      await transaction.raw('lock table sessions in access exclusive mode');
      // The pages that run at the same time give up first. Then it is the turn of the form, which has little time left.
      const others = Array.from({ length: PAGE_LIMITS.running }, () => visitor.get('/settings'));
      await eventually('the pages wait for their sessions', async () => (await waiting()) === PAGE_LIMITS.running);
      const { status, text } = await visitor.post(NEW, FIELDS);
      assert.equal(status, 503);
      assert.ok(text.includes('Nothing was changed.') && text.includes(BACK), text);
      await Promise.all(others);
    } finally {
      await transaction.rollback();
    }
    await eventually('the session was looked up', async () => (await waiting()) === 0);
    // Pages take turns, so these come after the late one.
    for (let i = 0; i < 5; i += 1) assert.equal((await visitor.get('/settings')).status, 200);
    assert.deepEqual(await listKeys(world.db, developerId), []);
  });

  it('says that the change may have been made, and where to look, when that is not known', async () => {
    const held = await holdCommits(world.db, 'api_keys', 'catalog serve');
    try {
      const { status, text } = await visitor.post(NEW, FIELDS);
      assert.equal(status, 503);
      assert.ok(!text.includes('Nothing was changed'), text);
      assert.match(text, /may have been made\. Check <a href="\/settings\/keys">your keys<\/a>/);
      assert.ok(text.includes(BACK));
    } finally {
      await held.release();
    }
    await eventually('the key was created after all', async () => (await listKeys(world.db, developerId)).length === 1);
  });

  it('leads back to the form as it was filled in when too many requests came from the address', async () => {
    const { url, server } = await serveWithoutDatabase({ ...PAGE_LIMITS, perWindow: 1 });
    try {
      assert.equal((await send(url, '/sign-in')).status, 200);
      const body = new URLSearchParams({ ...FIELDS, form: '' }).toString();
      const { status, text } = await send(url, NEW, { method: 'POST', headers: OWN, body });
      assert.equal(status, 429);
      assert.ok(text.includes('Too many requests from your IP address.'));
      assert.ok(text.includes('Nothing was changed.') && text.includes(BACK), text);
    } finally {
      server.close();
    }
  });

  it('leads back to the form when the form is incomplete, and offers nothing that another site has sent', async () => {
    const incomplete = await visitor.post(NEW, { label: 'EU & US', lifetime: '30' });
    assert.equal(incomplete.status, 400);
    assert.ok(incomplete.text.includes('Nothing was changed.') && incomplete.text.includes(BACK));
    const foreign = await visitor.post(NEW, FIELDS, { 'sec-fetch-site': 'cross-site' });
    assert.equal(foreign.status, 403);
    assert.ok(!foreign.text.includes('EU') && foreign.text.includes(`href="${NEW}"`), foreign.text);
  });

  it('never writes a key into an address', async () => {
    const { key } = await world.newKey({ developerId, planId: 'free' });
    for (const fields of [
      { ...FIELDS, form: '', label: `my ${key}` },
      { ...FIELDS, form: '', key },
    ]) {
      const { status, text } = await visitor.post(NEW, fields);
      assert.equal(status, 400);
      assert.ok(!text.includes(key), text);
    }
  });

  it('offers the next step on every error page', async () => {
    for (const [path, step] of [
      ['/settings/keys/svc_ZZZZZZZZ', '<a class="button" href="/settings/keys">Go to your keys</a>'],
      ['/settings/no-such-page', '<a class="button" href="/settings">Go to the settings</a>'],
      ['/sign-in/no-such-page', '<a class="button" href="/sign-in">Go to the sign-in page</a>'],
      ['/no-such-page', '<a class="button" href="/">Go to the home page</a>'],
    ] as const) {
      const { status, text } = await visitor.get(path, { accept: 'text/html' });
      assert.equal(status, 404, path);
      assert.ok(text.includes(step), `${path} ${text}`);
      assert.ok(!text.includes('Nothing was changed'));
    }
    const { status, text } = await visitor.post('/sign-in/link', { token: 'f'.repeat(64) });
    assert.equal(status, 403);
    assert.ok(text.includes('href="/sign-in"'));
  });
});
