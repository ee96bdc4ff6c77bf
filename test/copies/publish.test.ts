import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { readBounds } from '../../src/catalog/feed.js';
import { fileOf, parseManifest, type Manifest } from '../../src/copies/manifest.js';
import { requireSignature } from '../../src/copies/signature.js';
import { toSeconds } from '../../src/platform/time/micros.js';
import { eventually } from '../support/eventually.js';
import { runProgram, startProgram, type Outcome } from '../support/program.js';
import { runCommand, startCommand } from '../support/programs/command.js';
import { recordFiles } from '../support/programs/file-events.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles, changesOf, titleIds } from '../support/titles.js';
import { testWorld } from '../support/world.js';

const BASE_URL = 'https://catalog.example.com';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const SIGNING_KEY = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');

describe('catalog export --publish', () => {
  const world = testWorld();
  let folder: string;

  before(async () => {
    await addTitles(world.db, 12);
    await world.db('people').insert({ svc_id: 'person-1', name: 'Zoë "Z" Müller' });
  });

  beforeEach(async () => {
    folder = await temporaryFolder();
  });

  function args(place = folder): string[] {
    return ['export', '--publish', place, '--base-url', BASE_URL];
  }

  function run(settings: Readonly<Record<string, string>> = {}, ...flags: string[]): Promise<Outcome> {
    return runCommand([...args(), ...flags], { DATABASE_URL: world.url, ...settings });
  }

  /** Acts while no run can read the collections. */
  async function blocked(act: () => Promise<void>): Promise<void> {
    const blocker = await world.db.transaction();
    try {
      await blocker.raw('lock table collections in access exclusive mode');
      await act();
    } finally {
      await blocker.rollback();
    }
  }

  async function waitsAfterTitles(): Promise<void> {
    await eventually('the run waits after the titles', async () =>
      (await readdir(folder)).some((name) => /^collections\..*partial$/.test(name)),
    );
  }

  async function publish(settings: Readonly<Record<string, string>> = {}): Promise<Manifest> {
    const { code, stderr } = await run(settings);
    assert.deepEqual([code, stderr], [0, '']);
    return readManifest();
  }

  async function readManifest(): Promise<Manifest> {
    return parseManifest(await readFile(join(folder, 'manifest.json'), 'utf8'));
  }

  function namesIn(...manifests: readonly Manifest[]): string[] {
    return manifests.flatMap(({ files }) => files.map(({ name }) => name)).sort();
  }

  async function copyFiles(): Promise<string[]> {
    return (await readdir(folder)).filter((name) => name.endsWith('.gz')).sort();
  }

  async function rowsOf(manifest: Manifest, kind: string): Promise<unknown[]> {
    const { name, bytes, decoded_bytes: decodedBytes, rows, sha256 } = fileOf(manifest, kind);
    const content = await readFile(join(folder, name));
    assert.equal(content.length, bytes);
    assert.equal(createHash('sha256').update(content).digest('hex'), sha256);
    const decoded = gunzipSync(content);
    assert.equal(decoded.length, decodedBytes);
    const lines = decoded.toString().split('\n').slice(0, -1);
    assert.equal(lines.length, rows);
    return lines.map((line) => JSON.parse(line) as unknown);
  }

  /** Makes the next copy differ. */
  function change(): PromiseLike<unknown> {
    return world
      .db('people')
      .where({ svc_id: 'person-1' })
      .update({ name: world.db.raw("name || '.'") });
  }

  it('publishes all rows with the fields of the feed, sorted by id, and the position to follow from', async () => {
    const before = Date.now();
    const { code, stdout, stderr } = await run();
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(
      stdout,
      /^Published 12 titles, 1 people, 0 collections \(not signed\); follow from \d+\.\d+ \(.*Z\)\n$/,
    );
    const manifest = await readManifest();
    assert.equal(manifest.base_url, BASE_URL);
    assert.equal(manifest.position, toSeconds((await readBounds(world.db)).newest));
    const created = Date.parse(manifest.created_at);
    assert.ok(created >= before && created <= Date.now(), manifest.created_at);
    const rows = (await rowsOf(manifest, 'titles')) as { svc_id: string }[];
    assert.deepEqual(
      rows.map(({ svc_id: id }) => id),
      titleIds(12),
    );
    const service = await world.startService();
    const { data } = changesOf(await service.get(`/api/v1/changes?since=${manifest.position - 60}`));
    assert.deepEqual(new Map(rows.map((row) => [row.svc_id, row])), new Map(data.map((row) => [row.svc_id, row])));
    assert.deepEqual(await rowsOf(manifest, 'people'), [{ svc_id: 'person-1', name: 'Zoë "Z" Müller' }]);
    assert.deepEqual(await rowsOf(manifest, 'collections'), []);
  });

  it('the manifest is signed with the key of COPY_SIGNING_KEY, which is printed nowhere', async () => {
    const { stdout, stderr } = await run({ COPY_SIGNING_KEY: SIGNING_KEY }, '--json');
    const manifest = await readManifest();
    requireSignature(manifest, publicKey);
    assert.deepEqual(JSON.parse(stdout), manifest);
    assert.ok(!`${stdout}${stderr}${JSON.stringify(manifest)}`.includes(SIGNING_KEY));
  });

  it('all files are on the disk before they get their names, and have them before the manifest is replaced', async () => {
    const events = await recordFiles(args(), { DATABASE_URL: world.url }, join(await temporaryFolder(), 'output'));
    const { created_at: created, files } = await readManifest();
    const record = `manifest-${Date.parse(created)}.json`;
    const name = basename(folder);
    assert.deepEqual(events, [
      ...files.map((file) => `sync ${file.name} in the making`),
      ...files.map((file) => `${file.name} in the making -> ${file.name}`),
      `sync ${name}`,
      ...[record, 'manifest.json'].flatMap((each) => [
        `sync ${each} in the making`,
        `${each} in the making -> ${each}`,
        `sync ${name}`,
      ]),
    ]);
  });

  it('the newest three copies are kept, and files that an operator added stay', async () => {
    await writeFile(join(folder, 'README.txt'), 'mine');
    await writeFile(join(folder, 'mine.ndjson.gz'), 'mine');
    const published: Manifest[] = [];
    for (let turn = 0; turn < 5; turn++) {
      await change();
      published.push(await publish());
    }
    const kept = new Set(namesIn(...published.slice(2)));
    assert.deepEqual(await copyFiles(), [...kept, 'mine.ndjson.gz'].sort());
    assert.equal(
      (await readdir(folder)).length,
      kept.size + 3 + 3,
      'with three manifests of copies, the newest manifest and the two files',
    );
  });

  it('copies of the same position have files of different names if people changed, and the same file if nothing did', async () => {
    await change();
    const first = await publish();
    await change();
    const second = await publish();
    const third = await publish();
    assert.equal(first.position, second.position);
    assert.notEqual(fileOf(first, 'people').name, fileOf(second, 'people').name);
    assert.equal(fileOf(first, 'titles').name, fileOf(second, 'titles').name);
    assert.deepEqual(third.files, second.files);
    assert.ok(third.created_at > second.created_at);
    for (const manifest of [first, second, third]) assert.equal((await rowsOf(manifest, 'people')).length, 1);
  });

  it('a run that is killed changes nothing, and the next run removes what it left', async () => {
    const first = await publish();
    const before = (await readdir(folder)).sort();
    await blocked(async () => {
      const program = startProgram(args(), { DATABASE_URL: world.url });
      await waitsAfterTitles();
      const { code, stderr } = await run();
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^catalog: Another run is publishing into .* If it was killed, the lock expires after 15 s\.\n$/,
      );
      program.child.kill('SIGKILL');
      await program.ended;
    });
    assert.deepEqual(await readManifest(), first);
    assert.ok((await readdir(folder)).length > before.length);
    // A run that was killed before it replaced the manifest has named its files and written the manifest of its copy.
    const orphans = first.files.map((file) => ({
      ...file,
      name: file.name.replace(/-[0-9a-f]{16}/, '-0000000000000000'),
    }));
    for (const { name } of orphans) await writeFile(join(folder, name), '');
    const time = Date.parse(first.created_at) + 1;
    const orphan = { ...first, created_at: new Date(time).toISOString(), files: orphans };
    await writeFile(join(folder, `manifest-${time}.json`), JSON.stringify(orphan));
    // The lock of a killed run expires.
    await utimes(join(folder, '.publishing'), 0, 0);
    const second = await publish();
    assert.deepEqual(await copyFiles(), [...new Set(namesIn(first, second))].sort());
    assert.equal((await readdir(folder)).filter((name) => name.startsWith('manifest-')).length, 2);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => /partial|publishing/.test(name)),
      [],
    );
  });

  it('a run that is interrupted changes nothing and leaves nothing', async () => {
    await publish();
    const before = (await readdir(folder)).sort();
    await blocked(async () => {
      const run = startCommand(args(), { DATABASE_URL: world.url });
      await waitsAfterTitles();
      const { code, stdout, stderr } = await run.stop();
      assert.deepEqual([code, stdout, stderr], [1, '', 'catalog: Interrupted. Nothing was published.\n']);
    });
    assert.deepEqual((await readdir(folder)).sort(), before);
  });

  it('a disk that is full, early or late in a file, is named as the reason, and changes nothing', async () => {
    await publish();
    const before = (await readdir(folder)).sort();
    // More than the streams between the database and the file buffer: 500 kB compressed.
    await world.db.raw(`
      insert into titles (svc_id, media_type, title)
      select 'many-' || i, 'movie', md5(i::text) || md5(i::text || '.') from generate_series(1, 12000) as i`);
    for (const fileBlocks of [4, 500]) {
      const { code, stderr } = await runProgram(args(), { DATABASE_URL: world.url }, '', { fileBlocks });
      assert.equal(code, 1);
      assert.match(stderr, /^catalog: Cannot publish into .*: EFBIG.*\n$/);
      assert.deepEqual((await readdir(folder)).sort(), before);
    }
  });

  it('a folder that is missing, damaged or has copies of another service is refused', async () => {
    const cases: [folder: string, manifest: string | undefined, message: RegExp][] = [
      ['missing', undefined, /The folder .*missing does not exist\. Create it first\./],
      [
        'damaged',
        '{',
        /manifest\.json is damaged: The manifest is not valid: it is not JSON\. Delete it and publish again\./,
      ],
      [
        'other',
        JSON.stringify({ ...(await publish()), base_url: 'https://other.example' }),
        /holds copies of https:\/\/other\.example, not of/,
      ],
    ];
    const parent = await temporaryFolder();
    for (const [name, manifest, message] of cases) {
      const place = join(parent, name);
      if (manifest !== undefined) {
        await mkdir(place);
        await writeFile(join(place, 'manifest.json'), manifest);
      }
      const { code, stderr } = await runCommand(args(place), { DATABASE_URL: world.url });
      assert.equal(code, 1);
      assert.match(stderr, message);
      if (manifest !== undefined) assert.deepEqual(await readdir(place), ['manifest.json']);
    }
  });

  it('the base URL defaults to PUBLIC_URL, and is required without it', async () => {
    const flags = ['export', '--publish', folder];
    const { code } = await runCommand(flags, { DATABASE_URL: world.url, PUBLIC_URL: `${BASE_URL}/` });
    assert.equal(code, 0);
    assert.equal((await readManifest()).base_url, BASE_URL);
    const refused = await runCommand(flags, { DATABASE_URL: world.url });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /--publish requires --base-url/);
  });

  it('the rights that the guide lists are enough to publish', async () => {
    await world.db.raw(`
      create role catalog_publisher login password 'publisher';
      grant select on titles, people, collections, catalog_feed, migrations to catalog_publisher`);
    try {
      const url = new URL(world.url);
      [url.username, url.password] = ['catalog_publisher', 'publisher'];
      const { code, stderr } = await run({ DATABASE_URL: url.href });
      assert.deepEqual([code, stderr], [0, '']);
    } finally {
      await world.db.raw('drop owned by catalog_publisher; drop role catalog_publisher');
    }
  });
});
