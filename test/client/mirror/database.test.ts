import assert from 'node:assert/strict';
import { connect, openTables } from '../../../src/client/mirror/session.js';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { runCommand } from '../../support/programs/command.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { requireEqual } from './equality.js';
import { mirrorWorld } from './mirror-world.js';

/** Ends the sessions of mirrors, as a restart of PostgreSQL does. */
const END_MIRRORS =
  "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'catalog mirror'";

describe('the database of a mirror', () => {
  const world = mirrorWorld();
  const { succeed, fail, start } = world;

  /** @returns the sessions of the mirror's database that wait for a lock */
  function waiting(): Promise<unknown[]> {
    return world.mirror
      .db('pg_stat_activity')
      .whereRaw("datname = current_database() and wait_event_type = 'Lock'")
      .pluck<unknown[]>('pid');
  }

  it('a mirror continues after its database has ended the connection, and names the database that it cannot reach', async () => {
    await world.publishTitles(3);
    const program = await start();
    await world.mirror.db.raw(END_MIRRORS);
    await addTitles(world.service.db, 20, 'later');
    await eventually('the mirror has them', world.isEqual);
    assert.match(program.output.stderr, /The mirror's database cannot be used: .*\. Retrying in 1 s\./);
    assert.equal((await program.stop()).code, 0);
    // The second would be waited for without --once.
    const nowhere = new URL(world.mirror.url);
    nowhere.pathname = '/nowhere';
    for (const [url, reason, ...flags] of [
      [nowhere.href, 'database "nowhere" does not exist'],
      ['postgres://me@127.0.0.1:1/films', '.*', '--once'],
    ] as const) {
      const { code, stderr } = await world.runWith({ MIRROR_DATABASE_URL: url }, ...flags);
      assert.equal(code, 1);
      const message = `^catalog: The mirror's database cannot be reached: ${reason}\\. Check MIRROR_DATABASE_URL, or --into\\.\n$`;
      assert.match(stderr, new RegExp(message));
    }
  });

  it('a mirror refuses a schema that another mirror is writing to', async () => {
    await world.publishTitles(3);
    const program = await start();
    assert.match(
      await fail(),
      /Another mirror is writing to the schema catalog_mirror\. Stop it, or choose another --schema\./,
    );
    await succeed('--schema', 'second');
    await requireEqual(world.service.db, world.mirror.db, 'second');
    await world.mirror.db.raw('drop schema second cascade');
    assert.equal((await program.stop()).code, 0);
  });

  it('a mirror waits for the lock of its previous session after a lost connection', async () => {
    await world.publishTitles(3);
    const program = await start();
    await world.mirror.db.transaction(async (transaction) => {
      const next = transaction.raw("select pg_advisory_xact_lock(x'6d697272'::int, hashtext('catalog_mirror'))").then();
      await eventually('another session waits for the lock', async () => (await waiting()).length === 1);
      await world.mirror.db.raw(END_MIRRORS);
      await next;
      await eventually('it waits', () => program.output.stderr.includes('Another mirror is writing'));
    });
    await addTitles(world.service.db, 3, 'later');
    await eventually('the mirror has everything', world.isEqual);
    assert.equal((await program.stop()).code, 0);
  });

  it('a mirror can be started again at once after a kill, although its transaction waits for a lock', async () => {
    await world.publishTitles(3);
    const program = world.startProcess();
    await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
    let again: ReturnType<typeof world.run> | undefined;
    await world.mirror.db.transaction(async (transaction) => {
      await transaction.raw('lock table catalog_mirror.titles in access exclusive mode');
      await addTitles(world.service.db, 3, 'later');
      await eventually('the mirror waits', async () => (await waiting()).length === 1);
      const [orphan] = await waiting();
      program.child.kill('SIGKILL');
      await program.ended;
      again = world.run('--once');
      await eventually('PostgreSQL has ended its session', async () => !(await waiting()).includes(orphan));
    });
    const { code, stderr } = (await again) ?? {};
    assert.equal(code, 0, stderr);
    await world.requireEqual();
  });

  it('a mirror ends at once when it is stopped while it waits for a lock, whatever it is doing', async () => {
    await world.publishTitles(30);
    await succeed();
    for (const [lock, arrange] of [
      ['lock table catalog_mirror.titles in share mode', () => addTitles(world.service.db, 3, 'later')],
      ['lock table catalog_mirror.state in access exclusive mode'],
      // The merge of a copy.
      [
        'lock table catalog_mirror.titles in exclusive mode',
        async () => {
          await succeed();
          await world.restoreBackup();
          await world.host.publish(world.service);
        },
      ],
    ] as const) {
      await arrange?.();
      await world.mirror.db.transaction(async (transaction) => {
        await transaction.raw(lock);
        const program = world.startUnawaited('--interval', '60');
        await eventually(`it waits: ${lock}`, async () => (await waiting()).length > 0);
        assert.equal((await program.stop()).code, 0);
      });
    }
    assert.match(await succeed(), /Loaded the copy of .*: 0 inserted, 1 changed, 3 deleted\./);
    await world.requireEqual();
  });

  it('a mirror tries again after a deadlock, a conflict of transactions and a lock that is not granted in time', async () => {
    await world.publishTitles(3);
    const program = await start();
    await world.mirror.db.raw(`
      create sequence catalog_mirror.tries;
      create function catalog_mirror.fail_thrice() returns trigger language plpgsql as $$
      declare state text := (array['40P01', '40001', '55P03'])[nextval('catalog_mirror.tries')];
      begin
        if state is not null then raise 'busy' using errcode = state; end if;
        return null;
      end $$;
      create trigger fail_thrice before update on catalog_mirror.state execute function catalog_mirror.fail_thrice()`);
    await addTitles(world.service.db, 3, 'later');
    await eventually('the mirror has everything', world.isEqual);
    const { code, stderr } = await program.stop();
    assert.deepEqual([code, stderr.match(/The mirror's database cannot be used: busy\. Retrying/g)?.length], [0, 3]);
  });

  it('a mirror stores each field in its column, in whatever order its owner has arranged them', async () => {
    await world.publishTitles(3);
    await succeed();
    await world.mirror.db.raw(`
      alter table catalog_mirror.titles rename to former;
      create table catalog_mirror.titles as select title, media_type, has_bundles, updated_at, svc_id from catalog_mirror.former;
      drop table catalog_mirror.former;
      alter table catalog_mirror.titles add primary key (svc_id)`);
    await addTitles(world.service.db, 3, 'later');
    await succeed();
    await world.requireEqual();
  });

  it('a mirror refuses a schema of another program or service, a name that would be cut, and a database that cannot hold every title', async () => {
    await world.publishTitles(3);
    assert.match((await world.run('--schema', 'x'.repeat(64))).stderr, /Use 1 to 63 bytes\./);
    await succeed();
    await world.mirror.db.withSchema('catalog_mirror').from('state').update({ base_url: 'https://other.example.com' });
    assert.match(
      await fail(),
      /The schema catalog_mirror holds a mirror of https:\/\/other\.example\.com, not of http/,
    );
    await world.mirror.db.raw('create schema other; create table other.titles (id int)');
    assert.match(
      await fail('--schema', 'other'),
      /The schema other has a table named titles that belongs to no mirror\./,
    );
    await world.mirror.db.raw('drop schema other cascade');
    await world.mirror.db.raw(
      "create database latin1 template template0 encoding 'LATIN1' locale_provider 'libc' lc_collate 'C' lc_ctype 'C'",
    );
    try {
      const url = new URL(world.mirror.url);
      url.pathname = '/latin1';
      const { stderr } = await world.runWith({ MIRROR_DATABASE_URL: url.href }, '--once');
      assert.match(
        stderr,
        /The mirror's database has the encoding LATIN1, which cannot hold every title\. Use one with/,
      );
    } finally {
      await world.mirror.db.raw('drop database latin1 with (force)');
    }
  });

  it('a mirror loads copies whatever search path its role has, and lifts its limits of statements and sessions', async () => {
    await addTitles(world.service.db, 12_000);
    await world.host.publish(world.service);
    const limits = await world.mirror
      .db('pg_settings')
      .whereRaw("context = 'user' and name ~ '^(statement|transaction|idle).*_timeout$'")
      .pluck<string[]>('name');
    assert.ok(limits.includes('idle_session_timeout'));
    const url = new URL(world.mirror.url);
    const options = ['search_path=other', ...limits.map((name) => `${name}=1h`)].map((option) => `-c ${option}`);
    url.searchParams.set('options', options.join(' '));
    const { code, stderr } = await world.runWith({ MIRROR_DATABASE_URL: url.href }, '--once');
    assert.equal(code, 0, stderr);
    await world.requireEqual();
    const session = await connect(url.href, 'test');
    await openTables(session, 'catalog_mirror', true);
    for (const name of limits) {
      const { rows } = await session.query<Record<string, string>>(`show ${name}`);
      assert.deepEqual(rows, [{ [name]: '0' }]);
    }
    await session.end();
  });

  it('a mirror names the constraint of its owner that rejects a change', async () => {
    await world.publishTitles(40);
    await addTitles(world.service.db, 4, 'later');
    await succeed();
    await world.mirror.db
      .raw(`create table catalog_mirror.seen (title text collate "C" references catalog_mirror.titles);
      insert into catalog_mirror.seen values ('later-0001')`);
    await world.restoreBackup();
    await world.host.publish(world.service);
    assert.match(
      await fail(),
      /A foreign key in the mirror's database rejected a change: .*"seen_title_fkey".* cascade", or drop it\./,
    );
  });

  it('a mirror takes the URL of its database from the environment, and refuses a password in the arguments', async () => {
    await world.publishTitles(3);
    const noPassword = /--into must not have a password: every user of this machine can read the arguments/;
    for (const [url, reason] of [
      ['postgres://me:hunter2@localhost/films', noPassword],
      ['postgres://me:hunter2@/films?host=/tmp', noPassword],
      ['postgres://me:p@hunter2#w@localhost/films', /--into must be a URL .* in a user name or password, write/],
    ] as const) {
      const refused = await world.run('--into', url);
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, reason);
      assert.doesNotMatch(refused.stderr, /hunter2/);
    }
    const args = ['mirror', '--from', world.service.url, '--copies', world.host.url, '--once'];
    const file = join(await temporaryFolder(), 'url');
    await writeFile(file, world.mirror.url);
    const { code, stderr } = await runCommand(args, {
      CATALOG_API_KEY: world.service.key,
      MIRROR_DATABASE_URL_FILE: file,
    });
    assert.equal(code, 0, stderr);
    await world.requireEqual();
    const nowhere = await runCommand(args, { CATALOG_API_KEY: world.service.key });
    assert.equal(nowhere.code, 2);
    assert.match(nowhere.stderr, /set MIRROR_DATABASE_URL, or use --into/);
    await world.host.publish(world.service);
    for (const flags of [['--once'], ['verify']]) {
      const { stderr } = await world.run(...flags, '--into', 'postgres://me@127.0.0.1:1/films');
      assert.match(stderr, /^catalog: The mirror's database cannot be reached/);
    }
  });
});
