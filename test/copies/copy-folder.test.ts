import assert from 'node:assert/strict';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openCopyFolder, type CopyFolder } from '../../src/copies/copy-folder.js';
import { MANIFEST_NAME, type Manifest } from '../../src/copies/manifest.js';
import { openPublishedFolder } from '../../src/copies/published.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { sampleManifest } from './sample-manifest.js';

const BASE_URL = 'https://catalog.example.com';

describe('a folder of published copies', () => {
  let path: string;

  beforeEach(async () => {
    path = await temporaryFolder();
  });

  /** A manifest of one file, as the folder names it. */
  function manifestOf(hash: string, createdAt = new Date()): Manifest {
    const manifest = sampleManifest();
    const name = `titles-1795218005123456-${hash.repeat(16)}.ndjson.gz`;
    const files = manifest.files.slice(0, 1).map((file) => ({ ...file, name }));
    return { ...manifest, base_url: BASE_URL, created_at: createdAt.toISOString(), files };
  }

  async function write(folder: CopyFolder, text: string): Promise<void> {
    await folder.write(
      'titles',
      (async function* () {
        yield Buffer.from(text);
      })(),
    );
  }

  for (const [ending, end] of Object.entries({
    publishes: async (suspended: CopyFolder) => {
      await assert.rejects(suspended.publish(manifestOf('a')), { code: 'ENOENT' });
    },
    ends: (suspended: CopyFolder) => suspended.close(),
  })) {
    it(`a run that was suspended while another one took its place takes none of its files when it ${ending}`, async () => {
      const suspended = await openCopyFolder(path, BASE_URL);
      await write(suspended, 'old');
      // As an expired lock is.
      await rm(join(path, '.publishing'), { recursive: true });
      const other = await openCopyFolder(path, BASE_URL);
      await write(other, 'new');
      await end(suspended);
      const manifest = manifestOf('b');
      await other.publish(manifest);
      assert.equal(await readFile(join(path, manifest.files[0]?.name ?? ''), 'utf8'), 'new');
      assert.equal((await openPublishedFolder(path).read())?.newest.files[0]?.name, manifest.files[0]?.name);
      await other.close();
      await suspended.close();
      assert.ok(!(await readdir(path)).some((name) => name.endsWith('.partial')));
    });
  }

  it('a run removes no copy from a folder whose manifest was deleted before it has published another', async () => {
    const first = await openCopyFolder(path, BASE_URL);
    await write(first, 'first');
    await first.publish(manifestOf('a'));
    await first.close();
    const before = (await readdir(path)).sort();
    await rm(join(path, MANIFEST_NAME));
    const interrupted = await openCopyFolder(path, BASE_URL);
    await write(interrupted, 'second');
    await interrupted.close();
    assert.deepEqual(
      (await readdir(path)).sort(),
      before.filter((name) => name !== MANIFEST_NAME),
    );
  });

  it('copies of one millisecond, or made after the clock was set back, follow one another, and the newest three stay', async () => {
    for (const [hash, nowMs] of [
      ['a', 9_998],
      ['b', 9_998],
      ['c', 5],
      ['d', 10_000],
    ] as const) {
      const folder = await openCopyFolder(path, BASE_URL);
      await write(folder, hash);
      await folder.publish(manifestOf(hash, folder.nextTime(nowMs)));
      await folder.close();
    }
    const { newest, dated = [] } = (await openPublishedFolder(path).read()) ?? {};
    const kept = dated.map(({ name, manifest }) => [name, manifest.files[0]?.name.at(-'.ndjson.gz'.length - 1)]);
    assert.deepEqual(kept, [
      ['manifest-10001.json', 'd'],
      ['manifest-10000.json', 'c'],
      ['manifest-9999.json', 'b'],
    ]);
    assert.deepEqual(newest, dated[0]?.manifest);
    assert.equal((await readdir(path)).filter((name) => name.startsWith('titles-')).length, 3);
  });
});
