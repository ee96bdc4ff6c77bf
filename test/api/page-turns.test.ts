import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { PageTurns } from '../../src/api/page-turns.js';
import { DatabaseTimeout } from '../../src/platform/postgres/errors.js';
import { connectTo } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { testWorld } from '../support/world.js';

describe('turns of pages', () => {
  const world = testWorld();

  /** Holds every turn until it is released. */
  async function occupy(turns: PageTurns<string>): Promise<() => Promise<void>> {
    let release: (page: string) => void = () => undefined;
    const released = new Promise<string>((resolve) => (release = resolve));
    let held = 0;
    const readings = ['one', 'other'].map((id) => turns.load(id, () => ((held += 1), released)));
    await eventually('both turns are taken', () => held === 2);
    return async () => {
      release('');
      await Promise.all(readings);
    };
  }

  it('requests that wait for a page share it, and each of them sees what was committed before it arrived', async () => {
    const turns = new PageTurns<string>(world.db);
    const release = await occupy(turns);
    let [commits, reads] = [0, 0];
    const finish: (() => void)[] = [];
    const read = (id: string) => (): Promise<string> => {
      reads += 1;
      const page = `${id} at ${commits}`;
      return new Promise((resolve) => finish.push(() => resolve(page)));
    };
    const first = turns.load('page', read('page'));
    await setImmediate();
    commits += 1;
    const second = turns.load('page', read('page'));
    const another = turns.load('another', read('another'));
    await release();
    await eventually('both pages are being read', () => finish.length === 2);
    commits += 1;
    const late = turns.load('page', read('page'));
    await setImmediate();
    for (const end of finish) end();
    assert.deepEqual(await Promise.all([first, second, another]), ['page at 1', 'page at 1', 'another at 1']);
    await eventually('the page is read again', () => finish.length === 3);
    finish[2]?.();
    assert.deepEqual([await late, reads], ['page at 2', 3]);
  });

  it('in each turn of the event loop few requests are answered, and one page is sent', async () => {
    const turns = new PageTurns<string>(world.db);
    const answered: string[] = [];
    const requests = [...Array<string>(11).fill('a'), 'b', 'c'].map(async (id) =>
      answered.push(await turns.load(id, () => Promise.resolve(id))),
    );
    const ended = Promise.all(requests);
    while (answered.length < requests.length) {
      const before = answered.length;
      await setImmediate();
      const now = answered.slice(before);
      assert.ok(now.length <= 4 && new Set(now).size <= 1, now.join());
    }
    await ended;
  });

  it('a failure reaches every request that shares the page, and takes no turn away', async () => {
    const turns = new PageTurns<string>(world.db);
    const fail = (): Promise<string> => Promise.reject(new RangeError('refused'));
    for (let i = 0; i < 3; i += 1) {
      for (const failure of [turns.load('page', fail), turns.load('page', fail)]) {
        await assert.rejects(failure, RangeError);
      }
    }
    assert.equal(await turns.load('page', () => Promise.resolve('read')), 'read');
  });

  it('a page whose requests have all waited too long is not read', async () => {
    const hasty = connectTo(world.url, { acquireTimeoutMs: 40 });
    world.defer(() => hasty.destroy());
    const turns = new PageTurns<string>(hasty);
    const release = await occupy(turns);
    const late = assert.rejects(
      turns.load('page', () => assert.fail('it was read')),
      DatabaseTimeout,
    );
    const since = performance.now();
    await eventually('it has waited too long', () => performance.now() - since > 21);
    await release();
    await late;
  });
});
