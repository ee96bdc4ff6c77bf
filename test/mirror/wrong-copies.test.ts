import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { MANIFEST_NAME } from '../../src/copies/manifest.js';
import type { OpenTestDatabase } from '../support/database.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';
import { mirrorWorld } from './mirror-world.js';
import type { CopyHost } from './publishing.js';

describe('a mirror and copies that are not as they should be', () => {
  const world = mirrorWorld();
  const { succeed, fail } = world;
  let service: TestService;
  let host: CopyHost;
  let mirror: OpenTestDatabase;

  before(() => {
    ({ service, host, mirror } = world);
  });

  it('a mirror stores nothing of a copy whose position the feed refuses', async () => {
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

  it('a mirror names the host that refuses to send copies', async () => {
    await addTitles(service.db, 3);
    host.refusals.set('/manifest.json', 403);
    assert.match(
      await fail(),
      /Cannot download http:\S+manifest\.json: the server responded with 403\. Check --copies, and that the files are publicly/,
    );
  });

  it('a mirror uses no copy of another service', async () => {
    await addTitles(service.db, 3);
    await host.publish({ url: 'https://other.example.com', db: service.db });
    assert.match(await fail(), /The copy at .* belongs to https:\/\/other\.example\.com, not to http/);
  });

  it('a mirror uses only copies that the holder of the key has signed, if a public key is given', async () => {
    await addTitles(service.db, 3);
    const [ours, other] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
    const file = join(await temporaryFolder(), 'public.pem');
    await writeFile(file, ours.publicKey.export({ type: 'spki', format: 'pem' }));
    await host.publish(service);
    assert.match(await fail('--public-key', file), /The manifest is not signed, but a public key was given\./);
    await host.publish(service, other.privateKey);
    assert.match(await fail('--public-key', file), /The signature of the manifest does not match the public key\./);
    await host.publish(service, ours.privateKey);
    await succeed('--public-key', file);
    await world.requireEqual();
  });

  it('a mirror shows nothing of a copy whose file is not as the manifest says', async () => {
    await addTitles(service.db, 300);
    const { files } = await host.publish(service);
    const name = files[0]?.name ?? '';
    const good = host.files.get(name) ?? Buffer.alloc(0);
    const flipped = Buffer.from(good);
    flipped[good.length - 3] = 255 - (flipped[good.length - 3] ?? 0);
    const manifest = host.files.get(MANIFEST_NAME)?.toString() ?? '';
    const damages: [Buffer, string, RegExp][] = [
      [good.subarray(0, 500), manifest, /is damaged: it ends after 500 of \d+ bytes/],
      [Buffer.concat([good, good]), manifest, /is damaged: it is larger than the manifest says/],
      [flipped, manifest, /is damaged/],
      [good, manifest.replace('"rows": 300', '"rows": 301'), /has 300 rows, and the manifest says 301/],
      [good, manifest.replace(/"sha256": ".{8}/, '"sha256": "00000000'), /is damaged: its SHA-256 is not that of the/],
      [good, manifest.replace(/"sha256": "./, '"sha256": "x'), /The manifest is not valid: .*sha256/],
    ];
    for (const [file, text, reason] of damages) {
      host.files.set(name, file);
      host.files.set(MANIFEST_NAME, Buffer.from(text));
      assert.match(await fail(), reason);
      assert.equal(await world.state(), undefined);
      assert.equal((await mirror.db.withSchema('catalog_mirror').from('titles')).length, 0);
    }
  });

  it('a mirror loads no copy with a row that is malformed, incomplete or repeated', async () => {
    await addTitles(service.db, 3);
    const manifest = await host.publish(service);
    const [file] = manifest.files;
    const lines = gunzipSync(host.files.get(file?.name ?? '') ?? '')
      .toString()
      .trimEnd()
      .split('\n');
    const [first = '', second = ''] = lines;
    for (const wrong of [
      '{"svc_id":',
      second.replace('"series"', 'null'),
      second.replace(/"updated_at":"[^"]+"/, '"updated_at":"2026-13-01T00:00:00.000000Z"'),
      second.replace(/,"has_bundles":\w+/, ''),
      first,
    ]) {
      assert.notEqual(wrong, second);
      const bytes = gzipSync(`${[first, wrong, ...lines.slice(2)].join('\n')}\n`);
      host.files.set(file?.name ?? '', bytes);
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const files = [{ ...file, bytes: bytes.length, sha256 }];
      host.files.set(MANIFEST_NAME, Buffer.from(JSON.stringify({ ...manifest, files })));
      assert.match(await fail(), /The file titles-\S+\.ndjson\.gz of the published copy is not valid: /);
      assert.equal(await world.state(), undefined);
    }
  });
});
