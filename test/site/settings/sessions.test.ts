import assert from 'node:assert/strict';
import { suspendDeveloper } from '../../../src/developers/developers.js';
import { newDeveloper, signIn, Visitor } from '../../support/http/visitor.js';
import { startService, type TestService } from '../../support/service.js';

const ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>';

describe('the sessions page', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  /** The ids of the sessions that a page lists. */
  async function listed(visitor: Visitor): Promise<string[]> {
    const { text, status } = await visitor.get('/settings/sessions');
    assert.equal(status, 200);
    return [...text.matchAll(/name="session" value="(\d+)"/g)].map(([, id = '']) => id);
  }

  it('lists each browser of the developer and no other, and marks the one that asks', async () => {
    const id = await newDeveloper(service);
    await signIn(service, id, new Visitor(service.url, { 'user-agent': 'Phone/2' }));
    const here = await signIn(service, id, new Visitor(service.url, { 'user-agent': 'Laptop/3' }));
    await signIn(service, await newDeveloper(service), new Visitor(service.url, { 'user-agent': 'Stranger/4' }));
    const { text } = await here.get('/settings/sessions');
    assert.equal((await listed(here)).length, 2);
    assert.ok(text.includes('Phone/2') && !text.includes('Stranger/4'));
    assert.match(text, /Laptop\/3[^/]*This browser/);
  });

  it('ends one session elsewhere, which is refused from its next request on', async () => {
    const id = await newDeveloper(service);
    const [there, here] = [await signIn(service, id), await signIn(service, id)];
    const [, oldest = ''] = await listed(here);
    assert.equal((await here.post('/settings/sessions/end', { session: oldest })).status, 303);
    assert.equal((await there.get('/settings')).headers.location, '/sign-in');
    assert.equal((await there.post('/settings/sessions/end', { session: oldest })).headers.location, '/sign-in');
    assert.equal((await here.get('/settings')).status, 200);
  });

  it('ends no session of another developer', async () => {
    const [mine, other] = [
      await signIn(service, await newDeveloper(service)),
      await signIn(service, await newDeveloper(service)),
    ];
    const [theirs = ''] = await listed(other);
    assert.equal((await mine.post('/settings/sessions/end', { session: theirs })).status, 303);
    for (const session of ['', '-1', '99999999999', '1 or 1=1', `${theirs}.0`]) {
      assert.equal((await mine.post('/settings/sessions/end', { session })).status, 400);
    }
    assert.equal((await other.get('/settings')).status, 200);
  });

  it('ends all of them, its own included', async () => {
    const id = await newDeveloper(service);
    const visitors = [await signIn(service, id), await signIn(service, id), await signIn(service, id)] as const;
    assert.equal((await visitors[0].post('/settings/sessions/end-all')).headers.location, '/sign-in');
    for (const visitor of visitors) assert.equal((await visitor.get('/settings')).status, 303);
  });

  it('lets a suspended developer end sessions', async () => {
    const id = await newDeveloper(service);
    const visitor = await signIn(service, id);
    await suspendDeveloper(service.db, id);
    assert.equal((await visitor.post('/settings/sessions/end-all')).status, 303);
    assert.equal((await visitor.get('/settings')).status, 303);
  });

  it('shows what browsers and projects call themselves as text', async () => {
    const id = await newDeveloper(service, `Club ${ATTACK}`);
    const visitor = await signIn(service, id, new Visitor(service.url, { 'user-agent': ATTACK }));
    for (const path of ['/settings', '/settings/sessions', '/sign-in']) {
      const { text } = await visitor.get(path);
      assert.ok(text.includes('&lt;script'), path);
      assert.ok(!text.includes('<script>alert') && !text.includes('<img src=x'), path);
    }
  });
});
