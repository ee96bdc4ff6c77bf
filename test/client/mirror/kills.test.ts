import assert from 'node:assert/strict';
import { fileOf, MANIFEST_NAME } from '../../../src/copies/manifest.js';
import { eventually } from '../../support/eventually.js';
import type { RunningProgram } from '../../support/program.js';
import { addTitles } from '../../support/titles.js';
import { mirrorWorld } from './mirror-world.js';

/** How often a mirror is killed before it has all that it begins with. */
const KILLS = 15;

describe('a mirror that is interrupted before it has all that it begins with', () => {
  const world = mirrorWorld();

  async function kill(program: RunningProgram): Promise<void> {
    program.child.kill('SIGKILL');
    await program.ended;
  }

  async function keptBytes(): Promise<number> {
    const { rows } = await world.mirror.db.raw<{ rows: [{ table: string | null }] }>(
      "select to_regclass('catalog_mirror.kept') as table",
    );
    if (rows[0].table === null) return 0;
    const sums = await world.mirror.db.raw<{ rows: [{ bytes: number }] }>(
      'select coalesce(sum(length(content)), 0)::int as bytes from catalog_mirror.kept',
    );
    return sums.rows[0].bytes;
  }

  it('a mirror that is killed 15 times while it downloads a copy requests each part of the file once', async () => {
    const { name, bytes } = fileOf(await world.publishTitles(6_000), 'titles');
    world.host.sendsAtMost = Math.ceil(bytes / (KILLS + 1));
    for (let life = 1; life <= KILLS; life += 1) {
      const program = world.startProcess();
      await eventually('its part is stored', async () => (await keptBytes()) === life * world.host.sendsAtMost);
      await kill(program);
    }
    await world.succeed();
    assert.equal(await world.requireEqual(), 6_000);
    assert.deepEqual(
      world.host.requests.filter(({ path }) => path === `/${name}`).map(({ from }) => from),
      Array.from({ length: KILLS + 1 }, (_, life) => life * world.host.sendsAtMost),
    );
    assert.equal(await keptBytes(), 0);
  });

  it('a mirror does not continue a download that was damaged, or of a copy that is no longer the newest', async () => {
    const first = fileOf(await world.publishTitles(3_000), 'titles');
    const interrupt = async (after: number): Promise<void> => {
      world.host.sendsAtMost = after;
      const program = world.startProcess();
      await eventually('a part is stored', async () => (await keptBytes()) === world.host.sendsAtMost);
      await kill(program);
      world.host.sendsAtMost = Infinity;
      world.host.requests.length = 0;
    };
    const downloads = (): unknown[] => world.host.requests.filter(({ path }) => path !== `/${MANIFEST_NAME}`);
    await interrupt(1_000);
    await addTitles(world.service.db, 1, 'later');
    const second = fileOf(await world.host.publish(world.service), 'titles');
    assert.notEqual(second.sha256, first.sha256);
    await interrupt(900);
    // As a disk that fails.
    await world.mirror.db.raw('update catalog_mirror.kept set content = set_byte(content, 500, 255)');
    // By its compression, or by a row that came out of it.
    assert.match(await world.fail(), /is (?:damaged|not valid): /);
    assert.equal(await keptBytes(), 0);
    world.host.requests.length = 0;
    await world.succeed();
    assert.deepEqual(downloads(), [{ path: `/${second.name}`, from: 0, hasKey: false }]);
    await world.requireEqual();
  });

  it('a mirror that an earlier version made gets the table of what is kept', async () => {
    await world.publishTitles(3);
    await world.succeed();
    await world.mirror.db.raw('drop table catalog_mirror.kept');
    await world.host.publish(world.service);
    assert.equal((await world.run('verify')).code, 0);
    await world.restoreBackup();
    await world.host.publish(world.service);
    await world.succeed();
    await world.requireEqual();
  });
});
