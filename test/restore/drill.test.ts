import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { ENTRY_COLUMNS } from '../../src/catalog/columns.js';
import { createClient, PositionRefused, type ChangesPage } from '../../src/client/client.js';
import { follow } from '../../src/client/follow.js';
import { retryPolicy } from '../../src/client/retry.js';
import { connectTo } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { installClock } from '../support/postgres/model-clock.js';
import { assertProblem } from '../support/problem.js';
import { runCommand } from '../support/programs/command.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

type Entry = ChangesPage['data'][number];

const HOUR = 3_600_000_000n;

// The database is dropped and made anew from a copy.
describe('a mirror of a database that goes back an hour', () => {
  const world = testWorld();
  let db: Knex;
  let name: string;
  let server: TestService;
  let key: string;
  let mirror: Map<string, Entry>;
  /** The mirror's position, in seconds, and the feed that it is of. */
  let position = Math.floor(Date.now() / 1000) - 7_200;
  let feedId: string | undefined;

  /** A backup of how things were an hour ago: 250 titles, of which the first was new. */
  before(async () => {
    ({ key } = await world.newKey());
    name = new URL(world.url).pathname.slice(1);
    const clock = await installClock(world.db);
    await clock.setOffset(-HOUR);
    await addTitles(world.db, 250);
    await world.db.destroy();
    await administer(`create database ${name}_backup template ${name}`);
    world.defer(() => administer(`drop database ${name}_backup`));
    connect();
    await db.raw("select setval('model.clock_offset', 0)");
    mirror = new Map();
    server = await world.startService();
    await catchUp();
  });

  after(() => db.destroy());

  /** Connects anew: a database with connections can be neither copied nor replaced. */
  function connect(): void {
    db = connectTo(world.url, { poolSize: 2 });
  }

  /** Runs SQL beside the service's database. */
  async function administer(...statements: string[]): Promise<void> {
    const url = new URL(world.url);
    url.pathname = '/postgres';
    const server = connectTo(url.href, { poolSize: 1 });
    for (const statement of statements) await server.raw(statement);
    await server.destroy();
  }

  async function restore(): Promise<void> {
    await db.destroy();
    await administer(`drop database ${name} with (force)`, `create database ${name} template ${name}_backup`);
    connect();
    // A clock does not go back with the data.
    await db.raw("select setval('model.clock_offset', 0)");
  }

  /** @returns the new feed start, in seconds */
  async function restartFeed(): Promise<number> {
    const { code, stdout } = await runCommand(['feed', 'restart', '--yes', '--json'], { DATABASE_URL: world.url });
    assert.equal(code, 0);
    return (JSON.parse(stdout) as { feed_start: number }).feed_start;
  }

  /** Follows the feed until nothing is waiting. @returns the number of entries */
  async function catchUp(): Promise<number> {
    let entries = 0;
    await follow({
      fetchPage: createClient({ baseUrl: server.url, key }),
      since: position,
      feedId,
      once: true,
      intervalMs: undefined,
      retryPolicy: retryPolicy(true),
      signal: new AbortController().signal,
      async store({ data, meta }, _since, _requestedAt, found) {
        for (const entry of data) mirror.set(entry.svc_id, entry);
        entries += data.length;
        position = meta.next_since;
        feedId = found;
      },
    });
    return entries;
  }

  async function catalogue(): Promise<Map<string, Entry>> {
    const rows = await db('titles').select<Entry[]>(ENTRY_COLUMNS);
    return new Map(rows.map((row) => [row.svc_id, row]));
  }

  function ask(since: number): Promise<Reply> {
    return send(server.url, `/api/v1/changes?since=${since}`, { headers: { authorization: `Bearer ${key}` } });
  }

  it('a mirror is refused by a server that kept running through a restore, takes a fresh copy, and ends equal', async () => {
    // What is lost: a title that changed, a title that came, and a title that changes again afterwards.
    await db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Changed, and lost' });
    await db('titles').where({ svc_id: 'title-0002' }).update({ title: 'Changed, and changed otherwise later' });
    await addTitles(db, 3, 'lost');
    await catchUp();
    assert.deepEqual(mirror, await catalogue());

    await restore();
    await eventually('the server is back', async () => (await ask(position)).status === 200);
    // Without a restart of the feed, the mirror never notices.
    await catchUp();
    assert.notDeepEqual(mirror, await catalogue());

    const feedStart = await restartFeed();
    assertProblem(await ask(position), 'since_out_of_window', { members: { oldest_since: feedStart } });
    const refused = position;
    await assert.rejects(catchUp(), (error) => {
      assert.ok(error instanceof PositionRefused);
      assert.equal(error.oldestSince, feedStart);
      const reason = `The position .* has left the window of the feed, which begins at ${feedStart} .*400 since_out_of_window: since is earlier than the time at which the catalogue was restored`;
      assert.match(error.message, new RegExp(reason));
      return true;
    });
    assert.equal(position, refused);

    mirror = await catalogue();
    feedId = undefined;
    // An hour before the copy is before the feed start.
    position = Math.floor(Date.now() / 1000) - 3_600;
    await assert.rejects(catchUp(), PositionRefused);
    await db('titles').where({ svc_id: 'title-0002' }).update({ title: 'New' });
    await addTitles(db, 210, 'after');
    position = feedStart;
    assert.equal(await catchUp(), 211);
    assert.deepEqual(mirror, await catalogue());
    assert.equal(await catchUp(), 0);
  });
});
