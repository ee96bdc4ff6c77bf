import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { repairCounts } from '../../src/catalog/counts.js';
import { restartFeed } from '../../src/catalog/restart.js';
import { LONG, SEED, withSeed } from '../support/chance.js';
import { eventually } from '../support/eventually.js';
import { pastTriggers } from '../support/postgres/past-triggers.js';
import { startProxy, type Passing, type Proxy } from '../support/proxies/altering-proxy.js';
import { TitleWriter } from '../support/catalog/title-writer.js';
import { addTitles } from '../support/titles.js';
import { requireConsistent } from './equality.js';
import { mirrorWorld } from './mirror-world.js';

/** How often the mirror is killed. */
const KILLS = 4 * LONG;

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

/** What the service can be, besides itself. */
const MODES: Readonly<Record<string, (response: Passing) => Passing>> = {
  down: (response) => ({ ...response, status: 503, body: '{}' }),
  'no JSON': (response) => ({ ...response, body: '<html>It works!</html>' }),
  'no page': (response) => ({ ...response, body: '{"data":[{}],"meta":{"has_more":false,"next_since":2000000000}}' }),
  'no titles': (response) => ({
    ...response,
    body: response.body.replaceAll(/"updated_at":"[^"]+"/g, '"updated_at":"yesterday"'),
  }),
  'half a page': (response) => ({ ...response, body: response.body.slice(0, response.body.length / 2) }),
};

describe(withSeed('a mirror in trouble'), () => {
  const world = mirrorWorld();
  let writers: TitleWriter[] = [];

  afterEach(async () => {
    await Promise.all(writers.map((writer) => writer.stop()));
    writers = [];
  });

  function startWriters(): void {
    writers = ['a', 'b', 'c'].map((name) => new TitleWriter(world.service.db, `${name}${Date.now()}`, TITLES, 2));
  }

  async function stopWriters(): Promise<void> {
    await Promise.all(writers.map((writer) => writer.stop()));
  }

  /** Lets a mirror run to its end, and compares it with the catalogue. */
  async function catchUp(): Promise<string> {
    await stopWriters();
    const said = await world.succeed();
    await world.requireEqual();
    return said;
  }

  it(`a mirror equals its source at its position after each of ${KILLS} kills, among writers, restores and weeks away`, async function () {
    this.timeout(60_000 + KILLS * 3_000);
    const { service, host, mirror } = world;
    const random = numbersOf(SEED);
    await addTitles(service.db, TITLES);
    await host.publish(service);
    let checked = 0;
    let ahead = 0n;
    startWriters();
    for (let kill = 0; kill < KILLS; kill += 1) {
      // Enough pages for most kills to come in the middle of them.
      await service.db.raw('update titles set title = ? where hashtext(svc_id) % 4 = ?', [`Burst ${kill}`, kill % 4]);
      const program = world.startUnawaited('--interval', '0.1');
      // Every other one is killed among pages, however slowly it starts; the others also at their start.
      if (kill % 2 === 0) await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
      await delay(LONGEST_LIFE_MS * random());
      program.child.kill('SIGKILL');
      const { stderr } = await program.ended;
      assert.doesNotMatch(stderr, /catalog:/);
      checked += await requireConsistent(service.db, mirror.db);
      const turn = random();
      if (turn < 0.2) {
        await mirror.db.raw('drop schema if exists catalog_mirror cascade');
        await host.publish(service);
      } else if (turn < 0.35) {
        await stopWriters();
        await pastTriggers(service.db, 'titles', async (transaction) => {
          await transaction.raw('delete from titles where hashtext(svc_id) % 7 = ?', [kill % 7]);
          await transaction.raw("update titles set title = 'As before' where hashtext(svc_id) % 7 = ?", [
            (kill + 1) % 7,
          ]);
        });
        await repairCounts(service.db);
        await restartFeed(service.db);
        await host.publish(service);
        assert.match(await catchUp(), /Loaded the copy of/);
        startWriters();
      } else if (turn < 0.45) {
        await stopWriters();
        ahead += 31n * DAY;
        await world.setClock(ahead);
        await addTitles(service.db, 3, `away-${kill}`);
        await host.publish(service);
        assert.match(await catchUp(), /Loaded the copy of/);
        startWriters();
      }
    }
    await catchUp();
    assert.ok(checked > 0, 'some mirror had begun when it was killed');
  });

  describe('whose service fails', () => {
    let proxy: Proxy;
    let mode = '';

    before(async () => {
      proxy = await startProxy(world.service.url, (response) => MODES[mode]?.(response) ?? response);
    });

    after(() => proxy.stop());

    it('a mirror stores nothing wrong while the service is down or answers garbage, and has everything afterwards', async () => {
      const { service, mirror } = world;
      mode = '';
      await addTitles(service.db, 50);
      const program = world.startUnawaited('--from', proxy.url, '--interval', '0.1');
      await eventually('the mirror follows', () => program.output.stderr.includes('Following'));
      for (const [turn, name] of Object.keys(MODES).entries()) {
        mode = name;
        await addTitles(service.db, 210, `in-${turn}`);
        const before = program.output.stderr.length;
        await eventually(`a failure is reported: ${name}`, () =>
          program.output.stderr.slice(before).includes('Retrying in'),
        );
        await requireConsistent(service.db, mirror.db);
        mode = '';
        await eventually(`the mirror has everything after: ${name}`, world.isEqual);
      }
      program.child.kill('SIGTERM');
      assert.equal((await program.ended).code, 0);
    });
  });
});
