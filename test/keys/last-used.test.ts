import assert from 'node:assert/strict';
import { createDeveloper } from '../../src/developers/developers.js';
import type { Caller } from '../../src/admission/callers.js';
import { callerLoader } from '../../src/admission/caller-loader.js';
import { createKey, listKeys } from '../../src/keys/keys.js';
import { revokeKey } from '../../src/keys/revoke.js';
import { LastUsed } from '../../src/keys/last-used.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { hashOf } from '../support/keys/key-hash.js';
import { startService, type TestService } from '../support/service.js';

const EARLY = Date.parse('2026-11-20T10:00:00.123Z');
const MIDDLE = Date.parse('2026-11-20T11:00:00.456Z');
const LATE = Date.parse('2026-11-20T12:00:00.789Z');

const HOUR_MS = 3_600_000;

describe('the times at which keys were last used', () => {
  let database: OpenTestDatabase;
  let developerId: number;

  before(async () => {
    database = await openTestDatabase();
    ({ id: developerId } = await createDeveloper(database.db, { projectName: 'P', attributionRequired: false }));
  });

  after(() => database.close());

  function find(key: string): Promise<Caller | undefined> {
    return callerLoader(database.db, 1)(hashOf(key));
  }

  async function newKey(): Promise<{ id: number; prefix: string; key: string }> {
    const { key, prefix } = await createKey(database.db, { developerId, planId: 'free' });
    const caller = await find(key);
    return { id: caller?.keyId ?? 0, prefix, key };
  }

  async function lastUsed(prefix: string): Promise<string | null | undefined> {
    return (await listKeys(database.db)).find((record) => record.prefix === prefix)?.lastUsedAt;
  }

  /** The texts of the queries that something sends. */
  async function queriesOf(act: () => Promise<unknown>): Promise<string[]> {
    const queries: string[] = [];
    const note = ({ sql }: { sql: string }): void => void queries.push(sql);
    database.db.on('query', note);
    await act();
    database.db.off('query', note);
    return queries;
  }

  it('are written in one statement, however many keys and requests', async () => {
    const keys = [await newKey(), await newKey(), await newKey()] as const;
    const times = new LastUsed();
    for (let i = 0; i < 1_000; i += 1) for (const { id } of keys) times.touch(id, EARLY);
    times.touch(keys[0].id, LATE);
    times.touch(keys[1].id, MIDDLE);
    const queries = await queriesOf(async () => {
      assert.equal(await times.flush(database.db), 3);
    });
    assert.equal(queries.length, 1);
    assert.deepEqual(await Promise.all(keys.map(({ prefix }) => lastUsed(prefix))), [
      '2026-11-20T12:00:00.789000Z',
      '2026-11-20T11:00:00.456000Z',
      '2026-11-20T10:00:00.123000Z',
    ]);
  });

  it('are written once: nothing is sent when nothing was used', async () => {
    const { id } = await newKey();
    const times = new LastUsed();
    times.touch(id, EARLY);
    await times.flush(database.db);
    assert.deepEqual(
      await queriesOf(async () => {
        assert.equal(await times.flush(database.db), 0);
      }),
      [],
    );
  });

  it('never step back, also with several writers', async () => {
    const { id, prefix } = await newKey();
    const [one, two] = [new LastUsed(), new LastUsed()];
    one.touch(id, LATE);
    one.touch(id, EARLY);
    two.touch(id, MIDDLE);
    await one.flush(database.db);
    await two.flush(database.db);
    assert.equal(await lastUsed(prefix), '2026-11-20T12:00:00.789000Z');
  });

  it('are written by many processes at once, which used the same keys in different orders', async () => {
    // So many that PostgreSQL looks each used one up, in the order that it was given.
    const { rows: keys } = await database.db.raw<{ rows: { id: number }[] }>(
      `insert into api_keys (prefix, hash, developer_id, plan_id)
       select 'svc_' || lpad(n::text, 8, '0'), sha256(n::text::bytea), ?, 'free' from generate_series(1, 20000) as n
       returning id`,
      [developerId],
    );
    await database.db.raw('analyze api_keys');
    const ids = keys.slice(0, 300).map(({ id }) => id);
    for (let round = 0; round < 10; round += 1) {
      const counts = await Promise.all(
        [ids, ids.toReversed(), ids, ids.toReversed()].map((order, process) => {
          const times = new LastUsed();
          for (const id of order) times.touch(id, LATE + round * 10 + process);
          return times.flush(database.db);
        }),
      );
      assert.deepEqual(counts, [300, 300, 300, 300]);
    }
    const { rows } = await database.db.raw<{ rows: { at: string }[] }>(
      'select distinct last_used_at as at from api_keys where id = any(?)',
      [ids],
    );
    assert.deepEqual(rows, [{ at: '2026-11-20T12:00:00.882000Z' }]);
  });

  it('are kept when they cannot be written, and do not replace later ones', async () => {
    const [a, b] = [await newKey(), await newKey()];
    const times = new LastUsed();
    times.touch(a.id, EARLY);
    times.touch(b.id, EARLY);
    await database.db.raw('alter table api_keys rename to mislaid');
    try {
      const failing = assert.rejects(times.flush(database.db), /relation "api_keys" does not exist/);
      times.touch(b.id, LATE);
      await failing;
    } finally {
      await database.db.raw('alter table mislaid rename to api_keys');
    }
    assert.equal(await times.flush(database.db), 2);
    assert.equal(await lastUsed(a.prefix), '2026-11-20T10:00:00.123000Z');
    assert.equal(await lastUsed(b.prefix), '2026-11-20T12:00:00.789000Z');
  });

  it('are written for a key that was revoked meanwhile, without bringing it back', async () => {
    const { id, prefix, key } = await newKey();
    const times = new LastUsed();
    times.touch(id, EARLY);
    await revokeKey(database.db, prefix);
    assert.equal(await times.flush(database.db), 1);
    assert.equal(await lastUsed(prefix), '2026-11-20T10:00:00.123000Z');
    assert.equal(await find(key), undefined);
  });

  describe('of a service', () => {
    /** A key of the suite's database, asked for by a service on it. */
    async function serveOn(flushIntervalMs: number): Promise<TestService> {
      return startService({ databaseUrl: database.url, now: () => BigInt(LATE) * 1000n, flushIntervalMs });
    }

    it('are noted by requests whose key is valid, by no write, and written when it stops', async () => {
      const service = await serveOn(HOUR_MS);
      try {
        const unused = await newKey();
        for (const key of [service.key, 'wrong']) await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
        await service.get('/api/v1/me', { headers: {} });
        await service.get('/api/v1/nope');
        assert.ok(
          service.queries.every((sql) => !/\b(?:insert|update|delete|merge)\b/i.test(sql)),
          service.queries.join('\n'),
        );
        const used = service.key.slice(0, unused.prefix.length);
        assert.equal(await lastUsed(used), null);
        await service.stop();
        assert.equal(await lastUsed(used), '2026-11-20T12:00:00.789000Z');
        assert.equal(await lastUsed(unused.prefix), null);
      } finally {
        await service.stop();
      }
    });

    it('are written while it runs', async () => {
      const service = await serveOn(20);
      try {
        assert.equal((await service.get('/api/v1/me')).status, 200);
        await eventually(
          'the time is written',
          async () => (await lastUsed(service.key.slice(0, 12))) === '2026-11-20T12:00:00.789000Z',
        );
        // The time of a later use, too.
        const { key, prefix } = await newKey();
        await service.get('/api/v1/nope', { headers: { 'x-api-key': key } });
        await eventually('a later time is written', async () => (await lastUsed(prefix)) !== null);
      } finally {
        await service.stop();
      }
    });
  });
});
