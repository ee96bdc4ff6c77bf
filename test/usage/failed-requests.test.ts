import assert from 'node:assert/strict';
import { ERROR_CODES } from '../../src/errors.js';
import {
  listFailures,
  removeOldFailures,
  writeFailures,
  type FailureKind,
  type NewFailure,
} from '../../src/usage/failed-requests.js';
import { FailureLog } from '../../src/usage/failure-log.js';
import { runCommand } from '../support/programs/command.js';
import { signIn } from '../support/http/visitor.js';
import { nextPageOf } from '../pages/page-html.js';
import { newPlan } from '../support/keys/new-key.js';
import { testWorld } from '../support/world.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALL = { limit: 10_000 };

describe('the failed requests of a developer', () => {
  const world = testWorld();

  async function newKey(developerId: number): Promise<{ keyId: number; prefix: string }> {
    const { prefix } = await world.newKey({ developerId });
    const [keyId = 0] = await world.db('api_keys').where({ prefix }).pluck<number[]>('id');
    return { keyId, prefix };
  }

  function kindOf(developerId: number, keyId: number, code: NewFailure['code'] = 'not_found'): FailureKind {
    return { developerId, keyId, code, operation: '' };
  }

  function failureOf(requestId = 'some-id'): Omit<NewFailure, keyof FailureKind | 'at'> {
    const request = { requestId, method: 'GET', path: '/api/v1/nope', durationMs: 1.5 };
    return { ...request, status: 404, detail: 'This path does not exist.' };
  }

  /** Fails once a second until a time. */
  async function fail(
    { developerId, keyId, code }: { developerId: number; keyId: number; code?: NewFailure['code'] },
    times: number,
    until: number,
  ): Promise<void> {
    const log = new FailureLog();
    for (let back = times - 1; back >= 0; back -= 1) {
      log.add(kindOf(developerId, keyId, code), until - back * 1_000, () => failureOf(`${until}-${back}`));
    }
    while (await log.save(world.db, 400));
  }

  it('a failed request is kept with what its answer and its line of the log say, and no key', async () => {
    const service = await world.startService();
    const developerId = await world.newDeveloper();
    const planId = await newPlan(world.db, 'failing', 2, 100);
    const { key, prefix, label } = await world.newKey({ developerId, planId, label: 'laptop' });
    const ask = async (path: string) => service.get(path, { headers: { 'x-api-key': key } });
    const unknown = await ask(`/api/v1/titles/nope?since=5&api_key=${key}`);
    await ask('/api/v1/me');
    await service.get('/api/v1/me', { headers: { authorization: 'Bearer svc_wrong' } });
    await service.stop();
    const [failure, ...others] = await listFailures(world.db, { developerId, ...ALL });
    assert.deepEqual(others, []);
    const { detail, request_id: requestId } = JSON.parse(unknown.text) as { detail: string; request_id: string };
    const { id, at, durationMs, ...rest } = failure ?? assert.fail();
    assert.ok(id > 0);
    assert.deepEqual(rest, {
      requestId,
      method: 'GET',
      path: '/api/v1/titles/nope?since=5',
      operation: 'getTitle',
      status: 404,
      code: 'title_not_found',
      detail,
      keyPrefix: prefix,
      keyLabel: label,
    });
    const line = service.logged.find((each) => each.includes(requestId)) ?? assert.fail();
    assert.equal((JSON.parse(line) as { duration_ms: number }).duration_ms, durationMs);
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < DAY_MS);
  });

  it('of each kind of failure, the first 20 of an hour are kept, and then one a second', async () => {
    const [one, other] = [await world.newDeveloper(), await world.newDeveloper()];
    const [{ keyId }, { keyId: second }, { keyId: otherKey }] = [
      await newKey(one),
      await newKey(one),
      await newKey(other),
    ];
    const log = new FailureLog();
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
    for (let n = 0; n < 10_000; n += 1) log.add(kindOf(one, keyId), hour + n / 10, () => failureOf(`flood-${n}`));
    for (const at of [1_000, 1_001, 1_999, 2_000])
      log.add(kindOf(one, keyId), hour + at, () => failureOf(`after-${at}`));
    for (let n = 0; n < 21; n += 1) log.add(kindOf(one, keyId), hour + HOUR_MS, () => failureOf(`next-${n}`));
    log.add(kindOf(one, keyId, 'rate_limit_exceeded'), hour + 500, () => failureOf('code'));
    log.add({ ...kindOf(one, keyId), operation: 'getMe' }, hour + 500, () => failureOf('operation'));
    log.add(kindOf(one, second), hour + 500, () => failureOf('key'));
    log.add(kindOf(other, otherKey), hour + 500, () => failureOf('developer'));
    assert.equal(await log.save(world.db, 1_000), false);
    const idsOf = async (developerId: number): Promise<string[]> =>
      (await listFailures(world.db, { developerId, ...ALL })).map(({ requestId }) => requestId).toSorted();
    const first20 = (name: string): string[] => Array.from({ length: 20 }, (_, n) => `${name}-${n}`);
    assert.deepEqual(
      await idsOf(one),
      [...first20('flood'), ...first20('next'), 'after-1000', 'after-2000', 'code', 'key', 'operation'].toSorted(),
    );
    assert.deepEqual(await idsOf(other), ['developer']);
  });

  it('a loop of one kind evicts nothing but its own, and 1,000 of 7 days are kept of a developer', async () => {
    const [developerId, other] = [await world.newDeveloper(), await world.newDeveloper()];
    const [{ keyId, prefix }, { keyId: second, prefix: its }] = [await newKey(developerId), await newKey(developerId)];
    const { keyId: otherKey } = await newKey(other);
    const now = Date.now();
    const kept = async (keyPrefix?: string) => listFailures(world.db, { developerId, keyPrefix, ...ALL });
    await fail({ developerId, keyId: second }, 3, now - 1_000_000);
    await fail({ developerId, keyId, code: 'title_not_found' }, 2, now - 900_000);
    await Promise.all([
      fail({ developerId, keyId }, 150, now - 1_000),
      fail({ developerId, keyId, code: 'rate_limit_exceeded' }, 150, now - 500),
    ]);
    await fail({ developerId, keyId }, 1, now);
    assert.deepEqual([(await kept(prefix)).length, (await kept(its)).length], [202, 3]);
    const [latest] = await kept();
    assert.equal(latest?.requestId, `${now}-0`);
    const times = (await kept()).map(({ at }) => at);
    assert.deepEqual(times, times.toSorted().toReversed());
    const requestId = `${now - 500}-77`;
    const found = await listFailures(world.db, { developerId, requestId, ...ALL });
    assert.deepEqual([found.length, found[0]?.keyPrefix], [1, prefix]);
    assert.deepEqual(await listFailures(world.db, { developerId: other, requestId, ...ALL }), []);
    for (const code of Object.keys(ERROR_CODES) as NewFailure['code'][]) {
      await fail({ developerId, keyId: second, code }, 100, now - 2_000_000);
      await fail({ developerId, keyId, code }, 100, now - 2_000_000);
    }
    // The list shows no more of them anyway.
    assert.equal((await world.db('failed_requests').where({ developer_id: developerId })).length, 1_000);
    assert.equal((await kept()).length, 1_000);
    for (const days of [0, 6.9, 7.1, 30]) await fail({ developerId: other, keyId: otherKey }, 1, now - days * DAY_MS);
    const ofOther = { developerId: other, ...ALL };
    assert.equal((await listFailures(world.db, ofOther)).length, 2);
    const count = async (): Promise<number> =>
      (await world.db('failed_requests').where({ developer_id: other })).length;
    assert.equal(await count(), 4);
    while (await removeOldFailures(world.db, 1));
    assert.deepEqual([await count(), (await listFailures(world.db, ofOther)).length], [2, 2]);
  });

  it('failures that could not be written are written later, with those added meanwhile, and those of a deleted key are left out', async () => {
    const developerId = await world.newDeveloper();
    const [{ keyId }, { keyId: gone }] = [await newKey(developerId), await newKey(developerId)];
    const log = new FailureLog();
    const now = Date.now();
    log.add(kindOf(developerId, keyId), now - 9_000, () => failureOf('first'));
    log.add(kindOf(developerId, keyId), now - 7_000, () => failureOf('second'));
    // A step for each.
    assert.equal(await log.save(world.db, 1), true);
    await world.db.raw('alter table failed_requests rename to away');
    try {
      const saving = log.save(world.db, 1);
      log.add(kindOf(developerId, keyId), now - 5_000, () => failureOf('third'));
      await assert.rejects(saving, { code: '42P01' });
    } finally {
      await world.db.raw('alter table away rename to failed_requests');
    }
    log.add(kindOf(developerId, gone), now - 3_000, () => failureOf('gone'));
    await world.db('api_keys').where({ id: gone }).delete();
    const saving = log.save(world.db, 10);
    log.add(kindOf(developerId, keyId), now, () => failureOf('fourth'));
    for (let more = await saving; more; more = await log.save(world.db, 10));
    const kept = await listFailures(world.db, { developerId, ...ALL });
    assert.deepEqual(
      kept.map(({ requestId }) => requestId),
      ['fourth', 'third', 'second', 'first'],
    );
  });

  it('"requests" prints the failed requests of a developer, or the one with an id', async () => {
    const developerId = await world.newDeveloper();
    const { keyId, prefix } = await newKey(developerId);
    await fail({ developerId, keyId }, 2, 1_000 * Math.floor(Date.now() / 1_000));
    const run = (...args: string[]) => runCommand(['requests', ...args], { DATABASE_URL: world.url });
    const { stdout } = await run('--developer', String(developerId));
    assert.equal(stdout.trimEnd().split('\n').length, 3);
    assert.match(stdout, new RegExp(`${prefix} +GET /api/v1/nope +404 +not_found +\\d+-0 +This path does not exist`));
    const { requests } = JSON.parse((await run('--developer', String(developerId), '--json')).stdout) as {
      requests: { request_id: string; duration_ms: number }[];
    };
    const [, first] = requests;
    assert.equal(first?.duration_ms, 1.5);
    const one = await run('--developer', String(developerId), '--request-id', first.request_id);
    assert.ok(one.stdout.trimEnd().split('\n').length === 2 && one.stdout.includes(first.request_id));
    assert.deepEqual([(await run('--developer', '999999')).code, (await run()).code], [1, 2]);
  });

  it('the settings list the failed requests of all keys or of one, and find one by its id, for their developer alone', async () => {
    const service = await world.startService();
    const developerId = await world.newDeveloper();
    const [{ keyId, prefix }, { keyId: other, prefix: its }] = [await newKey(developerId), await newKey(developerId)];
    const now = Date.now();
    await fail({ developerId, keyId }, 60, now - 100_000);
    await fail({ developerId, keyId: other }, 1, now);
    const [visitor, stranger] = await Promise.all(
      [developerId, await world.newDeveloper()].map((id) => signIn(service, id)),
    );
    let next: string | undefined;
    const rowsOf = async (path: string, as = visitor): Promise<number> => {
      const reply = (await as?.get(path)) ?? assert.fail();
      assert.equal(reply.status, 200, path);
      next = nextPageOf(reply);
      return reply.text.split('<code>GET /api/v1/nope</code>').length - 1;
    };
    const path = '/settings/usage/failed';
    assert.deepEqual([await rowsOf(path), await rowsOf(next ?? '')], [50, 11]);
    assert.deepEqual([await rowsOf(`${path}?key=${prefix}`), await rowsOf(next ?? '')], [50, 10]);
    assert.equal(await rowsOf(`${path}?key=${its}`), 1);
    assert.equal(await rowsOf(`${path}?request=+${now - 100_000}-7+`), 1);
    const own = 'ABCD1234-5678-4a8e-9f7b-0c1d2e3f4a50';
    await writeFailures(world.db, [
      { ...kindOf(developerId, keyId, 'invalid_api_key'), ...failureOf(own.toLowerCase()), at: now - 2 * HOUR_MS },
    ]);
    for (const pasted of [own, `"${own}",`, `"request_id": "${own}"`, own.slice(0, 8), ` ${own.toLowerCase()},`]) {
      assert.equal(await rowsOf(`${path}?request=${encodeURIComponent(pasted)}`), 1, pasted);
    }
    const hour = new Date(now - 2 * HOUR_MS).toISOString().slice(0, 13);
    for (const [query, rows] of [
      ['code=invalid_api_key', 1],
      ['code=not_found&operation=other', 50],
      ['operation=getMe', 0],
      [`hour=${hour}:00`, 1],
      [`hour=${hour}:00&key=${its}`, 0],
      ['hour=2026-02-31T04:00&code=invalid_api_key&key=&operation=&request=', 1],
    ] as const) {
      assert.equal(await rowsOf(`${path}?${query}`), rows, query);
    }
    const none = await visitor?.get(`${path}?request=nothing`);
    assert.match(none?.text ?? '', /<p class="empty">Not kept\. After the first 20 of a kind/);
    assert.equal(await rowsOf(`${path}?request=${now - 100_000}-7`, stranger), 0);
    assert.equal(await rowsOf(`${path}?key=${prefix}`, stranger), 0);
  });
});
