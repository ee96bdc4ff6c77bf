import assert from 'node:assert/strict';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { registerExport } from '../../src/commands/export/export.js';
import { Fence } from '../../src/platform/postgres/fence.js';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { addTitles } from '../support/titles.js';

describe('catalog export on a terminal', () => {
  let database: OpenTestDatabase;

  before(async () => {
    database = await openTestDatabase();
    await addTitles(database.db, 1_500);
  });

  after(() => database.close());

  for (const [flags, drawn] of [
    [[], /titles: writing .*100% \| 1,500 rows \| [\d,]+ rows\/s/],
    [['--json'], /^$/],
  ] as const) {
    it(flags.length === 0 ? 'draws a bar of all rows' : 'draws no bar with --json', async () => {
      const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY: true })];
      const program = new Command('catalog').exitOverride();
      registerExport(program, {
        stdin: new PassThrough(),
        stdout,
        stderr,
        packageRoot: '',
        pid: 0,
        atExit: () => undefined,
        signal: new AbortController().signal,
        drains: () => false,
        workerId: undefined,
        command: 'catalog',
        clientKey: () => '',
        config: () => assert.fail(),
        withDatabase: (use) => use(database.db, new Fence()),
        withRedis: () => assert.fail(),
      });
      const file = join(await temporaryFolder(), 'titles.csv');
      await program.parseAsync(['export', file, '--kind', 'titles', ...flags], { from: 'user' });
      stdout.end();
      stderr.end();
      assert.match(await text(stderr), drawn);
      assert.match(await text(stdout), /1,?500/);
    });
  }
});
