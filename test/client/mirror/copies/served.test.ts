import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requireEqual } from '../equality.js';
import { openTestDatabase, type OpenTestDatabase } from '../../../support/database.js';
import type { Outcome } from '../../../support/program.js';
import { runCommand } from '../../../support/programs/command.js';
import type { TestService } from '../../../support/service.js';
import { temporaryFolder } from '../../../support/temporary-folder.js';
import { addTitles } from '../../../support/titles.js';
import { testWorld } from '../../../support/world.js';

describe('a mirror from copies that the service serves', () => {
  const world = testWorld();
  let service: TestService;
  let mirror: OpenTestDatabase;
  let folder: string;

  before(async () => {
    folder = await temporaryFolder();
    service = await world.startService({ settings: { COPIES_DIR: folder, SITE: 'off' } });
    mirror = await openTestDatabase();
    world.defer(() => mirror.close());
  });

  function run(command: readonly string[], publicKey: string): Promise<Outcome> {
    return runCommand([...command, '--from', service.url, '--public-key', publicKey], {
      CATALOG_API_KEY: service.key,
      MIRROR_DATABASE_URL: mirror.url,
    });
  }

  it('begins with the signed copy of catalog export --publish, equals the catalogue and is found equal', async () => {
    const pair = generateKeyPairSync('ed25519');
    const publicKey = join(await temporaryFolder(), 'copies.pub');
    await writeFile(publicKey, pair.publicKey.export({ format: 'pem', type: 'spki' }));
    const COPY_SIGNING_KEY = String(pair.privateKey.export({ format: 'pem', type: 'pkcs8' }));
    await addTitles(world.db, 500);
    await world.db('titles').where({ svc_id: 'title-0001' }).update({ title: 'Tab\tquote" \\N é \u{1F3AC}' });
    const published = await runCommand(['export', '--publish', folder, '--base-url', service.url], {
      DATABASE_URL: world.url,
      COPY_SIGNING_KEY,
    });
    assert.equal(published.code, 0, published.stderr);
    await addTitles(world.db, 20, 'later');

    const mirrored = await run(['mirror', '--once'], publicKey);
    assert.equal(mirrored.code, 0, mirrored.stderr);
    assert.match(mirrored.stderr, /Loaded the copy of .*: 500 inserted/);
    assert.equal(await requireEqual(world.db, mirror.db), 520);
    const verified = await run(['mirror', 'verify'], publicKey);
    assert.equal(verified.code, 0, verified.stderr);
    assert.match(verified.stdout, /500 rows; the mirror has 520, 20 of them newer\.\nAll other rows match\./);
  });
});
