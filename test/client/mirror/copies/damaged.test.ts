import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { fileOf, MANIFEST_NAME, type Manifest } from '../../../../src/copies/manifest.js';
import { eventually } from '../../../support/eventually.js';
import { temporaryFolder } from '../../../support/temporary-folder.js';
import { addTitles } from '../../../support/titles.js';
import { mirrorWorld } from '../mirror-world.js';

/** What of a published copy differs from how it was published. */
interface Damage {
  readonly manifest?: object;
  readonly file?: Buffer;
  /** What the host responds with in place of the manifest. */
  readonly status?: number;
}

/** A damage, and why the copy is refused. */
type Case = readonly [damage: (manifest: Manifest, file: Buffer) => Damage, reason: RegExp];

function withFile(manifest: Manifest, changes: object): Damage {
  return { manifest: { ...manifest, files: [{ ...fileOf(manifest, 'titles'), ...changes }] } };
}

/** A copy whose second row is another one, in order otherwise. */
function withRow(change: (row: string, first: string) => string): Case[0] {
  return (manifest, file) => {
    const [first = '', second = '', ...rest] = gunzipSync(file).toString().trimEnd().split('\n');
    const changed = change(second, first);
    assert.notEqual(changed, second);
    const decoded = Buffer.from(`${[first, changed, ...rest].join('\n')}\n`);
    const bytes = gzipSync(decoded);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const sizes = { bytes: bytes.length, decoded_bytes: decoded.length };
    return { ...withFile(manifest, { ...sizes, sha256 }), file: bytes };
  };
}

const INVALID_ROW = /The file titles-\S+\.ndjson\.gz of the published copy is not valid: /;

