import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { restartFeed } from '../../src/catalog/restart.js';
import { systemClock, toSeconds, type Micros } from '../../src/platform/time/micros.js';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { openTestDatabase } from '../support/database.js';
import { startPostgres, type TestPostgres } from '../support/postgres.js';
import { assertProblem } from '../support/problem.js';
import { startServer, timesLogged, type ServerProcess } from '../support/program.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { send, type Reply } from '../support/request.js';
import { addTitles, changesOf } from '../support/titles.js';

// A replica that stands still looks like a replica of an abandoned database: neither ever hears of the restart.
describe('servers that read from a replica', () => {
  let primary: TestPostgres;
  let replica: TestReplica;
  let db: Knex;
  let servers: ServerProcess[];
  let key: string;

  before(async () => {
    primary = await startPostgres();
    db = openDatabase({
      address: primary.url,
      applicationName: 'test',
      poolSize: 2,
      acquireTimeoutMs: 10_000,
      statementTimeoutMs: 0,
    });
    const { id: developerId } = await createDeveloper(db, { projectName: 'Replica', attributionRequired: false });
    ({ key } = await createKey(db, { developerId, planId: 'scale' }));
    await insertTitle('before');
    replica = await startReplica(primary);
    const settings = { DATABASE_URL: primary.url, DATABASE_READ_URL: replica.url };
    servers = await Promise.all([startServer(settings), startServer(settings)]);
  });

  after(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await db.destroy();
  });

  async function insertTitle(svcId: string): Promise<void> {
    await db('titles').insert({ svc_id: svcId, media_type: 'movie', title: svcId });
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

  it('give no answer of one that has not replayed a restart of the feed', async () => {
    const start = systemClock() - 60_000_000n;
    await replica.pauseReplay();
    await insertTitle('unreplayed');
    await assertPages(start, ['before']);

    const { beginning } = await restartFeed(db);
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
    for (const server of servers) assert.equal(timesLogged(server, 'replica lost'), 0);
  });

  it('give no answer of one whose database was given up, and is still written to', async () => {
    const [current, givenUp] = await Promise.all([openTestDatabase(), openTestDatabase()]);
    const { id: developerId } = await createDeveloper(current.db, { projectName: 'Split', attributionRequired: false });
    const { key: otherKey } = await createKey(current.db, { developerId, planId: 'scale' });
    const server = await startServer({ DATABASE_URL: current.url, DATABASE_READ_URL: givenUp.url });
    const ids = async (since: Micros): Promise<string[]> => {
      const headers = { authorization: `Bearer ${otherKey}` };
      const page = changesOf(await send(server.url, `/api/v1/changes?since=${toSeconds(since)}`, { headers }));
      return page.data.map(({ svc_id: id }) => id);
    };
    try {
      const { beginning } = await restartFeed(current.db);
      await givenUp.db.raw("select setval('titles_last_stamp', ?)", [String(beginning + 1_000_000n)]);
      await addTitles(givenUp.db, 1, 'lost');
      assert.deepEqual(await ids(beginning), []);
      await addTitles(current.db, 1, 'after');
      assert.deepEqual(await ids(beginning), ['after-0001']);
    } finally {
      await server.stop();
      await Promise.all([current.close(), givenUp.close()]);
    }
  });
});
