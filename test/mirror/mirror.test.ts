import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repairCounts } from '../../src/catalog/counts.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { createClient, createTitleCounter } from '../../src/follower/client.js';
import { createCopySource } from '../../src/mirror/copy-source.js';
import { mirror as keepMirror, type MirrorOptions } from '../../src/mirror/mirror.js';
import { MirrorStatus } from '../../src/mirror/status.js';
import { MANIFEST_NAME } from '../../src/copies/manifest.js';
import { systemClock } from '../../src/platform/time/micros.js';
import type { OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { freePort } from '../support/programs/free-port.js';
import { runCommand } from '../support/programs/command.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitleAt, addTitles } from '../support/titles.js';
import { requireEqual } from './equality.js';
import { mirrorWorld } from './mirror-world.js';
import type { CopyHost } from './publishing.js';

const DAY = 86_400_000_000n;

describe('catalog mirror', () => {
  const world = mirrorWorld();
  const { succeed, fail, start } = world;
  let service: TestService;
  let host: CopyHost;
  let mirror: OpenTestDatabase;

  before(() => {
    ({ service, host, mirror } = world);
  });

  function isEqual(): Promise<boolean> {
    return world.requireEqual().then(
      () => true,
      () => false,
    );
  }

  function state(): Promise<Record<string, unknown> | undefined> {
    return mirror.db.withSchema('catalog_mirror').from<Record<string, unknown>>('state').first('position');
  }

  /** Makes the catalogue that of a backup: titles are gone, and others as they were. */
  async function restoreBackup(): Promise<void> {
    await pastTriggers(service.db, 'titles', async (transaction) => {
      await transaction.raw("delete from titles where svc_id like 'later-%'");
      await transaction.raw("update titles set title = 'As at first' where svc_id = 'title-0002'");
    });
    await repairCounts(service.db);
    await restartFeed(service.db);
  }

  it('begins with the newest copy, follows the feed from its position, and continues there next time', async () => {
    await addTitles(service.db, 300);
    const manifest = await host.publish(service);
    await addTitles(service.db, 5, 'later');
    const first = await succeed();
    assert.ok(first.includes(`Took the copy of ${manifest.created_at}: 300 inserted, 0 changed, 0 deleted.`), first);
    assert.equal(await world.requireEqual(), 305);

    await service
      .db('titles')
      .where({ svc_id: 'title-0001' })
      .update({ title: 'Changed\t"by" \\N a \u{1F3AC} writer' });
    await addTitles(service.db, 450, 'more');
    const second = await succeed();
    assert.doesNotMatch(second, /Took/);
    assert.equal(await world.requireEqual(), 755);
    assert.deepEqual(
      host.requests.map(({ path, hasKey }) => [path.replace(/\d+/, 'N'), hasKey]),
      [
        ['/manifest.json', false],
        ['/titles-N.ndjson.gz', false],
      ],
      'another host gets no key, and the copy is taken once',
    );
  });

  it('begins with the feed where no copy is published and the feed has every title', async () => {
    await addTitles(service.db, 450);
    assert.match(await succeed(), /Took the whole feed: 450 inserted, 0 changed, 0 deleted\./);
    await world.requireEqual();
  });

  it('refuses to begin with a feed that lacks old titles, and names the way out', async () => {
    await addTitles(service.db, 5);
    await addTitleAt(service.db, 'old', systemClock() - 40n * DAY);
    await repairCounts(service.db);
    assert.match(
      await fail(),
      /No copy is published at .*, and the feed alone does not have every title: .*catalog export --publish/,
    );
    assert.equal(
      await mirror
        .db('pg_tables')
        .where({ schemaname: 'catalog_mirror', tablename: 'state' })
        .then((rows) => rows.length),
      1,
    );
    assert.equal(await state(), undefined);
  });

  it('takes the newest copy by itself after 31 days away, and reports what has changed', async () => {
    await addTitles(service.db, 3);
    await host.publish(service);
    await succeed();
    await world.setClock(31n * DAY);
    await service.db('titles').where({ svc_id: 'title-0003' }).update({ has_bundles: true });
    await addTitles(service.db, 2, 'later');
    await host.publish(service);
    const said = await succeed();
    assert.match(said, /The feed no longer accepts the position .*\. Taking the newest copy\.\n/);
    assert.match(said, /Took the copy of .*: 2 inserted, 1 changed, 0 deleted\./);
    await world.requireEqual();
  });

  it('takes a copy that was published after a restore, and keeps privileges and views of its table', async () => {
    await addTitles(service.db, 10);
    await host.publish(service);
    await addTitles(service.db, 4, 'later');
    await succeed();
    await mirror.db.raw('create view catalog_mirror.movies as select * from catalog_mirror.titles');
    await restoreBackup();
    assert.match(
      await fail(),
      /The newest copy is of .*, and the feed begins at .*\. The operator of the service has to publish another\./,
    );
    assert.equal(
      await mirror.db
        .withSchema('catalog_mirror')
        .from('titles')
        .then((rows) => rows.length),
      14,
    );
    await host.publish(service);
    assert.match(await succeed(), /Took the copy of .*: 0 inserted, 1 changed, 4 deleted\./);
    await world.requireEqual();
    const { rows } = await mirror.db.raw<{ rows: [{ count: number }] }>('select count(*) from catalog_mirror.movies');
    assert.equal(rows[0].count, 10);
  });

  it('reports its state by metrics and /readyz, also while it waits for a copy from after a restore', async () => {
    await addTitles(service.db, 10);
    await host.publish(service);
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
    await restoreBackup();
    await eventually('it waits', () => program.output.stderr.includes('has to publish another. Retrying in 60 s'));
    assert.match(await (await get('/metrics')).text(), /^catalog_mirror_state\{state="failing"\} 1$/m);
    program.child.kill('SIGTERM');
    assert.equal((await program.ended).code, 0);
  });

  /** Keeps the mirror in this process, with short waits, until the signal is aborted. */
  function keep(signal: AbortSignal, options: Partial<MirrorOptions>): Promise<unknown> {
    const client = { baseUrl: service.url, key: service.key };
    return keepMirror({
      databaseUrl: mirror.url,
      schema: 'catalog_mirror',
      baseUrl: service.url,
      copiesUrl: host.url,
      source: createCopySource({ ...client, copiesUrl: host.url }),
      readPage: createClient(client),
      countTitles: createTitleCounter(client),
      signal,
      once: false,
      intervalMs: 10,
      patience: { firstMs: 10, longestMs: 20, onceMs: 0 },
      status: new MirrorStatus(),
      onFailure: () => undefined,
      onProgress: () => undefined,
      onRefused: () => undefined,
      onBegun: () => undefined,
      ...options,
    });
  }

  it('takes the first copy that is published after a restore while it runs', async () => {
    await addTitles(service.db, 10);
    await host.publish(service);
    const ending = new AbortController();
    const failures: string[] = [];
    const began: number[] = [];
    const running = keep(ending.signal, {
      onFailure: (reason) => failures.push(reason),
      onBegun: ({ position }) => began.push(position),
    });
    await eventually('the mirror has everything', isEqual);
    await restoreBackup();
    await eventually('it waits', () => failures.some((reason) => reason.includes('has to publish another')));
    const { position } = await host.publish(service);
    await eventually('it follows from the new copy', () => began.at(-1) === position);
    await world.requireEqual();
    ending.abort();
    await running;
  });

  it('reads the feed once to begin with it, also if the number of titles cannot be read at first', async () => {
    await addTitles(service.db, 450);
    const client = { baseUrl: service.url, key: service.key };
    const [read, count] = [createClient(client), createTitleCounter(client)];
    const failures: string[] = [];
    const positions: number[] = [];
    let counts = 0;
    const ending = new AbortController();
    const running = keep(ending.signal, {
      readPage: (since, signal) => {
        if (!signal.aborted) positions.push(since);
        return read(since, signal);
      },
      countTitles: (signal) =>
        (counts += 1) % 2 === 1 ? Promise.resolve({ kind: 'failure', reason: 'Slow down' }) : count(signal),
      onFailure: (reason) => failures.push(reason),
      onBegun: () => ending.abort(),
    });
    await running;
    await world.requireEqual();
    assert.deepEqual(failures, ['Slow down', 'Slow down']);
    // The oldest position, and three pages.
    assert.equal(positions.length, 4);
  });

  it('stores changes while it runs, and ends with exit code 0 on SIGTERM', async () => {
    await addTitles(service.db, 3);
    const program = await start();
    await addTitles(service.db, 300, 'later');
    await eventually('the mirror has them', isEqual);
    program.child.kill('SIGTERM');
    const { code, stderr } = await program.ended;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Stopped at \d+\.\d+ \(.*\)\.\n$/);
  });

  it('continues after its database has ended the connection, and names it where it cannot connect', async () => {
    await addTitles(service.db, 3);
    const program = await start();
    await mirror.db.raw(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'catalog mirror'",
    );
    await addTitles(service.db, 20, 'later');
    await eventually('the mirror has them', isEqual);
    assert.match(program.output.stderr, /The mirror's database cannot be used: .*\. Retrying in 1 s\./);
    program.child.kill('SIGTERM');
    assert.equal((await program.ended).code, 0);

    const { code, stderr } = await world.runWith({ MIRROR_DATABASE_URL: 'postgres://me@127.0.0.1:1/films' }, '--once');
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^catalog: The mirror's database cannot be reached: .* Check MIRROR_DATABASE_URL, or --into\.\n$/,
    );
  });

  it('refuses to write a schema that another mirror writes', async () => {
    await addTitles(service.db, 3);
    const program = await start();
    assert.match(
      await fail(),
      /Another mirror writes the schema catalog_mirror\. Stop it, or choose another --schema\./,
    );
    await succeed('--schema', 'second');
    await requireEqual(service.db, mirror.db, 'second');
    await mirror.db.raw('drop schema second cascade');
    program.child.kill('SIGKILL');
    await program.ended;
  });

  it('uses no copy of another service', async () => {
    await addTitles(service.db, 3);
    await host.publish({ url: 'https://other.example.com', db: service.db });
    assert.match(await fail(), /The copy at .* is of https:\/\/other\.example\.com, not of http/);
  });

  it('uses only copies that the holder of the key has signed, if a public key is given', async () => {
    await addTitles(service.db, 3);
    const [ours, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
    const file = join(await temporaryFolder(), 'public.pem');
    await writeFile(file, ours.publicKey.export({ type: 'spki', format: 'pem' }));
    await host.publish(service);
    assert.match(await fail('--public-key', file), /The manifest is not signed, and a public key was given\./);
    await host.publish(service, other.privateKey);
    assert.match(await fail('--public-key', file), /The signature of the manifest does not match the public key\./);
    await host.publish(service, ours.privateKey);
    await succeed('--public-key', file);
    await world.requireEqual();
  });

  it('shows nothing of a copy whose file is not as the manifest says', async () => {
    await addTitles(service.db, 300);
    const { files } = await host.publish(service);
    const name = files[0]?.name ?? '';
    const good = host.files.get(name) ?? Buffer.alloc(0);
    const flipped = Buffer.from(good);
    flipped[good.length - 3] = 255 - (flipped[good.length - 3] ?? 0);
    const manifest = host.files.get(MANIFEST_NAME)?.toString() ?? '';
    const damages: [Buffer, string, RegExp][] = [
      [good.subarray(0, 500), manifest, /is damaged: it ends after 500 of \d+ bytes/],
      [Buffer.concat([good, good]), manifest, /is damaged: it is larger than the manifest says/],
      [flipped, manifest, /is damaged/],
      [good, manifest.replace('"rows": 300', '"rows": 301'), /has 300 rows, and the manifest says 301/],
      [good, manifest.replace(/"sha256": ".{8}/, '"sha256": "00000000'), /is damaged: its SHA-256 is not that of the/],
      [good, manifest.replace(/"sha256": "./, '"sha256": "x'), /The manifest is not valid: .*sha256/],
    ];
    for (const [file, text, reason] of damages) {
      host.files.set(name, file);
      host.files.set(MANIFEST_NAME, Buffer.from(text));
      assert.match(await fail(), reason);
      assert.equal(await state(), undefined);
      assert.equal((await mirror.db.withSchema('catalog_mirror').from('titles')).length, 0);
    }
  });

  it('takes the URL of its database from the environment, and refuses a password in the arguments', async () => {
    await addTitles(service.db, 3);
    const refused = await world.run('--into', 'postgres://me:hunter2@localhost/films');
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /--into must not have a password: every user of this machine can read the arguments/);
    assert.doesNotMatch(refused.stderr, /hunter2/);
    const args = ['mirror', '--from', service.url, '--copies', host.url, '--once'];
    const file = join(await temporaryFolder(), 'url');
    await writeFile(file, mirror.url);
    const { code, stderr } = await runCommand(args, {
      CATALOG_API_KEY: service.key,
      MIRROR_DATABASE_URL_FILE: file,
    });
    assert.equal(code, 0, stderr);
    await world.requireEqual();
    const nowhere = await runCommand(args, { CATALOG_API_KEY: service.key });
    assert.equal(nowhere.code, 2);
    assert.match(nowhere.stderr, /set MIRROR_DATABASE_URL, or use --into/);
  });

  it('does not mix the mirrors of two services', async () => {
    await addTitles(service.db, 3);
    await succeed();
    await mirror.db.withSchema('catalog_mirror').from('state').update({ base_url: 'https://other.example.com' });
    assert.match(await fail(), /The schema catalog_mirror has a mirror of https:\/\/other\.example\.com, not of http/);
  });
});
