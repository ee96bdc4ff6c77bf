import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChangesPage } from '../../src/follower/client.js';
import { runCommand } from '../support/programs/command.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { startService, type TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { TitleWriter } from '../support/catalog/title-writer.js';
import { addTitles } from '../support/titles.js';

type Entry = ChangesPage['data'][number];

const COLUMNS = ['svc_id', 'media_type', 'title', 'has_bundles'] as const;

const TITLES = 2_000;

describe('a mirror from an export', () => {
  let service: TestService;
  let mirror: OpenTestDatabase;
  let writers: TitleWriter[];

  beforeEach(async () => {
    service = await startService();
    mirror = await openTestDatabase();
    await addTitles(service.db, TITLES);
    writers = ['a', 'b', 'c'].map((name) => new TitleWriter(service.db, name, TITLES, 2));
  });

  afterEach(async () => {
    await Promise.all(writers.map((writer) => writer.stop()));
    await mirror.close();
    await service.stop();
  });

  async function catalog(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<string> {
    const { code, stdout, stderr } = await runCommand(args, environment);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  it('equals the catalogue after it has followed with its state file, among active writers', async () => {
    const folder = await temporaryFolder();
    const [copy, state] = [join(folder, 'copy.ndjson'), join(folder, 'mirror.json')];
    await eventually('every writer has committed', () => writers.every(({ commits }) => commits > 0));
    const before = writers.map(({ commits }) => commits);

    const rows = await catalog(['export', '--kind', 'titles', '--state', state, '--base-url', service.url], {
      DATABASE_URL: service.databaseUrl,
    });
    await writeFile(copy, rows);
    await catalog(['import', copy, '--kind', 'titles', '--strict'], { DATABASE_URL: mirror.url });
    const copied = new Map(
      (await mirror.db('titles').select<Entry[]>(...COLUMNS)).map((row) => [row.svc_id, row] as const),
    );
    const after = writers.map(({ commits }) => commits);
    await Promise.all(writers.map((writer) => writer.stop()));
    assert.ok(
      after.every((commits, index) => commits > (before[index] ?? 0)),
      `writers were active: ${before.join()} and then ${after.join()}`,
    );

    const lines = await catalog(['follow', '--base-url', service.url, '--state', state, '--once'], {
      CATALOG_API_KEY: service.key,
    });
    const changes = lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry);
    // No entry of the copy is repeated.
    const again = changes.filter((entry) =>
      COLUMNS.every((column) => copied.get(entry.svc_id)?.[column] === entry[column]),
    );
    assert.deepEqual(again, []);
    for (const { svc_id, media_type, title, has_bundles } of changes) {
      copied.set(svc_id, { ...copied.get(svc_id), svc_id, media_type, title, has_bundles } as Entry);
    }
    const titles = await service
      .db('titles')
      .select<Entry[]>(...COLUMNS)
      .orderBy('svc_id');
    const mirrored = [...copied.values()].sort((one, two) => (one.svc_id < two.svc_id ? -1 : 1));
    assert.ok(titles.length > TITLES);
    assert.deepEqual(mirrored, titles);
  });
});
