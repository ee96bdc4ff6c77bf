import assert from 'node:assert/strict';
import { openTestDatabase, type OpenTestDatabase } from '../support/database.js';
import { runProgram } from '../support/program.js';

describe('the process of the program', () => {
  let database: OpenTestDatabase;
  before(async () => (database = await openTestDatabase()));
  after(() => database.close());

  it('ends with the exit code of its command: 0, 1 for a failure, 2 for wrong arguments', async () => {
    const help = await runProgram(['keys', '--help'], {});
    assert.deepEqual({ code: help.code, stderr: help.stderr }, { code: 0, stderr: '' });
    assert.match(help.stdout, /^Usage: catalog keys /);
    const failed = await runProgram(['keys', 'list'], { DATABASE_URL: 'postgres://127.0.0.1:1/none' });
    assert.deepEqual({ code: failed.code, stdout: failed.stdout }, { code: 1, stdout: '' });
    assert.match(failed.stderr, /^catalog: .*DATABASE_URL/);
    const misused = await runProgram(['keys', 'list', '--nonsense'], { DATABASE_URL: database.url });
    assert.deepEqual({ code: misused.code, stdout: misused.stdout }, { code: 2, stdout: '' });
    assert.match(misused.stderr, /^error: unknown option '--nonsense'/);
  });

  it('gives its command the standard input, and the settings of its environment', async () => {
    const args = ['import', '-', '--kind', 'people', '--format', 'csv', '--json'];
    const { code, stdout, stderr } = await runProgram(args, { DATABASE_URL: database.url }, 'svc_id,name\np,Person\n');
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.deepEqual({ ...(JSON.parse(stdout) as object), created: 1 }, JSON.parse(stdout));
    assert.deepEqual(await database.db('people').select('svc_id', 'name'), [{ svc_id: 'p', name: 'Person' }]);
  });
});
