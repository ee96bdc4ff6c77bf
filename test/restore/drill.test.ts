import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import pg from 'pg';
import type { Answer } from '../../src/contract.js';
import { installClock } from '../support/postgres/model-clock.js';
import { runCommand } from '../support/programs/command.js';
import { eventually } from '../support/eventually.js';
import { connectTo } from '../support/database.js';
import { assertProblem } from '../support/problem.js';
import type { Outcome } from '../support/program.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';
import { testWorld } from '../support/world.js';

type Entry = Answer<'getChanges'>['data'][number];

const HOUR = 3_600_000_000n;

// The mirror is the real follower. The database is dropped and made anew from a copy.
describe('a mirror of a database that goes back an hour', () => {
  const world = testWorld({ ownServer: true, each: true });
  let db: Knex;
  let servers: TestService[] = [];
  let state: string;
  let key: string;
  /** What the follower's lines add up to. */
  let mirror: Map<string, Entry>;

  beforeEach(async () => {
    ({ key } = await world.newKey());
    await world.db.destroy();
    connect();
    state = join(await temporaryFolder(), 'mirror.json');
    mirror = new Map();
  });

  afterEach(async () => {
    servers = [];
    await db.destroy();
  });

  /** Connects anew: a database with connections can be neither copied nor replaced. */
  function connect(): void {
    db = connectTo(world.url, { poolSize: 2 });
  }

  /** Runs SQL beside the service's database. */
  async function administer(...statements: string[]): Promise<void> {
    const url = new URL(world.url);
    url.pathname = '/postgres';
    const client = new pg.Client({ connectionString: url.href });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  }

  /** A backup of how things were an hour ago: 250 titles, of which the first was new. */
  async function backUpAnHourAgo(): Promise<void> {
    const clock = await installClock(db);
    await clock.setOffset(-HOUR);
    await addTitles(db, 250);
    await db.destroy();
    await administer('create database backup template catalog');
    connect();
    await clockIsRight();
  }

  /** A clock does not go back with the data. */
  async function clockIsRight(): Promise<void> {
    await db.raw("select setval('model.clock_offset', 0)");
  }

  async function restore(): Promise<void> {
    await db.destroy();
    await administer('drop database catalog with (force)', 'create database catalog template backup');
    connect();
    await clockIsRight();
  }

  /** @returns the feed's new beginning, in seconds */
  async function restartFeed(...more: string[]): Promise<number> {
    const { code, stdout } = await runCommand(['feed', 'restart', '--yes', '--json', ...more], {
      DATABASE_URL: world.url,
    });
    assert.equal(code, 0);
    return (JSON.parse(stdout) as { beginning: number }).beginning;
  }

  /** Follows until nothing is waiting. */
  async function follow(...more: string[]): Promise<Outcome> {
    const [server = assert.fail()] = servers;
    const outcome = await runCommand(['follow', '--base-url', server.url, '--state', state, '--once', ...more], {
      CATALOG_API_KEY: key,
    });
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

  function sorted(copy: Map<string, Entry>): Entry[] {
    return [...copy.values()].sort((a, b) => (a.svc_id < b.svc_id ? -1 : 1));
  }

  async function isEqual(): Promise<boolean> {
    return JSON.stringify(sorted(mirror)) === JSON.stringify(sorted(await catalogue()));
  }

  async function savedPosition(): Promise<number> {
    return (JSON.parse(await readFile(state, 'utf8')) as { since: number }).since;
  }

  function ask(since: number): Promise<Reply[]> {
    return Promise.all(
      servers.map(({ url }) =>
        send(url, `/api/v1/changes?since=${since}`, { headers: { authorization: `Bearer ${key}` } }),
      ),
    );
  }

  const start = String(Math.floor(Date.now() / 1000) - 7_200);

  /** What is lost: a title that changed, a title that came, and a title that changes again afterwards. */
  async function writeWhatIsLost(): Promise<void> {
    await db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Changed, and lost' });
    await db('titles').where({ svc_id: 'title-0002' }).update({ title: 'Changed, and changed otherwise later' });
    await addTitles(db, 3, 'lost');
  }

  async function writeAfterwards(): Promise<void> {
    await db('titles').where({ svc_id: 'title-0002' }).update({ title: 'New' });
    await addTitles(db, 210, 'after');
  }

  /** Every server refuses the mirror, which takes a fresh copy and follows it to its end. */
  async function assertRefusedAndMended(beginning: number): Promise<void> {
    const position = await savedPosition();
    for (const reply of await ask(position)) {
      assertProblem(reply, 'since_out_of_window', { members: { oldest_since: beginning } });
    }
    const before = new Map(mirror);
    const { code, stdout, stderr } = await follow();
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      new RegExp(
        `\ncatalog: The position .* has left the window of the feed, which begins at ${beginning} .*` +
          `400 since_out_of_window: since is earlier than the time at which the catalogue was restored.*` +
          `or to ${beginning} if that is later\\.\n$`,
      ),
    );
    assert.deepEqual([mirror, await savedPosition()], [before, position]);

    await rm(state);
    mirror = await catalogue();
    // An hour before the copy is before the start of the feed.
    assert.equal((await follow('--since', String(Math.floor(Date.now() / 1000) - 3_600))).code, 1);
    await writeAfterwards();
    const mended = await follow('--since', String(beginning));
    assert.deepEqual([mended.code, mended.stdout.split('\n').length - 1], [0, 211]);
    assert.ok(await isEqual());
    assert.equal((await follow()).stdout, '');
  }

  it('a mirror is refused by servers that kept running through a restore, takes a fresh copy, and ends equal', async () => {
    await backUpAnHourAgo();
    servers = [await world.startService(), await world.startService()];
    await follow('--since', start);
    await writeWhatIsLost();
    await follow();
    assert.ok(await isEqual());

    await restore();
    await eventually('the servers are back', async () =>
      (await ask(await savedPosition())).every(({ status }) => status === 200),
    );
    // Without a restart of the feed, the mirror never notices.
    assert.equal((await follow()).code, 0);
    assert.ok(!(await isEqual()));

    await assertRefusedAndMended(await restartFeed());
  });

  it('a mirror is refused even if the lost clock was two hours ahead, once the operator names its position', async () => {
    await backUpAnHourAgo();
    servers = [await world.startService()];
    await follow('--since', start);
    await db.raw("select setval('model.clock_offset', ?)", [String(2n * HOUR)]);
    await writeWhatIsLost();
    await follow();
    const position = await savedPosition();
    await servers[0]?.stop();
    await restore();
    const beginning = await restartFeed('--after', String(position));
    assert.ok(beginning > position);
    // On the port from which the mirror has its position.
    const { port } = new URL(servers[0]?.url ?? '');
    servers = [await world.startService({ settings: { PORT: port } })];
    await assertRefusedAndMended(beginning);
  });
});
