import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { MANIFEST_NAME } from '../../../src/copies/manifest.js';
import type { Observe } from '../../../src/client/observation.js';
import type { Comparison } from '../../../src/client/mirror/verify.js';
import { eventually } from '../../support/eventually.js';
import { pastTriggers } from '../../support/postgres/past-triggers.js';
import { addTitles } from '../../support/titles.js';
import { mirrorWorld } from './mirror-world.js';

/** A change of one row of a mirror that nobody should make, and how the comparison names it. */
const FAULTS: readonly (readonly [fault: string, changes: object | undefined])[] = [
  ['missing', undefined],
  ['changed', { title: 'Other' }],
  ['changed', { has_bundles: true }],
  ['stamp', { updated_at: '2020-01-01T00:00:00.000001Z' }],
  // What the mirror has not reached.
  ['stamp', { updated_at: '2100-01-01T00:00:00.000001Z' }],
  ['extra', { svc_id: 'title-0007x', updated_at: '2020-01-01T00:00:00.000001Z' }],
];

describe('catalog mirror verify', () => {
  const world = mirrorWorld();

  beforeEach(async () => {
    await addTitles(world.service.db, 300);
    await world.host.publish(world.service);
    await addTitles(world.service.db, 5, 'later');
    await world.service.db('titles').where({ svc_id: 'title-0003' }).update({ title: 'Newer than the copy' });
    await world.succeed();
  });

  function titles(): Knex.QueryBuilder {
    return world.mirror.db.withSchema('catalog_mirror').from('titles');
  }

  async function verify(...more: string[]): Promise<{ code: number | null; result: Comparison; stderr: string }> {
    const { code, stdout, stderr } = await world.run('verify', '--json', ...more);
    return { code, result: JSON.parse(stdout || '{}') as Comparison, stderr };
  }

  it('catalog mirror verify finds each kind of fault, and repairs it', async () => {
    const row = (): Knex.QueryBuilder => titles().where({ svc_id: 'title-0007' });
    for (const [fault, changes] of FAULTS) {
      const what = `${fault} ${JSON.stringify(changes)}`;
      if (changes === undefined) await row().delete();
      else if (fault === 'extra') await titles().insert({ ...(await row().first()), ...changes });
      else await row().update(changes);
      const { code, result, stderr } = await verify();
      assert.equal(code, 1, what);
      assert.match(stderr, /The mirror differs from the copy\. Run the command again with --repair to correct it\./);
      assert.equal(result.differences, 1);
      assert.deepEqual({ ...result.faults }, { missing: 0, changed: 0, stamp: 0, extra: 0, [fault]: 1 }, what);
      const [first] = result.first as unknown as { svc_id: string; fault: string }[];
      assert.deepEqual(first, { svc_id: fault === 'extra' ? 'title-0007x' : 'title-0007', fault });
      const repair = await world.run('verify', '--repair');
      assert.equal(repair.code, 0, repair.stderr);
      assert.match(repair.stdout, /\n1 row differs: .*\n.*\nRepaired\.\n$/);
      assert.equal(await world.requireEqual(), 305, what);
    }
    // Some rows are newer than the copy.
    const { code, stdout } = await world.run('verify');
    assert.equal(code, 0);
    assert.match(stdout, /^Copy of 20\S+Z: 300 rows; the mirror has 305, 6 of them newer\.\nAll other rows match\.\n$/);
  });

  it('catalog mirror verify counts all faults, lists the first ones, and repairs them together', async () => {
    await titles().where('svc_id', 'like', 'title-00%').delete();
    await titles().where('svc_id', 'like', 'title-01%').update({ title: 'Other' });
    const { stdout } = await world.run('verify');
    // One of the deleted rows was newer than the copy.
    assert.match(
      stdout,
      /\n199 rows differ: 99 missing, 100 changed, 0 stamp, 0 extra\.\n {2}missing {2}title-0001\n(?:.*\n){9}$/,
    );
    await world.service.db('titles').where({ svc_id: 'title-0003' }).update({ title: 'Newer again' });
    await world.run('verify', '--repair');
    await world.succeed();
    await world.requireEqual();
  });

  it('a repair is followed by what the feed has after the copy, whether the mirror runs or not', async () => {
    // Newer than the copy, which has an earlier form of it.
    await titles().where({ svc_id: 'title-0003' }).delete();
    await world.run('verify', '--repair');
    assert.equal((await verify()).code, 0, 'what is newer than the copy is still accepted');
    await world.succeed();
    await world.requireEqual();
    const program = await world.start();
    await titles().where({ svc_id: 'title-0003' }).delete();
    await world.run('verify', '--repair');
    await eventually('the mirror reads it again', world.isEqual);
    assert.equal((await program.stop()).code, 0);
  });

  it('catalog mirror verify sees a change that a collation of the owner hides', async () => {
    await world.mirror.db.raw(`
      create collation catalog_mirror.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      alter table catalog_mirror.titles alter title type text collate catalog_mirror.any_case`);
    await titles().where({ svc_id: 'title-0007' }).update('title', world.mirror.db.raw('upper(title)'));
    assert.equal((await verify()).result.faults.changed, 1);
  });

  it('a comparison and a repair are refused if the feed no longer reaches back to the copy', async () => {
    await titles().where({ svc_id: 'title-0007' }).delete();
    await world.setClock(31n * 86_400_000_000n);
    assert.equal((await verify()).code, 1);
    const { code, stderr } = await verify('--repair');
    assert.equal(code, 1);
    assert.match(stderr, /The newest copy ends at .* Ask the operator of the service to publish a new one\./);
    assert.equal((await titles().pluck<string[]>('svc_id')).length, 304);
  });

  it('catalog mirror verify refuses a copy that is older than the one that the mirror has loaded', async () => {
    const old = new Map(world.host.files);
    await world.host.publish(world.service);
    await world.mirror.db.raw('drop schema catalog_mirror cascade');
    await world.succeed();
    for (const [name, file] of old) world.host.files.set(name, file);
    const { code, stderr } = await verify();
    assert.equal(code, 1);
    assert.match(
      stderr,
      /The newest copy, at .*, is older than the one that the mirror started from, at .* a newer one/,
    );
  });

  it('a mirror is compared only once it is up to date with the copy', async () => {
    const write = (titles: readonly string[]) =>
      world.service
        .db('titles')
        .whereIn('svc_id', titles)
        .update({ has_bundles: world.service.db.raw('not has_bundles') });
    await write(['title-0007']);
    await addTitles(world.service.db, 1, 'waiting');
    const manifest = await world.host.publish(world.service);
    await write(Array.from({ length: 250 }, (_, index) => `title-${String(index + 20).padStart(4, '0')}`));
    // Its last write comes after all of these, and the mirror has neither that nor the one before the copy.
    await write(['title-0007', 'waiting-0001']);
    const stop = new AbortController();
    const observe: Observe = ({ kind }) => {
      if (kind === 'stored') stop.abort();
    };
    await world.keep(stop.signal, { observe });
    const [position] = await world.mirror.db.withSchema('catalog_mirror').from('state').pluck<string[]>('position');
    assert.ok(Number(position) >= manifest.position);
    const { code, stderr, result } = await verify('--repair');
    assert.deepEqual([code, result], [1, {}]);
    assert.match(
      stderr,
      /The mirror is still catching up with the newest copy\. Compare again once it is up to date\./,
    );
    await world.succeed();
    assert.equal((await verify()).code, 0);
    await world.requireEqual();
    // The position of a copy of a quiet catalogue is a day ago, and the mirror stays at the newest entry.
    await world.setClock(3n * 86_400_000_000n);
    await world.host.publish(world.service);
    await world.succeed();
    assert.equal((await verify()).code, 0);
  });

  it('entries that the catalogue has lost without a restart of its feed are faults, and a repair removes them', async () => {
    const [before] = await world.service.db('titles').where({ svc_id: 'title-0002' }).pluck<string[]>('updated_at');
    await pastTriggers(world.service.db, 'titles', async (transaction) => {
      await transaction('titles').where('svc_id', 'like', 'later-%').orWhere({ svc_id: 'title-0002' }).delete();
      await transaction('titles').where({ svc_id: 'title-0003' }).update({ title: 'Title 3', updated_at: before });
    });
    await world.host.publish(world.service);
    assert.equal((await verify()).result.faults.extra, 1, 'as far as the copy is known to be complete');
    await world.setClock(120_000_000n);
    await world.host.publish(world.service);
    const { result } = await verify('--repair');
    assert.deepEqual([result.newer, { ...result.faults }], [0, { missing: 0, changed: 0, stamp: 1, extra: 6 }]);
    await world.succeed();
    assert.equal((await verify()).code, 0);
    await world.requireEqual();
  });

  it('catalog mirror verify needs only read access, and fails if a policy hides rows from its role', async () => {
    await world.mirror.db.raw(`
      create role mirror_reader login password 'secret';
      grant usage on schema catalog_mirror to mirror_reader;
      grant select on all tables in schema catalog_mirror to mirror_reader`);
    try {
      const url = new URL(world.mirror.url);
      [url.username, url.password] = ['mirror_reader', 'secret'];
      const settings = { MIRROR_DATABASE_URL: url.href };
      const allowed = await world.runWith(settings, 'verify');
      assert.equal(allowed.code, 0, allowed.stderr);
      await world.mirror.db.raw(`
        alter table catalog_mirror.titles enable row level security;
        create policy visible on catalog_mirror.titles using (svc_id <> 'title-0007')`);
      const { code, stderr } = await world.runWith(settings, 'verify');
      assert.equal(code, 1);
      assert.match(stderr, /The role lacks a privilege in the mirror's database: .*row-level security/);
    } finally {
      await world.mirror.db.raw('drop owned by mirror_reader; drop role mirror_reader');
    }
  });

  it('catalog mirror verify fails clearly if there is no mirror or no copy', async () => {
    assert.match((await verify('--schema', 'nothing')).stderr, /The schema nothing of this database has no mirror/);
    world.host.files.delete(MANIFEST_NAME);
    assert.match((await verify()).stderr, /No copy is published at http/);
  });
});
