import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

describe('the build', () => {
  it('a program that is older than its sources is built before a test starts it, once for all who start it', async () => {
    const folder = await temporaryFolder();
    for (const name of ['.config', 'src', 'generated']) await mkdir(join(folder, name));
    for (const name of ['.config/build.mjs', 'package.json', 'package-lock.json']) {
      await cp(join(root, name), join(folder, name));
    }
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    /** Saves a program, as starting tests do builds it three times at once, and runs it. */
    const printedAfterSaving = async (text: string): Promise<string> => {
      await writeFile(join(folder, 'src/cli.ts'), `console.log(${JSON.stringify(text)});`);
      await Promise.all([1, 2, 3].map(build));
      return (await run(process.execPath, ['.build/cli.js'], { cwd: folder })).stdout.trim();
    };
    const build = () => run(process.execPath, ['.config/build.mjs', '--if-old'], { cwd: folder });
    const builtAt = async (): Promise<number> => (await stat(join(folder, '.build/cli.js'))).mtimeMs;

    assert.equal(await printedAfterSaving('first'), 'first');
    assert.equal(await printedAfterSaving('second'), 'second');
    const built = await builtAt();
    await build();
    assert.equal(await builtAt(), built, 'built again without a change');
    await utimes(join(folder, 'generated'), new Date(), new Date());
    await build();
    assert.ok((await builtAt()) > built, 'not built after a file was removed');
  });
});
