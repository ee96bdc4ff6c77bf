import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { repairCounts } from '../../src/catalog/counts.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { LONG, SEED, withSeed } from '../support/chance.js';
import { eventually } from '../support/eventually.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { TitleWriter } from '../support/catalog/title-writer.js';
import { addTitles } from '../support/titles.js';
import { requireConsistent } from './equality.js';
import { mirrorWorld } from './mirror-world.js';

/** Enough rows for a kill in the middle of taking a copy. */
const TITLES = 6_000;

/** The longest life of a mirror before it is killed, in milliseconds. A third of it is the start of the process. */
const LONGEST_LIFE_MS = 600;

const DAY = 86_400_000_000n;

/** Numbers from 0 up to but not including 1. The same seed gives the same ones (mulberry32). */
function numbersOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('a mirror that is killed', function () {
  this.timeout(this.timeout() * LONG);

  const world = mirrorWorld();
  let writers: TitleWriter[] = [];
  let ahead = 0n;

  afterEach(stopWriters);

  function startWriters(): void {
    writers = ['a', 'b', 'c'].map((name) => new TitleWriter(world.service.db, `${name}${Date.now()}`, TITLES, 2));
  }

  async function stopWriters(): Promise<void> {
    await Promise.all(writers.map((writer) => writer.stop()));
    writers = [];
  }

  /** Lets a mirror run to its end, and compares it with the catalogue. */
  async function catchUp(): Promise<string> {
    await stopWriters();
    const said = await world.succeed();
    await world.requireEqual();
    return said;
  }

  /** What happens to a mirror while it is dead, in turn. */
  const FAULTS: readonly ((kill: number) => Promise<void>)[] = [
    async () => undefined,
    async function losesItsTables() {
      await world.mirror.db.raw('drop schema if exists catalog_mirror cascade');
      await world.host.publish(world.service);
    },
    async function isRestored(kill) {
      const { service, host } = world;
      await stopWriters();
      await pastTriggers(service.db, 'titles', async (transaction) => {
        await transaction.raw('delete from titles where hashtext(svc_id) % 7 = ?', [kill % 7]);
        await transaction.raw("update titles set title = 'As before' where hashtext(svc_id) % 7 = ?", [(kill + 1) % 7]);
      });
      await repairCounts(service.db);
      await restartFeed(service.db);
      await host.publish(service);
      assert.match(await catchUp(), /Loaded the copy of/);
      startWriters();
    },
    async function isAwayForWeeks(kill) {
      await stopWriters();
      ahead += 31n * DAY;
      await world.setClock(ahead);
      await addTitles(world.service.db, 3, `away-${kill}`);
      await world.host.publish(world.service);
      assert.match(await catchUp(), /Loaded the copy of/);
      startWriters();
    },
  ];

  it(
    withSeed('a mirror equals its source at its position after each kill, among writers, restores and weeks away'),
    async () => {
      const { service, host, mirror } = world;
      const random = numbersOf(SEED);
      await addTitles(service.db, TITLES);
      await host.publish(service);
      let checked = 0;
      startWriters();
      for (let kill = 0; kill < FAULTS.length * LONG; kill += 1) {
        // Enough pages for most kills to come in the middle of them.
        await service.db.raw('update titles set title = ? where hashtext(svc_id) % 4 = ?', [`Burst ${kill}`, kill % 4]);
        const program = world.startProcess();
        // Every other one is killed among pages, however slowly it starts; the others also at their start.
        if (kill % 2 === 0) await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
        await delay(LONGEST_LIFE_MS * random());
        program.child.kill('SIGKILL');
        const { stderr } = await program.ended;
        assert.doesNotMatch(stderr, /catalog:/);
        checked += await requireConsistent(service.db, mirror.db);
        await FAULTS[kill % FAULTS.length]?.(kill);
      }
      await catchUp();
      assert.ok(checked > 0, 'some mirror had begun when it was killed');
    },
  );
});
