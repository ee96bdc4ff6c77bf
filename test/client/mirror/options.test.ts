import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { programCommands } from '../../support/programs/command.js';
import { freePort } from '../../support/programs/free-port.js';
import { startProxy } from '../../support/proxies/altering-proxy.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { mirrorWorld } from './mirror-world.js';

/** Leads to no database. */
const NOWHERE = 'postgres://me@127.0.0.1:1/films';

describe('the options of the commands about a mirror', () => {
  const world = mirrorWorld();

  beforeEach(() => addTitles(world.service.db, 30));

  /** Publishes a copy and makes a mirror that has two rows fewer. */
  async function fall(): Promise<void> {
    await world.host.publish(world.service);
    await world.succeed();
    await world.mirror.db.raw("delete from catalog_mirror.titles where svc_id in ('title-0007', 'title-0008')");
  }

  /** Makes a copy that lacks most rows of the mirror. */
  async function shrink(): Promise<void> {
    await world.mirror.db.raw(
      "insert into catalog_mirror.titles select 'extra-' || i, 'movie', 'T', '2020-01-01', false from generate_series(1, 30) i",
    );
  }

  async function reasonOf(...args: string[]): Promise<string> {
    const { code, stderr } = await world.run(...args);
    assert.notEqual(code, 0);
    return stderr;
  }

  /** @returns the file of a key that has signed nothing */
  async function otherKey(): Promise<string> {
    const file = join(await temporaryFolder(), 'copies.pub');
    await writeFile(file, generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }));
    return file;
  }

  /** What each option changes. */
  const EFFECTS: Readonly<Record<string, () => Promise<void>>> = {
    'mirror --from': async () => assert.match(await reasonOf('--from', 'ftp://x'), /--from is not a valid URL/),
    'mirror --into': async () => assert.match(await reasonOf('--into', NOWHERE, '--once'), /cannot be reached/),
    'mirror --schema': async () => {
      await world.succeed('--schema', 'second');
      assert.deepEqual(await world.mirror.db.withSchema('second').from('titles').count(), [{ count: 30 }]);
      await world.mirror.db.raw('drop schema second cascade');
    },
    'mirror --copies': async () => {
      await world.succeed();
      assert.deepEqual(
        world.host.requests.map(({ path }) => path),
        ['/manifest.json'],
      );
    },
    'mirror --public-key': async () => {
      await world.host.publish(world.service);
      assert.match(await reasonOf('--once', '--public-key', await otherKey()), /The manifest is not signed/);
    },
    'mirror --allow-removals': async () => {
      await fall();
      await shrink();
      await world.service.db.raw('update catalog_feed set identity = gen_random_uuid()');
      await world.host.publish(world.service);
      assert.match(await reasonOf('--once'), /would remove 30 of the mirror's 58 rows/);
      await world.succeed('--allow-removals');
      await world.requireEqual();
    },
    'mirror --interval': async () => {
      let polls = 0;
      // The plan's limits leave a poll a minute.
      const proxy = await startProxy(world.service.url, (response, _mark, { url = '' }) => {
        if (url.includes('/changes')) polls += 1;
        const headers = { ratelimit: '"day";r=1;t=86400', 'ratelimit-policy': '"day";q=10000;w=86400' };
        return { ...response, headers: { ...response.headers, ...headers } };
      });
      const program = world.startUnawaited('--from', proxy.url, '--interval', '0.1');
      try {
        await eventually('it has polled more often', () => polls > 10);
      } finally {
        await program.stop();
        await proxy.stop();
      }
    },
    'mirror --once': async () => void (await world.succeed()),
    'mirror --metrics-address': async () => {
      const port = await freePort();
      const program = await world.start('--metrics-address', `127.0.0.1:${port}`);
      const { status } = await fetch(`http://127.0.0.1:${port}/metrics`);
      await program.stop();
      assert.equal(status, 200);
    },
    'mirror verify --from': async () => assert.match(await reasonOf('verify', '--from', 'ftp://x'), /--from is not/),
    'mirror verify --into': async () => {
      await fall();
      assert.match(await reasonOf('verify', '--into', NOWHERE), /cannot be reached/);
    },
    'mirror verify --schema': async () => {
      await fall();
      assert.match(await reasonOf('verify', '--schema', 'other'), /The schema other of this database has no mirror/);
    },
    'mirror verify --copies': async () =>
      assert.match(await reasonOf('verify'), new RegExp(`at ${world.host.url}/\\.`)),
    'mirror verify --public-key': async () => {
      await fall();
      assert.match(await reasonOf('verify', '--public-key', await otherKey()), /The manifest is not signed/);
    },
    'mirror verify --json': async () => {
      await fall();
      const { stdout } = await world.run('verify', '--json');
      assert.equal((JSON.parse(stdout) as { differences: number }).differences, 2);
    },
    'mirror verify --repair': async () => {
      await fall();
      assert.match(await reasonOf('verify'), /with --repair to correct it/);
      assert.match((await world.run('verify', '--repair')).stdout, /Repaired\./);
      await world.requireEqual();
    },
    'mirror verify --allow-removals': async () => {
      await fall();
      await shrink();
      assert.match(await reasonOf('verify', '--repair'), /would remove 30 of the mirror's 58 rows/);
      assert.match((await world.run('verify', '--repair', '--allow-removals')).stdout, /Repaired\./);
      await world.requireEqual();
    },
  };

  for (const [option, effect] of Object.entries(EFFECTS)) {
    it(`catalog ${option} has an effect`, effect);
  }

  it('each option of the commands about a mirror is in this list', async () => {
    const commands = (await programCommands()).filter(({ name }) => /^mirror\b/.test(name));
    const options = commands.flatMap(({ name, command }) => command.options.map(({ long }) => `${name} ${long}`));
    assert.deepEqual(options.sort(), Object.keys(EFFECTS).sort());
  });
});
