import assert from 'node:assert/strict';
import { fileOf, MANIFEST_NAME } from '../../../src/copies/manifest.js';
import { createClient, PositionRefused, type FetchPage } from '../../../src/client/client.js';
import { eventually } from '../../support/eventually.js';
import { startProxy } from '../../support/proxies/altering-proxy.js';
import type { RunningProgram } from '../../support/program.js';
import { addTitles } from '../../support/titles.js';
import { requireEqual } from './equality.js';
import { mirrorWorld } from './mirror-world.js';

/** How often a mirror is killed before it has all that it begins with. */
const KILLS = 15;

const PAGE = 200;

describe('a mirror that is interrupted before it has all that it begins with', () => {
  const world = mirrorWorld();

  async function kill(program: RunningProgram): Promise<void> {
    program.child.kill('SIGKILL');
    await program.ended;
  }

  /** @returns the sizes of what is kept, in its order */
  async function kept(): Promise<number[]> {
    const { rows } = await world.mirror.db.raw<{ rows: [{ table: string | null }] }>(
      "select to_regclass('catalog_mirror.kept') as table",
    );
    if (rows[0].table === null) return [];
    const sizes = await world.mirror.db.raw<{ rows: { bytes: number }[] }>(
      'select length(content) as bytes from catalog_mirror.kept order by place',
    );
    return sizes.rows.map(({ bytes }) => bytes);
  }

  async function keptBytes(): Promise<number> {
    return (await kept()).reduce((sum, bytes) => sum + bytes, 0);
  }

  it('a mirror that is killed 15 times while it reads the feed requests no page twice but that of the kill', async () => {
    await addTitles(world.service.db, (2 * KILLS + 1) * PAGE);
    /** The positions of the pages that were requested in one life. */
    let positions: string[] = [];
    let pages = 2;
    // Holds back the page after the second one, so that the mirror has stored two.
    const proxy = await startProxy(world.service.url, async (response, _mark, { url = '' }) => {
      if (response.status === 200 && url.includes('/changes')) {
        positions.push(url);
        if (positions.length > pages) await new Promise(() => undefined);
      }
      return response;
    });
    try {
      const lives: string[][] = [];
      for (let life = 0; life < KILLS; life += 1) {
        const program = world.startProcess('--from', proxy.url);
        await eventually('two pages are stored', () => positions.length > pages);
        await kill(program);
        lives.push(positions);
        positions = [];
      }
      for (const [index, life] of lives.slice(1).entries()) assert.equal(life[0], lives[index]?.at(-1));
      pages = Infinity;
      const { code, stderr } = await world.run('--from', proxy.url, '--once');
      assert.equal(code, 0, stderr);
      assert.equal(await requireEqual(world.service.db, world.mirror.db), (2 * KILLS + 1) * PAGE);
      assert.deepEqual(await kept(), []);
    } finally {
      await proxy.stop();
    }
  });

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
    assert.deepEqual(await kept(), []);
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
    assert.deepEqual(await kept(), []);
    world.host.requests.length = 0;
    await world.succeed();
    assert.deepEqual(downloads(), [{ path: `/${second.name}`, from: 0, hasKey: false }]);
    await world.requireEqual();
  });

  /** Reads the feed until its second page, and fails there. */
  async function readOnePage(fetchPage: FetchPage): Promise<void> {
    let pages = 0;
    const failing = world.keep(new AbortController().signal, {
      once: true,
      async fetchPage(since, signal) {
        if (since > 0 && (pages += 1) > 1) throw new Error('interrupted');
        return fetchPage(since, signal);
      },
    });
    await assert.rejects(failing, /interrupted/);
    assert.equal((await kept()).length, 1);
  }

  it('pages of the feed are of no use to a mirror once the service has another feed, or no longer their position', async () => {
    await addTitles(world.service.db, 2 * PAGE);
    const fetchPage = createClient({ baseUrl: world.service.url, key: world.service.key });
    const retryPolicy = { firstMs: 1, longestMs: 2, giveUpAfterMs: 100 };
    const loads = async (fetch: FetchPage): Promise<void> => {
      await world.keep(new AbortController().signal, { once: true, fetchPage: fetch, retryPolicy });
      await world.requireEqual();
      await world.reset();
    };
    await readOnePage(fetchPage);
    await world.service.db.raw('update catalog_feed set identity = gen_random_uuid()');
    await loads(fetchPage);

    await addTitles(world.service.db, 2 * PAGE);
    await readOnePage(fetchPage);
    let isRefused = false;
    await loads((since, signal) => {
      if (since === 0 || isRefused) return fetchPage(since, signal);
      isRefused = true;
      return Promise.reject(new PositionRefused('Too old.'));
    });
  });

  it('a mirror that is interrupted after the last page of the feed keeps that page, although none follows it', async () => {
    await addTitles(world.service.db, PAGE + 1);
    const countTitles = (): Promise<never> => Promise.reject(new Error('interrupted'));
    await assert.rejects(world.keep(new AbortController().signal, { once: true, countTitles }), /interrupted/);
    assert.equal((await kept()).length, 2);
    await world.succeed();
    assert.equal(await world.requireEqual(), PAGE + 1);
  });

  it('a page that the database cannot hold is requested again by the next run', async () => {
    await addTitles(world.service.db, PAGE);
    const fetchPage = createClient({ baseUrl: world.service.url, key: world.service.key });
    const broken: FetchPage = async (since, signal) => {
      const result = await fetchPage(since, signal);
      const data = result.page.data.map((entry) => ({ ...entry, title: undefined as unknown as string }));
      return { ...result, page: { ...result.page, data } };
    };
    await assert.rejects(world.keep(new AbortController().signal, { once: true, fetchPage: broken }), /null value/);
    assert.deepEqual(await kept(), []);
    await world.succeed();
    await world.requireEqual();
  });

  it('a mirror that an earlier version made gets the table of what is kept', async () => {
    await addTitles(world.service.db, 3);
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
