import assert from 'node:assert/strict';
import type { CreatedKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { eventually } from '../support/eventually.js';
import { scrape } from '../support/http/exposition.js';
import { hasFullDevice, putOnFullDisk } from '../support/postgres/full-disk.js';
import { runWithoutRedis } from '../support/programs/command.js';
import { skipWithout } from '../support/programs/skip.js';
import { send } from '../support/request.js';
import { testWorld, type World } from '../support/world.js';

/** What keeps events from being recorded. @returns what ends it */
const OBSTACLES: Readonly<Record<string, (world: World) => Promise<() => unknown>>> = {
  async 'have a sequence whose numbers are taken'({ db }) {
    await db.raw(`
      insert into events (developer_id, kind, actor) select 1, 'renamed', 'operator' from generate_series(1, 99);
      alter table events alter column id restart`);
    return () => db.raw('truncate events');
  },
  async 'may not be written'({ db }) {
    await db.raw('alter table events add constraint closed check (false) not valid');
    return () => db.raw('alter table events drop constraint closed');
  },
  async 'are locked by another session'({ db }) {
    const holder = await db.transaction();
    await holder.raw('lock table events');
    return () => holder.rollback();
  },
  async 'are on a full disk'({ db, postgres }) {
    await putOnFullDisk(db, postgres, 'events');
    return () => db.raw('truncate events');
  },
};

describe('a change of what a key may do', () => {
  const world = testWorld({ ownServer: true, service: { settings: { METRICS_ADDRESS: '127.0.0.1:0' } } });

  async function command(...args: readonly string[]): Promise<void> {
    const { code, stderr } = await runWithoutRedis(args, world.url);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^catalog: the event "\w+" of developer \d+ could not be recorded: /);
  }

  /** Reports a key as its finder. @returns the status */
  async function report({ key }: CreatedKey): Promise<number> {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ key });
    return (await send(world.service.url, '/revoke-leaked-key', { method: 'POST', headers, body })).status;
  }

  /** Every program that ends keys, but for the pages, which do so by the same functions. */
  const ENDINGS: Readonly<Record<string, (key: CreatedKey) => Promise<unknown>>> = {
    'revoked by command': ({ prefix }) => command('keys', 'revoke', prefix),
    'rolled by command': ({ prefix }) => command('keys', 'roll', prefix, '--overlap', 'now'),
    'of a developer who is suspended by command': ({ developerId }) =>
      command('developers', 'suspend', String(developerId)),
    'reported by its finder': async (key) => assert.equal(await report(key), 200),
    'revoked in plain SQL': ({ prefix }) => revokeKey(world.db, prefix),
  };

  const statusOf = async ({ key }: CreatedKey): Promise<number> =>
    (await world.service.get('/api/v1/me', { headers: { 'x-api-key': key } })).status;

  const metric = async (name: string): Promise<number> =>
    (await scrape(`${world.service.operatorUrl}/metrics`)).series.get(name) ?? 0;

  for (const [obstacle, set] of Object.entries(OBSTACLES)) {
    it(`is made although events ${obstacle}, and says that its event is lost`, async function () {
      if (obstacle.includes('full disk') && !hasFullDevice()) skipWithout('/dev/full', this);
      const keys = await Promise.all(Object.keys(ENDINGS).map(() => world.newKey()));
      const lost = await metric('catalog_events_lost_total');
      const end = await set(world);
      try {
        for (const [index, [what, make]] of Object.entries(ENDINGS).entries()) {
          const key = keys[index] ?? assert.fail();
          assert.equal(await statusOf(key), 200);
          await make(key);
          assert.equal(await statusOf(key), 401, what);
        }
        assert.equal(await metric('catalog_events_lost_total'), lost + 1, 'that of the finder');
        const warning = /"level":40.+the event \\"revoked\\" of developer \d+ could not be recorded/;
        assert.ok(world.service.logged.some((line) => warning.test(line)));
      } finally {
        await end();
      }
    });
  }

  it('needs no new page of the disk', async () => {
    const keys = [];
    for (let i = 0; i < 100; i += 1) keys.push(await world.newKey());
    await world.db.raw(`insert into sessions (hash, developer_id, user_agent, last_seen_at)
      select sha256(id::text::bytea), id, 'Browser/1', now() - interval '2 minutes' from developers`);
    await world.db.raw('vacuum caller_changes');
    const sizes = async (): Promise<unknown> => {
      const { rows } = await world.db.raw<{ rows: unknown[] }>(`
        select c.oid::regclass::text as relation, pg_relation_size(c.oid) as size from pg_class c
          left join pg_index i on i.indexrelid = c.oid
         where coalesce(i.indrelid, c.oid) = any('{api_keys,developers,sessions,caller_changes}'::regclass[]) order by 1`);
      return rows;
    };
    const before = await sizes();
    for (const { prefix, developerId } of keys) {
      await world.db.transaction(async (transaction) => {
        // As each page does that finds its session.
        await transaction('sessions')
          .where({ developer_id: developerId })
          .update({ last_seen_at: transaction.raw('now()') });
        await revokeKey(transaction, prefix);
        await transaction('developers')
          .where({ id: developerId })
          .update({ suspended_at: transaction.raw('now()') });
        const { rows } = await transaction.raw<{ rows: unknown[] }>(`
          select relname from pg_stat_xact_user_tables
           where relname in ('api_keys', 'developers', 'sessions') and n_tup_upd > n_tup_hot_upd`);
        assert.deepEqual(rows, [], 'a new version is on the page of the old one, and no index has an entry for it');
      });
    }
    assert.deepEqual(await sizes(), before);
  });

  it('that finds no room is not made at all, says that the disk is full, and is counted by a server, which stays ready', async function () {
    if (!hasFullDevice()) skipWithout('/dev/full', this);
    const key = await world.newKey();
    await putOnFullDisk(world.db, world.postgres, 'caller_changes');
    try {
      const { code, stderr } = await runWithoutRedis(['keys', 'revoke', key.prefix], world.url);
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^catalog: This change did not complete: keys may work .+\ncatalog: The disk of PostgreSQL is full: could not extend .+ Nothing was changed\. Free .+\n$/,
      );
      assert.equal(await report(key), 503);
      await eventually('the failed revocation is counted', async () => {
        return (await metric('catalog_http_changes_failed_total')) === 1;
      });
      assert.equal((await world.service.get('/readyz')).status, 200);
      assert.equal(await statusOf(key), 200);
    } finally {
      await world.db.raw('truncate caller_changes');
    }
    assert.equal(await report(key), 200);
    assert.equal(await statusOf(key), 401);
  });
});
