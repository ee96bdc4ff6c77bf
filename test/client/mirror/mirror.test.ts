import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { MirrorStatus } from '../../../src/commands/mirrors/mirror-status.js';
import { eventually } from '../../support/eventually.js';
import { listenLocally } from '../../support/http/local-server.js';
import { freePort } from '../../support/programs/free-port.js';
import { startProxy } from '../../support/proxies/altering-proxy.js';
import { addTitles } from '../../support/titles.js';
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

  it('a mirror without a published copy does not start, and says what to do', async () => {
    await addTitles(world.service.db, 5);
    assert.match(
      await fail(),
      /No copy is published at http:\S+\/\. If copies are elsewhere, set --copies .*--publish"/,
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

  it('a mirror polls as often as --interval says, also where the limits of its plan leave less', async () => {
    let polls = 0;
    // They leave a poll a minute.
    const limits = { ratelimit: '"day";r=1;t=86400', 'ratelimit-policy': '"day";q=10000;w=86400' };
    const proxy = await startProxy(world.service.url, (response, _mark, { url = '' }) => {
      if (url.includes('/changes')) polls += 1;
      return { ...response, headers: { ...response.headers, ...limits } };
    });
    await world.host.publish({ ...world.service, url: proxy.url });
    const program = world.startUnawaited('--from', proxy.url, '--interval', '0.1');
    try {
      await eventually('it has polled more often', () => polls > 10);
    } finally {
      await program.stop();
      await proxy.stop();
    }
  });

  it('a mirror stores changes while it runs, and ends with exit code 0 on SIGTERM', async () => {
    await world.publishTitles(3);
    const program = world.startProcess();
    await eventually('the mirror has the first ones', world.isEqual);
    await addTitles(world.service.db, 300, 'later');
    await eventually('the mirror has the others', world.isEqual);
    program.child.kill('SIGTERM');
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Stopped\.\n$/);
  });
});
