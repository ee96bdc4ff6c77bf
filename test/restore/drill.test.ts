import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import type { Answer } from '../../src/contract.js';
import { connectTo } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { installClock } from '../support/postgres/model-clock.js';
import { assertProblem } from '../support/problem.js';
import type { Outcome } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

type Entry = Answer<'getChanges'>['data'][number];

const HOUR = 3_600_000_000n;

// The mirror is the real follower. The database is dropped and made anew from a copy.
describe('a mirror of a database that goes back an hour', () => {
  const world = testWorld();
  let db: Knex;
  let name: string;
  let server: TestService;
  let state: string;
  let key: string;
  /** What the follower's lines add up to. */
  let mirror: Map<string, Entry>;

  const start = String(Math.floor(Date.now() / 1000) - 7_200);

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
    state = join(await temporaryFolder(), 'mirror.json');
    mirror = new Map();
    server = await world.startService();
    await follow('--since', start);
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

  /** Follows until nothing is waiting. */
  async function follow(...more: string[]): Promise<Outcome> {
    const args = ['follow', '--base-url', server.url, '--state', state, '--once', ...more];
    const outcome = await runCommand(args, { CATALOG_API_KEY: key });
    for (const line of outcome.stdout.split('\n').slice(0, -1)) {
      const entry = JSON.parse(line) as Entry;
      mirror.set(entry.svc_id, entry);
    }
    return outcome;
  }

  async function catalogue(): Promise<Map<string, Entry>> {
    const rows = await db('titles').select<Entry[]>('svc_id', 'media_type', 'title', 'updated_at', 'has_bundles');
    return new Map(rows.map((row) => [row.svc_id, row]));
  }

  async function savedPosition(): Promise<number> {
    return (JSON.parse(await readFile(state, 'utf8')) as { since: number }).since;
  }

  function ask(since: number): Promise<Reply> {
    return send(server.url, `/api/v1/changes?since=${since}`, { headers: { authorization: `Bearer ${key}` } });
  }

  it('a mirror is refused by a server that kept running through a restore, takes a fresh copy, and ends equal', async () => {
    // What is lost: a title that changed, a title that came, and a title that changes again afterwards.
    await db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Changed, and lost' });
    await db('titles').where({ svc_id: 'title-0002' }).update({ title: 'Changed, and changed otherwise later' });
    await addTitles(db, 3, 'lost');
    await follow();
    assert.deepEqual(mirror, await catalogue());

    await restore();
    await eventually('the server is back', async () => (await ask(await savedPosition())).status === 200);
    // Without a restart of the feed, the mirror never notices.
    assert.equal((await follow()).code, 0);
    assert.notDeepEqual(mirror, await catalogue());

    const feedStart = await restartFeed();
    const position = await savedPosition();
    assertProblem(await ask(position), 'since_out_of_window', { members: { oldest_since: feedStart } });
    const { code, stdout, stderr } = await follow();
    assert.deepEqual([code, stdout, await savedPosition()], [1, '', position]);
    assert.match(
      stderr,
      new RegExp(
        `\ncatalog: The position .* has left the window of the feed, which begins at ${feedStart} .*` +
          `400 since_out_of_window: since is earlier than the time at which the catalogue was restored.*` +
          `or to ${feedStart} if that is later\\.\n$`,
      ),
    );

    await rm(state);
    mirror = await catalogue();
    // An hour before the copy is before the feed start.
    assert.equal((await follow('--since', String(Math.floor(Date.now() / 1000) - 3_600))).code, 1);
    await db('titles').where({ svc_id: 'title-0002' }).update({ title: 'New' });
    await addTitles(db, 210, 'after');
    const mended = await follow('--since', String(feedStart));
    assert.deepEqual([mended.code, mended.stdout.split('\n').length - 1], [0, 211]);
    assert.deepEqual(mirror, await catalogue());
    assert.equal((await follow()).stdout, '');
  });
});
