import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { provideProgram } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const MISSING = { title: 'Missing', programs: ['missing'], packages: ['missing'], debianPackages: ['missing'] };

describe('the programs that tests start', () => {
  const { PATH, INSTALL } = process.env;

  afterEach(() => {
    Object.assign(process.env, { PATH, INSTALL });
    if (INSTALL === undefined) delete process.env.INSTALL;
  });

  it('a missing program is installed with the package manager, but not with INSTALL=no', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'brew'), '#!/bin/sh\n', { mode: 0o755 });
    process.env.PATH = folder;
    for (const [setting, commands] of Object.entries({ yes: ['brew install missing'], no: [] })) {
      process.env.INSTALL = setting;
      const said: string[] = [];
      assert.throws(() => provideProgram(MISSING, (line) => said.push(line)), /install the package missing/);
      assert.deepEqual(said, commands);
    }
  });
});
