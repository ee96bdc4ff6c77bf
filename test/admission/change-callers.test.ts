import assert from 'node:assert/strict';
import { LEASE_MS } from '../../src/admission/caller-cache.js';
import { ANNOUNCEMENTS, changeCallers } from '../../src/admission/change-callers.js';
import { DatabaseSuperseded, Fence } from '../../src/platform/postgres/fence.js';
import { testWorld } from '../support/world.js';

describe('changes of callers by a process without Redis', () => {
  const world = testWorld({ redis: true });

  /** Makes a change. @returns what happened, in order */
  async function change(developerIds: readonly number[]): Promise<string[]> {
    const steps: string[] = [];
    let now = 0;
    const makeIt = changeCallers(
      { db: world.db, fence: new Fence(), redis: undefined, onWait: () => steps.push('told to wait') },
      {
        now: () => now,
        sleep: async (ms) => {
          steps.push(ms >= LEASE_MS ? 'waited for a lease' : 'waited');
          now += ms;
        },
      },
    );
    const act = async (): Promise<string> => {
      now += 1_000;
      steps.push('committed');
      return 'result';
    };
    assert.equal(await makeIt(act, () => developerIds), 'result');
    return steps;
  }

  it('a change is not reported once another server has become the primary', async () => {
    const fence = new Fence();
    fence.accept({ is_standby: false, is_read_only: false, system: '7', timeline: 1 });
    const act = async (): Promise<void> => fence.observe({ system: '7', number: 2 });
    const change = changeCallers({ db: world.db, fence, redis: undefined });
    await assert.rejects(
      change(act, () => []),
      DatabaseSuperseded,
    );
  });

  it('a change waits for a lease since its commit where a server may cache callers, and nowhere else', async () => {
    const readers = (): Promise<unknown> => world.db(ANNOUNCEMENTS.readers).first('singleton');
    assert.deepEqual([await readers(), await change([1])], [undefined, ['committed']]);
    await world.startService({ settings: { REDIS_URL: '' } });
    assert.deepEqual([await readers(), await change([1])], [undefined, ['committed']]);
    const server = await world.startService();
    const waits = ['committed', 'told to wait', 'waited for a lease'];
    assert.deepEqual([await change([1]), await change([])], [waits, ['committed']]);
    await server.stop();
    // It may have been killed, and another one may be about to start.
    assert.deepEqual(await change([1]), waits);
    const read = (until: string) => world.db(ANNOUNCEMENTS.readers).update({ read_until: world.db.raw(until) });
    await read("now() - interval '1 second'");
    assert.deepEqual(await change([1]), ['committed']);
    await read("now() + interval '11 hours'");
    await world.startService();
    const far: unknown = await world
      .db(ANNOUNCEMENTS.readers)
      .whereRaw("read_until > now() + interval '20 hours'")
      .first('singleton');
    assert.notEqual(far, undefined, 'a server moves the time on before it opens its cache');
    await world.db.raw(`alter table ${ANNOUNCEMENTS.readers} rename to hidden`);
    assert.deepEqual(await change([1]), waits, 'in doubt');
  });
});
