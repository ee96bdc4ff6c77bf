import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { withAdvice } from '../../../src/errors.js';
import { repairCounts } from '../../../src/catalog/counts.js';
import { createClient, createTitleCounter, PositionRefused } from '../../../src/client/client.js';
import { TemporaryFailure } from '../../../src/client/retry.js';
import { MirrorStatus } from '../../../src/commands/mirrors/mirror-status.js';
import { systemClock } from '../../../src/platform/time/micros.js';
import { eventually } from '../../support/eventually.js';
import { listenLocally } from '../../support/http/local-server.js';
import { freePort } from '../../support/programs/free-port.js';
import { startProxy } from '../../support/proxies/altering-proxy.js';
import { addTitleAt, addTitles } from '../../support/titles.js';
import { mirrorWorld } from './mirror-world.js';

const DAY = 86_400_000_000n;

describe('catalog mirror', () => {
  const world = mirrorWorld();
  const { succeed, fail, start } = world;

  it('a mirror that has more to read is not ready before it has had everything once', async () => {
    const status = new MirrorStatus();
    const { url, stop } = await listenLocally(createServer((request, response) => status.answer(request, response)));
    const statuses: number[] = [(await fetch(`${url}/readyz`)).status];
    for (const hasMore of [true, false, true]) {
      status.observe({ kind: 'stored', entries: 200, position: 1, hasMore, requestedAt: Date.now() });
      statuses.push((await fetch(`${url}/readyz`)).status);
    }
    await stop();
    assert.deepEqual(statuses, [503, 503, 200, 200]);
  });

  it('a mirror starts from the newest copy, follows the feed from its position, and continues there next time', async () => {
    const manifest = await world.publishTitles(300);
    await addTitles(world.service.db, 5, 'later');
    const first = await succeed();
    assert.ok(first.includes(`Loaded the copy of ${manifest.created_at}: 300 inserted, 0 changed, 0 deleted.`), first);
    assert.equal(await world.requireEqual(), 305);

    await world.service
      .db('titles')
      .where({ svc_id: 'title-0001' })
      .update({ title: 'Changed\t"by" \\N a \u{1F3AC} writer' });
    await addTitles(world.service.db, 450, 'more');
    const second = await succeed();
    assert.doesNotMatch(second, /Loaded/);
    assert.equal(await world.requireEqual(), 755);
    assert.deepEqual(
      world.host.requests.map(({ path, hasKey }) => [path.replace(/-\d+-\w+/, '-N'), hasKey]),
      [
        ['/manifest.json', false],
        ['/titles-N.ndjson.gz', false],
      ],
      'another host gets no key, and the copy is taken once',
    );
  });

  it('a mirror refuses to start from a feed that lacks old titles, and says what to do', async () => {
    await addTitles(world.service.db, 5);
    await addTitleAt(world.service.db, 'old', systemClock() - 40n * DAY);
    await repairCounts(world.service.db);
    assert.match(
      await fail(),
      /No copy is published at .*, and the feed alone does not have every title\. .*catalog export --publish/,
    );
    assert.equal(await world.state(), undefined);
  });

  it('a mirror loads the newest copy by itself after 31 days away, and reports what has changed', async () => {
    await world.publishTitles(3);
    await succeed();
    await world.setClock(31n * DAY);
    await world.service.db('titles').where({ svc_id: 'title-0003' }).update({ has_bundles: true });
    await addTitles(world.service.db, 2, 'later');
    await world.host.publish(world.service);
    const said = await succeed();
    assert.match(said, /The feed no longer accepts the position .*\. Loading the newest copy\.\n/);
    assert.match(said, /Loaded the copy of .*: 2 inserted, 1 changed, 0 deleted\./);
    await world.requireEqual();
  });

  it('a mirror loads a copy that was published after a restore, and keeps privileges and views of its table', async () => {
    await world.publishTitles(40);
    await addTitles(world.service.db, 4, 'later');
    await succeed();
    await world.mirror.db.raw('create view catalog_mirror.movies as select * from catalog_mirror.titles');
    await world.restoreBackup();
    assert.match(
      await fail(),
      /The newest copy ends at .*, before the feed begins at .*\. Ask the operator of the service to publish a new one\./,
    );
    assert.equal((await world.mirror.db.withSchema('catalog_mirror').from('titles')).length, 44);
    await world.host.publish(world.service);
    assert.match(await succeed(), /Loaded the copy of .*: 0 inserted, 1 changed, 4 deleted\./);
    await world.requireEqual();
    const { rows } = await world.mirror.db.raw<{ rows: [{ count: number }] }>(
      'select count(*) from catalog_mirror.movies',
    );
    assert.equal(rows[0].count, 40);
  });

  it('a mirror reports its state by metrics and /readyz, also while it waits for a copy from after a restore, and loads it', async () => {
    await world.publishTitles(10);
    const port = await freePort();
    const program = await start('--metrics-address', `127.0.0.1:${port}`);
    const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
    await eventually('the mirror is ready', async () => (await get('/readyz')).status === 200);
    const metrics = await (await get('/metrics')).text();
    for (const line of [
      /^catalog_mirror_lag_seconds \d/m,
      /^catalog_mirror_backlog_entries 0$/m,
      /^catalog_mirror_last_success_timestamp_seconds \d{10}/m,
      /^catalog_mirror_state\{state="following"\} 1$/m,
      /^catalog_mirror_copies_total 1$/m,
    ]) {
      assert.match(metrics, line);
    }
    await world.restoreBackup();
    await eventually('it waits', () => program.output.stderr.includes('publish a new one. Retrying in '));
    assert.match(await (await get('/metrics')).text(), /^catalog_mirror_state\{state="failing"\} 1$/m);
    await world.host.publish(world.service);
    await eventually('it loads the new copy', world.isEqual);
    assert.equal((await program.stop()).code, 0);
  });

  it('a mirror reads the feed once to start from it, also if the number of titles cannot be read at first', async () => {
    await addTitles(world.service.db, 450);
    const client = { baseUrl: world.service.url, key: world.service.key };
    const [read, count] = [createClient(client), createTitleCounter(client)];
    const failures: string[] = [];
    const positions: number[] = [];
    let counts = 0;
    const ending = new AbortController();
    const running = world.keep(ending.signal, {
      fetchPage: (since, signal) => {
        if (!signal.aborted) positions.push(since);
        return read(since, signal);
      },
      countTitles: (signal) =>
        (counts += 1) % 2 === 1 ? Promise.reject(new TemporaryFailure('Slow down.')) : count(signal),
      observe(observation) {
        if (observation.kind === 'retrying') failures.push(withAdvice(observation.failure));
        if (observation.kind === 'following') ending.abort();
      },
    });
    await running;
    await world.requireEqual();
    assert.deepEqual(failures, ['Slow down.']);
    // The oldest position, and three pages.
    assert.equal(positions.length, 4);
  });

  it('a mirror starts again if the feed refuses the position that it named, and shows that it is copying', async () => {
    await addTitles(world.service.db, 450);
    const read = createClient({ baseUrl: world.service.url, key: world.service.key });
    const kinds: string[] = [];
    let reads = 0;
    const ending = new AbortController();
    await world.keep(ending.signal, {
      fetchPage: (since, signal) =>
        (reads += 1) === 3 ? Promise.reject(new PositionRefused('Too old.')) : read(since, signal),
      observe({ kind }) {
        kinds.push(kind);
        if (kind === 'following') ending.abort();
      },
    });
    await world.requireEqual();
    const passes = ['progress', 'progress', 'progress'];
    assert.deepEqual(kinds, ['loading', 'progress', 'retrying', 'loading', ...passes, 'loaded', 'following']);
  });

  it('a mirror that is stopped at position 0 has reached it: only a mirror without a position has reached none', async () => {
    const ending = new AbortController();
    let reads = 0;
    const position = await world.keep(ending.signal, {
      fetchPage: async () => {
        reads += 1;
        if (reads === 1) throw new PositionRefused('Too old.', 0);
        // The session is closed before the page is stored.
        if (reads === 3) ending.abort();
        return { page: { data: [], meta: { has_more: false, next_since: reads - 2 } } };
      },
      countTitles: () => Promise.resolve(0),
    });
    assert.equal(position, 0);
    assert.equal(await world.keep(AbortSignal.abort(), {}), undefined);
  });

  it('a mirror polls as often as --interval says, also where the limits of its plan leave less', async () => {
    let polls = 0;
    // They leave a poll a minute.
    const limits = { ratelimit: '"day";r=1;t=86400', 'ratelimit-policy': '"day";q=10000;w=86400' };
    const proxy = await startProxy(world.service.url, (response, _mark, { url = '' }) => {
      if (url.includes('/changes')) polls += 1;
      return { ...response, headers: { ...response.headers, ...limits } };
    });
    const program = world.startUnawaited('--from', proxy.url, '--interval', '0.1');
    try {
      await eventually('it has polled more often', () => polls > 10);
    } finally {
      await program.stop();
      await proxy.stop();
    }
  });

  it('a mirror stores changes while it runs, and ends with exit code 0 on SIGTERM', async () => {
    await addTitles(world.service.db, 3);
    const program = world.startProcess();
    await eventually('the mirror has the first ones', world.isEqual);
    await addTitles(world.service.db, 300, 'later');
    await eventually('the mirror has the others', world.isEqual);
    program.child.kill('SIGTERM');
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Stopped at \d+\.\d+ \(.*\)\.\n$/);
  });
});
