import assert from 'node:assert/strict';
import { restartFeed } from '../../src/catalog/restart.js';
import { openDatabase } from '../../src/platform/postgres/database.js';
import { readFromReplica } from '../../src/platform/postgres/replica.js';
import { MICROS_PER_SECOND, systemClock, toSeconds, type Micros } from '../../src/platform/time/micros.js';
import { scrape } from '../support/http/exposition.js';
import { assertReadiness } from '../support/http/readiness.js';
import { eventually } from '../support/eventually.js';
import { withClient } from '../support/postgres.js';
import { startReplica, type TestReplica } from '../support/postgres/replica.js';
import { assertProblem } from '../support/problem.js';
import { runCommand } from '../support/programs/command.js';
import { send, type Reply } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { addTitleAt, emptyCatalogue } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const DAY = 86_400n * MICROS_PER_SECOND;

describe('reading from a replica', () => {
  const world = testWorld({ ownServer: true });
  let replica: TestReplica;
  let server: TestService;
  let key: string;

  before(async () => {
    ({ key } = await world.newKey());
    await insertTitle('before');
    replica = await startReplica(world.postgres);
    // Its bounds on the replica are a part of that on a request.
    const settings = { METRICS_ADDRESS: '127.0.0.1:0', DATABASE_READ_URL: replica.url, REQUEST_TIMEOUT_MS: '10000' };
    server = await world.startService({ settings });
  });

  async function insertTitle(svcId: string): Promise<void> {
    await world.db('titles').insert({ svc_id: svcId, media_type: 'movie', title: svcId });
  }

  function get(path: string): Promise<Reply> {
    return send(server.url, `/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
  }

  function timesLogged(change: string): number {
    return server.changes.filter((each) => each === change).length;
  }

  async function titles(): Promise<number> {
    return ((await get('/stats')).json as { data: { titles: number } }).data.titles;
  }

  async function followed(since: number): Promise<string[]> {
    const { status, json } = await get(`/changes?since=${since}`);
    assert.equal(status, 200);
    return (json as { data: { svc_id: string }[] }).data.map(({ svc_id }) => svc_id);
  }

  /** Requires that a position is refused as one from before a restart of the feed. */
  async function assertBefore(feedStart: Micros): Promise<void> {
    const members = { oldest_since: toSeconds(feedStart) };
    assertProblem(await get(`/changes?since=${hourAgo}`), 'since_out_of_window', { members });
  }

  const hourAgo = Math.floor(Date.now() / 1000) - 3600;
  const weeksAgo = Math.floor(Date.now() / 1000) - 20 * 86_400;

  it('the feed and the counts are read from the replica, and a title that it lacks from the primary', async () => {
    await replica.pauseReplay();
    await insertTitle('unreplayed');
    assert.deepEqual(await followed(hourAgo), ['before']);
    assert.equal(await titles(), 1);
    assert.equal((await get('/titles/unreplayed')).status, 200);
    assert.equal((await get('/titles/nowhere')).status, 404);
    await replica.resumeReplay();
    await replica.caughtUp();
    assert.deepEqual(await followed(hourAgo), ['before', 'unreplayed']);
    assert.equal(await titles(), 2);
  });

  it('a replica is behind since it last had everything, however long nobody has written', async () => {
    const lag = async () => (await scrape(`${server.operatorUrl}/metrics`)).series.get('catalog_replica_lag_seconds');
    await withClient(replica.url, (client) =>
      eventually('nobody has written for two seconds', async () => {
        const { rows } = await client.query<{ isOld: boolean }>(
          `select clock_timestamp() - pg_last_xact_replay_timestamp() > '2 s' as "isOld"`,
        );
        return rows[0]?.isOld;
      }),
    );
    const caughtUpAfter = performance.now();
    await eventually('the replica is not behind', async () => (await lag()) === 0);
    await replica.pauseReplay();
    await world.db('people').insert({ svc_id: 'late', name: 'Late' });
    let behind = 0;
    await eventually('the replica is behind', async () => (behind = (await lag()) ?? 0) > 0);
    assert.ok(behind <= (performance.now() - caughtUpAfter) / 1_000, String(behind));
    await replica.resumeReplay();
    await eventually('the replica is not behind', async () => (await lag()) === 0);
  });

  it('a page whose position may be moved up is read from the primary', async () => {
    await replica.pauseReplay();
    await insertTitle('moved');
    assert.deepEqual(await followed(weeksAgo), ['before', 'unreplayed', 'moved']);
    await replica.resumeReplay();
    await replica.caughtUp();
  });

  it('requests fall back to the primary while the replica is dead, and return to it', async () => {
    await replica.kill();
    // No request is needed to detect that, nor the return.
    await eventually('the replica is lost', () => timesLogged('replica lost') === 1);
    await insertTitle('while-dead');
    for (let request = 0; request < 20; request += 1) {
      assert.equal((await followed(hourAgo)).at(-1), 'while-dead');
    }
    assert.equal(timesLogged('replica lost'), 1);
    await assertReadiness(server.url, ['database', 'replica'], ['replica']);

    await replica.restart();
    await eventually('the replica is used again', () => timesLogged('replica back') === 1);
    await replica.caughtUp();
    await replica.pauseReplay();
    await insertTitle('after-return');
    assert.equal((await followed(hourAgo)).at(-1), 'while-dead');
    await replica.resumeReplay();
  });

  it('requests fall back to the primary when the replica is frozen', async () => {
    await replica.caughtUp();
    replica.pause();
    try {
      // At once, so that each of them notices the loss, which is reported once.
      const paths = [`/changes?since=${hourAgo}`, '/stats', '/titles/before'];
      const replies = await Promise.all(paths.map((path) => get(path)));
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 200, 200],
      );
    } finally {
      replica.resume();
    }
    await eventually('the replica is used again', () => timesLogged('replica back') === 2);
    assert.equal(timesLogged('replica lost'), 2);
    await assertReadiness(server.url, ['database', 'replica'], []);
  });

  // A replica that stands still looks like a replica of an abandoned database: neither receives the restart.
  it('a server gives no answer of a replica that has not replayed a restart of the feed', async () => {
    await replica.caughtUp();
    await replica.pauseReplay();
    await insertTitle('not-replayed');
    assert.equal((await followed(hourAgo)).at(-1), 'after-return');
    const { feedStart } = await restartFeed(world.db);
    await assertBefore(feedStart);
    assert.deepEqual(await followed(toSeconds(feedStart)), []);
    await insertTitle('after');
    assert.deepEqual(await followed(toSeconds(feedStart)), ['after']);

    await replica.resumeReplay();
    await replica.caughtUp();
    await replica.pauseReplay();
    await insertTitle('after-replay');
    // Now it is used again, for what it has. The first entry after the feed start stands a microsecond later.
    assert.deepEqual(await followed(toSeconds(feedStart + 1n)), []);
    await assertBefore(feedStart);
    await replica.resumeReplay();
    assert.equal(timesLogged('replica lost'), 2);
  });

  it('no query waits for a replica that is lost, until a check finds it back', async () => {
    const handle = openDatabase({
      address: replica.url,
      applicationName: 'test',
      poolSize: 1,
      acquireTimeoutMs: 60_000,
      statementTimeoutMs: 60_000,
      accept: () => undefined,
    });
    try {
      const states: string[] = [];
      const read = readFromReplica(world.db, handle, (state) => states.push(state));
      let failures = 0;
      const ask = () =>
        read((db) => {
          if (db === world.db) return Promise.resolve('primary');
          return failures++ < 1 ? Promise.reject(new Error('cancelled')) : Promise.resolve('replica');
        });
      assert.deepEqual([await ask(), await ask(), failures, states], ['primary', 'primary', 1, ['lost']]);
      await read.check();
      assert.deepEqual([await ask(), states], ['replica', ['lost', 'up']]);
    } finally {
      await handle.destroy();
    }
  });

  it('a replica that was never reached is lost from the start', async () => {
    const nowhere = { DATABASE_READ_URL: 'postgres://nobody@127.0.0.1:1/nothing' };
    const { url } = await world.startService({ settings: nowhere });
    await assertReadiness(url, ['database', 'replica'], ['replica']);
  });

  it('commands that only add up read a replica', async () => {
    for (const args of [['stats'], ['usage'], ['usage', '--by-key', '--developer', '1']]) {
      const { code, stderr } = await runCommand([...args, '--json'], { DATABASE_URL: replica.url });
      assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    }
  });

  it('an export from a replica has a position before every entry that it lacks, even if it lags by days', async () => {
    await emptyCatalogue(world.db);
    const now = systemClock();
    await addTitleAt(world.db, 'old', now - 40n * DAY);
    await replica.caughtUp();
    await replica.pauseReplay();
    const missing = now - 3n * DAY;
    await addTitleAt(world.db, 'missing', missing);
    const { code, stderr } = await runCommand(['export', '--kind', 'titles', '--json'], { DATABASE_URL: replica.url });
    assert.equal(code, 0, stderr);
    const { rows, follow_from: since } = JSON.parse(stderr) as { rows: number; follow_from: number };
    assert.equal(rows, 1);
    assert.ok(since < toSeconds(missing) && since > toSeconds(now - 30n * DAY), String(since));
  });
});