const CASES: Readonly<Record<string, Case>> = {
  'a file that is cut short': [
    (_manifest, file) => ({ file: file.subarray(0, 500) }),
    /is damaged: it ends after 500 of \d+ bytes/,
  ],
  'a file with more at its end': [
    (_manifest, file) => ({ file: Buffer.concat([file, file]) }),
    /is damaged: it is larger than \d+ bytes/,
  ],
  'a file with another byte': [
    (_manifest, file) => {
      const changed = Buffer.from(file);
      changed[file.length - 3] = 255 - (file[file.length - 3] ?? 0);
      return { file: changed };
    },
    /is damaged/,
  ],
  'another hash': [
    (manifest) => withFile(manifest, { sha256: '0'.repeat(64) }),
    /is damaged: its SHA-256 is not that of the/,
  ],
  'another number of rows': [
    (manifest) => withFile(manifest, { rows: 299 }),
    /has 300 rows, but the manifest lists 299/,
  ],
  'more content than it should have': [
    (manifest) => withFile(manifest, { decoded_bytes: 1_000 }),
    /is damaged: it decodes to more than 1000 bytes/,
  ],
  'a row that is longer than a title can be': [
    withRow((row) => row.replace('Title', 'Title'.repeat(100_000))),
    /is damaged: it has a line of more than 65536 bytes/,
  ],
  'a manifest that is not valid': [
    (manifest) => withFile(manifest, { sha256: 'x' }),
    /The manifest is not valid: .*sha256/,
  ],
  'a row that is not JSON': [withRow(() => '{"svc_id":'), INVALID_ROW],
  'a row without a kind': [withRow((row) => row.replace('"series"', 'null')), INVALID_ROW],
  'a row with a month that does not exist': [
    withRow((row) => row.replace(/"updated_at":"[^"]+"/, '"updated_at":"2026-13-01T00:00:00.000000Z"')),
    INVALID_ROW,
  ],
  'a row without a field': [withRow((row) => row.replace(/,"has_bundles":\w+/, '')), INVALID_ROW],
  'a row that comes twice': [withRow((_row, first) => first), INVALID_ROW],
  'a manifest of another service, with control characters in its name': [
    (manifest) => ({ manifest: { ...manifest, base_url: 'https://other.example.com/\u001b[2J' } }),
    /The copy at .* belongs to https:\/\/other\.example\.com\/\uFFFD\[2J, not to http/,
  ],
  'a host that refuses to send it': [
    () => ({ status: 403 }),
    /Cannot download http:\S+manifest\.json: the server responded with 403\. Check --copies, and that the files are publicly/,
  ],
};

describe('copies that are not as they should be', () => {
  const world = mirrorWorld();

  /** The rows of a mirror, and of its state. */
  async function contents(schema: string): Promise<unknown[]> {
    const from = (table: string) => world.mirror.db.withSchema(schema).from(table);
    return [await from('titles').orderBy('svc_id'), await from('state')];
  }

  /** Requires that a mirror neither starts from the published copy nor is compared with it or repaired by it. */
  async function assertRefused(reason: RegExp, ...flags: string[]): Promise<void> {
    assert.match(await world.fail(...flags), reason);
    assert.deepEqual(await contents('catalog_mirror'), [[], []]);
    const before = await contents('kept');
    const { code, stderr } = await world.run('verify', '--repair', '--schema', 'kept', ...flags);
    assert.equal(code, 1);
    assert.match(stderr, reason);
    assert.deepEqual(await contents('kept'), before);
  }

  /** Publishes a copy, and makes a mirror of it that lacks a row. */
  async function keepMirror(): Promise<Manifest> {
    const { service, host, mirror, succeed } = world;
    await addTitles(service.db, 300);
    const manifest = await host.publish(service);
    await succeed('--schema', 'kept');
    await mirror.db.withSchema('kept').from('titles').where({ svc_id: 'title-0007' }).delete();
    return manifest;
  }

  afterEach(() => world.mirror.db.raw('drop schema if exists kept cascade'));

  it('a mirror takes nothing of a damaged copy, and is neither compared with it nor repaired by it', async () => {
    const { host } = world;
    const manifest = await keepMirror();
    const { name } = fileOf(manifest, 'titles');
    const good = host.files.get(name) ?? assert.fail();
    for (const [what, [damage, reason]] of Object.entries(CASES)) {
      const { status, file = good, manifest: changed = manifest } = damage(manifest, good);
      host.files.set(name, file);
      host.files.set(MANIFEST_NAME, Buffer.from(JSON.stringify(changed)));
      if (status !== undefined) host.refusals.set(`/${MANIFEST_NAME}`, status);
      await assertRefused(reason).catch((error: unknown) => {
        throw new Error(`${what}: ${String(error)}`, { cause: error });
      });
    }
  });

  it('a mirror uses only copies that the holder of the key has signed, if a public key is given', async () => {
    const { service, host } = world;
    await keepMirror();
    const [ours, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
    const file = join(await temporaryFolder(), 'public.pem');
    await writeFile(file, ours.publicKey.export({ type: 'spki', format: 'pem' }));
    for (const [key, reason] of [
      [undefined, /The manifest is not signed, but a public key was given\./],
      [other.privateKey, /The signature of the manifest does not match the public key\. Do not use this copy\./],
    ] as readonly (readonly [KeyObject | undefined, RegExp])[]) {
      await host.publish(service, key);
      await assertRefused(reason, '--public-key', file);
    }
    await host.publish(service, ours.privateKey);
    await world.succeed('--public-key', file);
    await world.requireEqual();
  });

  it('a mirror tries a damaged copy again after an hour, and not before', async () => {
    const { service, host } = world;
    await addTitles(service.db, 300);
    const { name } = fileOf(await host.publish(service), 'titles');
    const good = host.files.get(name) ?? assert.fail();
    host.files.set(name, good.subarray(0, 500));
    const ending = new AbortController();
    const { now } = Date;
    let [refusals, hasLoaded] = [0, false];
    const keeping = world.keep(ending.signal, {
      observe({ kind }) {
        if (kind === 'retrying') refusals += 1;
        if (kind === 'loaded') hasLoaded = true;
      },
    });
    const downloads = (): number => host.requests.filter(({ path }) => path === `/${name}`).length;
    try {
      await eventually('it waits', () => refusals > 5);
      const before = downloads();
      assert.ok(before > 0);
      host.files.set(name, good);
      await eventually('it still waits', () => refusals > 10);
      assert.equal(downloads(), before);
      Date.now = () => now() + 3_600_000;
      await eventually('it has loaded the copy', () => hasLoaded);
    } finally {
      Date.now = now;
      ending.abort();
      await keeping;
    }
    await world.requireEqual();
  });

  it('a mirror stores nothing of a copy whose position the feed refuses', async () => {
    const { service, host } = world;
    await addTitles(service.db, 3);
    const manifest = await host.publish(service);
    const future = { ...manifest, position: manifest.position + 1e6 };
    host.files.set(MANIFEST_NAME, Buffer.from(JSON.stringify(future)));
    await assert.rejects(
      world.keep(new AbortController().signal, {
        once: true,
        retryPolicy: { firstMs: 10, longestMs: 20, giveUpAfterMs: 50 },
      }),
      /is more than 60 seconds in the future/,
    );
    assert.equal(await world.state(), undefined);
  });
});
