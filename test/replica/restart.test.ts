import assert from 'node:assert/strict';
import { restartFeed } from '../../src/catalog/restart.js';
import { systemClock, toSeconds, type Micros } from '../../src/platform/time/micros.js';
import { assertProblem } from '../support/problem.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { addTitles, changesOf } from '../support/titles.js';
import { testWorld } from '../support/world.js';

// A replica that stands still looks like a replica of an abandoned database: neither receives the restart.
describe('servers that read from a replica', () => {
  const world = testWorld({ ownServer: true });
  let replica: TestReplica;
  let servers: TestService[];
  let key: string;

  before(async () => {
    ({ key } = await world.newKey());
    await insertTitle('before');
    replica = await startReplica(world.postgres);
    const settings = { DATABASE_READ_URL: replica.url };
    servers = [await world.startService({ settings }), await world.startService({ settings })];
  });

  async function insertTitle(svcId: string): Promise<void> {
    await world.db('titles').insert({ svc_id: svcId, media_type: 'movie', title: svcId });
  }

  /** What each server answers. */
  function ask(since: Micros): Promise<Reply[]> {
    return Promise.all(
      servers.map(({ url }) =>
        send(url, `/api/v1/changes?since=${toSeconds(since)}`, { headers: { authorization: `Bearer ${key}` } }),
      ),
    );
  }

  async function assertPages(since: Micros, ids: readonly string[]): Promise<void> {
    for (const reply of await ask(since)) {
      assert.deepEqual(
        changesOf(reply).data.map(({ svc_id: id }) => id),
        ids,
      );
    }
  }

  it('servers give no answer of a replica that has not replayed a restart of the feed', async () => {
    const start = systemClock() - 60_000_000n;
    await replica.pauseReplay();
    await insertTitle('unreplayed');
    await assertPages(start, ['before']);

    const { start: beginning } = await restartFeed(world.db);
    for (const reply of await ask(start)) {
      assertProblem(reply, 'since_out_of_window', { members: { oldest_since: toSeconds(beginning) } });
    }
    await assertPages(beginning, []);
    await insertTitle('after');
    await assertPages(beginning, ['after']);

    await replica.resumeReplay();
    await replica.caughtUp();
    await replica.pauseReplay();
    await insertTitle('after-replay');
    // Now it is used again, for what it has. The first entry after the beginning stands a microsecond later.
    await assertPages(beginning + 1n, []);
    for (const reply of await ask(start)) assert.equal(reply.status, 400);
    await replica.resumeReplay();
    for (const { changes } of servers) assert.ok(!changes.includes('replica lost'));
  });
});

describe('a server whose replica has a database that was given up', () => {
  const [current, givenUp] = [testWorld(), testWorld()];

  it('a server gives no answer of a replica of an abandoned database', async () => {
    const { key } = await current.newKey();
    const server = await current.startService({ settings: { DATABASE_READ_URL: givenUp.url } });
    const ids = async (since: Micros): Promise<string[]> => {
      const headers = { authorization: `Bearer ${key}` };
      const page = changesOf(await send(server.url, `/api/v1/changes?since=${toSeconds(since)}`, { headers }));
      return page.data.map(({ svc_id: id }) => id);
    };
    const { start: beginning } = await restartFeed(current.db);
    await givenUp.db.raw("select setval('titles_last_stamp', ?)", [String(beginning + 1_000_000n)]);
    await addTitles(givenUp.db, 1, 'lost');
    assert.deepEqual(await ids(beginning), []);
    await addTitles(current.db, 1, 'after');
    assert.deepEqual(await ids(beginning), ['after-0001']);
  });
});
