import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const mocha = `"${process.execPath}" "${root}node_modules/mocha/bin/mocha.js" --color --reporter "${root}test/reporter.cjs"`;

const SPECS = {
  'good.cjs':
    "it('one', () => console.log('  7 passing\\n  3 failing')); it('two', () => {}); it.skip('three (needs a third, which this machine lacks)');",
  'skip.cjs': "it('one', () => {}); it.skip('two');",
  'bad.cjs': "it('one', () => {}); it('two', () => { throw new Error('two'); });",
  'hook.cjs': "describe('a suite', () => { before(() => { throw new Error('hook'); }); it('one', () => {}); });",
  'leave.cjs': "it('one', () => {}); it('two', () => process.exit(0));",
  'nested.cjs': `it('one', () => { require('node:child_process').execSync(${JSON.stringify(`${mocha} good.cjs`)}); }).timeout(0);`,
};

/** Recipes of `make test`, each with the last line that it leads to. */
const RUNS: readonly (readonly [what: string, recipe: readonly string[], last: string])[] = [
  [
    'mocha runs twice, and its failures are swallowed',
    [`${mocha} good.cjs bad.cjs hook.cjs nested.cjs || true`, `${mocha} good.cjs`],
    '6 passed, 2 failed, 2 skipped',
  ],
  ['a test is skipped without a reason', [`${mocha} skip.cjs`], '1 passed, 1 failed, 1 skipped'],
  ['make fails after mocha', [`${mocha} good.cjs`, 'exit 3'], '2 passed, 1 failed, 1 skipped'],
  ['a check fails', ['false', `${mocha} good.cjs`], '0 passed, 1 failed'],
  ['a test ends the process', [`${mocha} leave.cjs`], '0 passed, 1 failed'],
  ['nothing is run', ['true'], '0 passed, 1 failed'],
];

describe('the last line of .ci/run', () => {
  it('the last line of .ci/run counts all tests, and says so when something went wrong', async () => {
    const folder = join(await temporaryFolder(), 'a summary');
    await mkdir(join(folder, '.ci'), { recursive: true });
    await copyFile(join(root, '.ci/run'), join(folder, '.ci/run'));
    await chmod(join(folder, '.ci/run'), 0o755);
    for (const [name, text] of Object.entries(SPECS)) await writeFile(join(folder, name), text);
    // Without the variables of the make around this test.
    const { MAKEFLAGS: _flags, MAKELEVEL: _level, MFLAGS: _old, ...env } = process.env;
    for (const [what, recipe, last] of RUNS) {
      await writeFile(join(folder, 'Makefile'), `test:\n${recipe.map((line) => `\t@${line}\n`).join('')}`);
      const run = spawnSync(join(folder, '.ci/run'), { cwd: tmpdir(), env, encoding: 'utf8' });
      assert.deepEqual(
        { last: run.stdout.trimEnd().split('\n').at(-1), isZero: run.status === 0 },
        { last, isZero: false },
        `${what}: ${run.stdout}${run.stderr}`,
      );
    }
  });
});
