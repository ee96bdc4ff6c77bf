import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { builtProgram, runProgram } from '../support/program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

describe('the program as a process', () => {
  const world = testWorld();

  it('printed commands begin as the program was started, which ends with their exit code', async () => {
    const folder = await temporaryFolder();
    const links = ['catalog', 'catalog-lookup-service'].map((name) => `${folder}/${name}`) as [string, string];
    for (const link of links) await symlink(builtProgram(), link);
    const starts: [string[], object, string, string][] = [
      [['.build/cli.js'], {}, '.', 'node .build/cli.js'],
      [[links[0]], {}, '.', 'catalog'],
      [[links[1]], { npm_command: 'exec' }, '.', 'npx --no -- catalog-lookup-service'],
    ];
    for (const [script, npm, cwd, command] of starts) {
      const run = (...args: string[]): { status: number | null; stdout: string; stderr: string } =>
        spawnSync(process.execPath, [...script, ...args], {
          env: { DATABASE_URL: world.url, ...npm },
          cwd,
          encoding: 'utf8',
        });
      const { status, stdout: help } = run('keys', 'create', '--help');
      assert.equal(status, 0);
      assert.ok(help.startsWith(`Usage: ${command} keys create [options]`), help);
      assert.ok(help.includes(`  ${command} keys create --developer 1`), help);
      // The texts of commands take the same way as their help, so one start is enough for them.
      if (command !== 'catalog') continue;
      const created = run('developers', 'create', '--project-name', 'P').stdout;
      assert.match(created, new RegExp(`\n  ${command} keys create --developer \\d+ --plan free\n$`));
      const failed = run('developers', 'suspend', '999');
      assert.equal(failed.status, 1);
      assert.equal(failed.stderr, `catalog: There is no developer 999. "${command} developers list" shows them all.\n`);
    }
  });

  it('a command gets standard input and the environment of the process, and no package prints what it sends', async () => {
    const args = ['import', '-', '--kind', 'people', '--format', 'csv', '--json'];
    const { code, stdout, stderr } = await runProgram(
      args,
      { DATABASE_URL: world.url, DEBUG: '*' },
      'svc_id,name\np,Person\n',
    );
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.deepEqual({ ...(JSON.parse(stdout) as object), created: 1 }, JSON.parse(stdout));
    assert.deepEqual(await world.db('people').select('svc_id', 'name'), [{ svc_id: 'p', name: 'Person' }]);
  });
});
