import assert from 'node:assert/strict';
import { addTitles } from '../../support/titles.js';
import { eventually } from '../../support/eventually.js';
import { signInOperator } from '../../support/http/operator.js';
import { Visitor } from '../../support/http/visitor.js';
import { PRODUCT_BOUNDS } from '../../support/program.js';
import { testWorld } from '../../support/world.js';

const settings = { METRICS_ADDRESS: '127.0.0.1:0' };

/** @returns the text of a page in one line */
async function read(browser: Visitor, path = '/'): Promise<string> {
  const { status, text } = await browser.get(path);
  assert.equal(status, 200, text);
  return text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
}

describe('the status page', () => {
  const world = testWorld({
    ownServer: true,
    redis: true,
    service: { settings: { ...settings, ...PRODUCT_BOUNDS }, jobIntervalMs: 50 },
  });
  let operator: Visitor;

  before(async () => {
    operator = await signInOperator(world.service);
  });

  it('it shows what runs, and that everything works', async () => {
    const text = await read(operator);
    assert.ok(text.includes(' Everything works. ') && !text.includes('this server only'), text);
    const { rows } = await world.db.raw<{ rows: { server_version: string }[] }>('show server_version');
    for (const shown of [
      / PostgreSQL Up /,
      / Redis Up /,
      / Announcements of changes Up /,
      ` ${process.versions.node} `,
      ` ${rows[0]?.server_version} `,
      / Migrations \d+ applied, the last is /,
      'None is pending.',
      'Newest entry None yet Feed start The first entry Writers None active, 0 waiting ',
    ]) {
      assert.ok(typeof shown === 'string' ? text.includes(shown) : shown.test(text), `${String(shown)}: ${text}`);
    }
  });

  it('it shows the requests of the last 24 hours by hour, over all servers', async () => {
    const other = await world.startService({ jobIntervalMs: 50 });
    const { key } = await world.newKey({ planId: 'free' });
    for (let call = 0; call < 61; call += 1) {
      await (call % 2 === 0 ? world.service : other).get('/api/v1/stats', { headers: { 'x-api-key': key } });
    }
    await eventually('both servers have saved their counts', async () =>
      (await read(operator)).includes(
        ' Last 24 hours Requests 61 Success rate 98.4% Client errors 0 Rate limited 1 Server errors 0 ',
      ),
    );
    assert.match(await read(operator), / Requests by hour Hour \(UTC\) .* Total 61 60 0 1 0 98\.4% /);
  });

  it('a job that fails is shown, with when it last succeeded', async () => {
    await eventually('all jobs work', async () =>
      / save usage Works (?:just now|\d+ s\w* ago) /.test(await read(operator)),
    );
    const { key } = await world.newKey({ planId: 'free' });
    await world.db.raw('alter table usage_log rename to away');
    try {
      await world.service.get('/api/v1/stats', { headers: { 'x-api-key': key } });
      await eventually('the failure is shown', async () => {
        const text = await read(operator);
        return (
          /Failing: [\w ,]*save usage[\w ,]*\. /.test(text) && / save usage Failing since .*?: what to do /.test(text)
        );
      });
      assert.ok((await operator.get('/')).text.includes('href="/guides/runbook#a-job-fails"'));
    } finally {
      await world.db.raw('alter table away rename to usage_log');
    }
    await eventually('everything works', async () => (await read(operator)).includes(' Everything works. '));
  });

  it('it shows the newest entry, the active writer and the waiting ones', async () => {
    await addTitles(world.db, 1);
    const first = await world.db.transaction();
    const second = await world.db.transaction();
    try {
      await addTitles(first, 1, 'first');
      const waiting = addTitles(second, 1, 'second');
      await eventually('the second waits', async () => (await read(operator)).includes('1 active, 1 waiting'));
      assert.match(await read(operator), / Newest entry just now /);
      await first.rollback();
      await waiting;
    } finally {
      await Promise.all([first.rollback(), second.rollback()]);
    }
    assert.ok((await read(operator)).includes('None active, 0 waiting'));
  });

  it('a migration that the database lacks is pending, with the command that applies it', async () => {
    const last = await world.db('migrations').orderBy('id', 'desc').first<{ id: number; name: string }>();
    await world.db('migrations').where({ id: last.id }).delete();
    try {
      const text = await read(operator);
      assert.match(text, / A migration is pending: run node \.build\/cli\.js migrate /);
      assert.ok(text.includes(`Pending: ${last.name}.`), text);
    } finally {
      await world.db('migrations').insert(last);
    }
  });

  it('PostgreSQL that is frozen is slow, although no process has reported its loss', async () => {
    world.postgres.pause();
    try {
      // First on connections that are open, then on new ones.
      for (let look = 0; look < 3; look += 1) {
        const text = await read(operator);
        assert.ok(text.includes('This page could not read PostgreSQL.') && !text.includes('Everything works'), text);
        assert.match(text, / PostgreSQL Slow /);
      }
    } finally {
      world.postgres.resume();
    }
  });

  it('a provider that does not serve its description is down, and a server without Redis counts alone', async () => {
    const provider = {
      OIDC_ISSUER: 'http://127.0.0.1:1',
      OIDC_CLIENT_ID: 'x',
      OIDC_CLIENT_SECRET: 'a secret',
      PUBLIC_URL: 'http://localhost:8080',
    };
    const service = await world.startService({ redisUrl: undefined, settings: { ...settings, ...provider } });
    const text = await read(await signInOperator(service));
    assert.match(text, / Down: Identity provider\. /);
    assert.match(text, / Limits are counted by this server only: REDIS_URL is not set\. /);
  });

  it('a component that is lost is shown with what follows from it, what to do and where to read more', async () => {
    await world.redis.stop();
    await eventually('the loss is shown', async () => (await read(operator)).includes('Down: Redis.'));
    const { text } = await operator.get('/');
    assert.match(
      text,
      /Redis<\/th>.*?Down.*?keys are checked against the database, and changes of keys take three seconds\. <strong>Check that Redis answers/s,
    );
    assert.ok(text.includes('href="/guides/runbook#redis-is-down"'), text);
  });

  it('it shows the loss of PostgreSQL, although nothing else can be read then', async () => {
    await world.postgres.stop('immediate');
    await eventually('the loss is shown', async () => (await read(operator)).includes('Down: PostgreSQL'));
    const text = await read(operator);
    assert.ok(text.includes('Requests that need the database are answered with 503.'), text);
    assert.match(text, / Feed Newest entry Unknown: this page could not read PostgreSQL /);
    assert.match(text, / Last 24 hours Unknown: this page could not read PostgreSQL /);
    assert.match(await read(new Visitor(operator.url), '/guides/runbook'), / PostgreSQL is down /, 'without a session');
  });
});
