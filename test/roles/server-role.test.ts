import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { generateToken } from '../../src/accounts/tokens.js';
import { prepareDemo } from '../../src/commands/demo/prepare-demo.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { listEvents, recordEvent, removeOldEvents } from '../../src/events/events.js';
import { revokeFoundKeys } from '../../src/keys/revoke.js';
import { createKey } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { createOwnKey, revokeOwnKey, rollOwnKey } from '../../src/keys/own-keys.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { readGuide, ROOT } from '../support/guides.js';
import { addresses } from '../support/http/addresses.js';
import { hashOf } from '../support/keys/key-hash.js';
import { startServer, type ServerProcess } from '../support/program.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import { send } from '../support/request.js';

/** Rows that a server removes sooner or later, by table, and how to find them. */
const OLD_ROWS = {
  sign_in_links: [
    "(hash, developer_id, expires_at) select sha256('old'), min(id), '2020-01-01Z' from developers",
    'expires_at',
  ],
  sign_ups: [
    "(hash, issuer, subject, expires_at) values (sha256('old'), 'https://i', 's', '2020-01-01Z')",
    'expires_at',
  ],
  sessions: [
    "(hash, developer_id, user_agent, signed_in_at) select sha256('old'), min(id), '', '2020-01-01Z' from developers",
    'signed_in_at',
  ],
  api_key_usage: ["select id, '2020-01-01Z', 1, 0, 0 from api_keys", 'hour'],
  events: ["(at, developer_id, kind, actor) values ('2020-01-01Z', 1, 'registered', 'operator')", 'at'],
} as const;

describe('a server with the rights that the guide grants, and no others', () => {
  let database: OpenTestDatabase;
  let redis: TestRedis;
  let server: ServerProcess;
  let key: string;
  let prefix: string;
  let serverUrl: string;

  before(async () => {
    [database, redis] = await Promise.all([openTestDatabase(), startRedis()]);
    const { db } = database;
    const [, section = assert.fail()] = (await readGuide('operating')).split('\n## Roles of the database\n');
    const grants = /```sql\n([\s\S]+?)```/.exec(section)?.[1] ?? assert.fail();
    await db.raw(grants.replace('…', 'secret'));
    await prepareDemo(db, fileURLToPath(ROOT).replace(/\/$/, ''));
    const { id } = await createDeveloper(db, { projectName: 'P', attributionRequired: false });
    ({ key, prefix } = await createKey(db, { developerId: id, planId: 'free' }));
    for (const [table, [rows]] of Object.entries(OLD_ROWS)) await db.raw(`insert into ${table} ${rows}`);
    const url = new URL(database.url);
    url.username = 'catalog_server';
    url.password = 'secret';
    serverUrl = url.href;
    server = await startServer({ DATABASE_URL: serverUrl, REDIS_URL: redis.url });
  });

  after(async () => {
    await database.db.raw('drop owned by catalog_server; drop role catalog_server');
    await Promise.all([database.close(), redis.stop()]);
  });

  async function statusOf(path: string): Promise<number> {
    return (await send(server.url, path, { headers: { 'x-api-key': key } })).status;
  }

  it('saves when keys were used, and removes what has expired and old events and usage, within 15 seconds of its start', async () => {
    const { db } = database;
    assert.equal(await statusOf('/api/v1/me'), 200);
    await eventually('the use is saved', async () => (await db('api_keys').whereNotNull('last_used_at')).length === 1);
    for (const [table, [, time]] of Object.entries(OLD_ROWS)) {
      const isOld = db.raw(`${time} < '2021-01-01Z'`);
      await eventually(`old rows of ${table} are gone`, async () => (await db(table).where(isOld)).length === 0);
    }
  });

  it('answers every operation', async () => {
    for (const seconds of [-60, -20 * 86_400, 30]) {
      const since = String(Math.floor(Date.now() / 1000) + seconds);
      for (const address of Object.values(addresses({ since }))) assert.equal(await statusOf(address), 200, address);
    }
  });

  it('creates, rolls and revokes keys for developers and finders, and changes nothing else of keys, developers and events', async () => {
    const db = openDatabase({
      address: serverUrl,
      applicationName: 'test',
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    try {
      const { id } = await createDeveloper(database.db, { projectName: 'Own', attributionRequired: false });
      const made = await createOwnKey(db, id, { label: null, expires: undefined, formHash: generateToken().hash });
      const rolling = { prefix: made.prefix, overlapSeconds: 60, formHash: generateToken().hash };
      const { successor } = await rollOwnKey(db, id, rolling);
      await revokeOwnKey(db, id, made.prefix);
      assert.equal((await revokeFoundKeys(db, [hashOf(successor.key)])).isChanged, true);
      await recordEvent(db, { developerId: id, kind: 'signed_in', actor: 'developer' });
      assert.deepEqual(
        (await listEvents(db, { developerId: id, limit: 10 })).map(({ kind, actor }) => `${kind} by ${actor}`),
        [
          'signed_in by developer',
          'revoked by finder',
          'revoked by developer',
          'rolled by developer',
          'created by developer',
          'created by developer',
          'registered by operator',
        ],
      );
      // Old events, and no others.
      await database.db.raw("update events set at = '2020-01-01Z' where developer_id <> ?", [id]);
      const old = (await database.db('events').whereNot({ developer_id: id }).pluck('id')).length;
      assert.ok(old > 0);
      assert.equal(await removeOldEvents(db), old);
      for (const sql of [
        'update developers set suspended_at = now()',
        "update api_keys set plan_id = 'pro'",
        'update events set actor = $$system$$',
        'delete from events',
      ]) {
        await assert.rejects(db.raw(sql), { code: '42501' }, sql);
      }
    } finally {
      await db.destroy();
    }
  });

  it('learns that a key is revoked, and saves when keys were used', async () => {
    await revokeKey(database.db, prefix);
    await eventually('the key is refused', async () => (await statusOf('/api/v1/me')) === 401);
    const { code, stdout } = await server.stop();
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /could not| lost\b/);
    const [used] = await database.db('api_keys').where({ prefix }).pluck<(string | null)[]>('last_used_at');
    assert.notEqual(used, null);
  });
});
