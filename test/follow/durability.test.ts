import assert from 'node:assert/strict';
import { basename, join } from 'node:path';
import { recordFiles } from '../support/programs/file-events.js';
import { startService, type TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';

describe('catalog follow, into a file', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it('has each page on the disk before its position, and each position on the disk before it counts', async () => {
    await addTitles(service.db, 201);
    const folder = await temporaryFolder();
    const since = String(Math.floor(Date.now() / 1000) - 600);
    const events = await recordFiles(
      ['follow', '--base-url', service.url, '--state', join(folder, 'mirror.json'), '--since', since, '--once'],
      { CATALOG_API_KEY: service.key },
      join(folder, 'changes.ndjson'),
    );
    const page = [
      'sync 1',
      'sync mirror.json in the making',
      'mirror.json in the making -> mirror.json',
      `sync ${basename(folder)}`,
    ];
    assert.deepEqual(events, [...page, ...page]);
  });
});
