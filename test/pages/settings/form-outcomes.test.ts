import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { listKeys } from '../../../src/keys/keys.js';
import { PAGE_LIMITS } from '../../../src/pages/site.js';
import { eventually } from '../../support/eventually.js';
import { newDeveloper } from '../../support/keys/new-key.js';
import { signIn, type Visitor } from '../../support/http/visitor.js';
import { holdCommits } from '../../support/postgres/held-commits.js';
import { send, type Reply } from '../../support/request.js';
import { testWorld } from '../../support/world.js';
import { serveWithoutDatabase } from '../site-alone.js';

const NEW = '/settings/keys/new';
const FIELDS = { label: 'EU & US', lifetime: '30', form: 'f'.repeat(64) };
/** Where such a form is filled in as it was sent, without its token. */
const BACK = `href="${NEW}?label=EU%20%26%20US&amp;lifetime=30"`;
const OWN = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };

/** Requests for pages and reports at any time, by their addresses. */
const ADDRESSES = Array.from({ length: 60 }, (_, place) => `192.0.2.${place}`);

/** Requests to the API meanwhile, one after the other. */
const CALLS = 6;

/** Of the service to its database. */
const CONNECTIONS = 8;

/** Long enough for a busy machine to answer what is not locked, and short enough to wait for. */
const BOUND = { REQUEST_TIMEOUT_MS: '3000', DATABASE_POOL_SIZE: String(CONNECTIONS) };

describe('a form that fails, and pages that wait', () => {
  const world = testWorld({ service: { settings: BOUND, trustedProxies: 1 } });
  let developerId: number;
  let visitor: Visitor;

  beforeEach(async () => {
    developerId = await newDeveloper(world.service.db);
    visitor = await signIn(world.service, developerId);
  });

  async function lock(tables = 'sessions'): Promise<Knex.Transaction> {
    const transaction = await world.db.transaction();
    await transaction.raw(`lock table ${tables} in access exclusive mode`);
    return transaction;
  }

  /** How many queries wait for the lock. */
  async function waiting(): Promise<number> {
    const { rows } = await world.db.raw<{ rows: { waiting: number }[] }>(
      `select count(*)::integer as waiting from pg_locks
        where locktype = 'relation' and not granted
          and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0]?.waiting ?? 0;
  }

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
    const transaction = await lock();
    try {
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
      assert.match(text, /don’t know whether this was saved\. Check <a href="\/settings\/keys">your keys<\/a> first/);
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

  // The second is of tables that the overview reads in parallel, once it has its session.
  for (const tables of ['sessions', 'events, usage_log, passkeys, identities']) {
    it(`pages that wait for ${tables} leave the API its connections, and are answered with 503 even before their turn`, async () => {
      const transaction = await lock(tables);
      let isOver = false;
      let mostWaiting = 0;
      const statuses: number[] = [];
      const requests = ADDRESSES.map(async (address) => {
        while (!isOver) statuses.push((await visitor.get('/settings', { 'x-forwarded-for': address })).status);
      });
      try {
        await eventually('pages wait for the lock', async () => (await waiting()) >= PAGE_LIMITS.running);
        for (let call = 0; call < CALLS; call += 1) {
          for (const path of ['/api/v1/me', '/api/v1/stats'])
            assert.equal((await world.service.get(path)).status, 200, path);
          mostWaiting = Math.max(mostWaiting, await waiting());
        }
        assert.ok(mostWaiting <= CONNECTIONS / 2, `${mostWaiting} connections wait for the lock`);
        await eventually('each page is answered', () => statuses.length >= ADDRESSES.length);
        assert.deepEqual([...new Set(statuses)], [503]);
      } finally {
        isOver = true;
        await transaction.rollback();
        await Promise.all(requests);
      }
    });
  }

  it('reports of a leaked key that wait for a lock leave the API its connections', async () => {
    const { key, prefix } = await world.newKey({ developerId, planId: 'free' });
    const report = (address: string): Promise<Reply> =>
      send(world.service.url, '/revoke-leaked-key', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
        body: JSON.stringify({ key }),
      });
    const transaction = await world.db.transaction();
    try {
      await transaction('api_keys').where({ prefix }).forUpdate().first();
      const reports = ADDRESSES.map(report);
      for (let call = 0; call < CALLS; call += 1) assert.equal((await world.service.get('/api/v1/stats')).status, 200);
      await transaction.rollback();
      // In time, or too late because of the lock.
      for (const { status } of await Promise.all(reports)) assert.ok([200, 503].includes(status), String(status));
      assert.deepEqual((await report('198.51.100.3')).json, { revoked: true });
    } finally {
      if (!transaction.isCompleted()) await transaction.rollback();
    }
  });
});
