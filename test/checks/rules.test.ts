import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Files with one fault each, the program of `make check` that must find it, and the rule that it must name. */
const PLANTED = [
  ['src/platform/time/up.ts', "import '../../http/low.js';", 'depcruise', 'upward-from-the-ground-floor'],
  ['src/keys/aside.ts', "import '../catalog/low.js';", 'depcruise', 'domain-keys-alone'],
  ['src/limits/http.ts', "import 'node:http';", 'depcruise', 'http-only-above-api'],
  ['src/floating.ts', 'async function act(): Promise<void> {}\nact();', 'oxlint', 'no-floating-promises'],
  ['src/type.ts', "export const count: number = 'one';", 'oxlint', 'TS2322'],
] as const;

const COMMANDS = {
  depcruise: ['--config', join(root, '.config/dependency-cruiser.cjs'), '--output-type', 'err-long', 'src'],
  oxlint: ['--deny-warnings', 'src'],
} as const;

describe('the rules for the sources', () => {
  it('an upward import, one between domains, and faults that need types are refused', async () => {
    const folder = await temporaryFolder();
    for (const name of ['.oxlintrc.json', 'tsconfig.json']) await copyFile(join(root, name), join(folder, name));
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    const sound = ['src/http/low.ts', 'src/catalog/low.ts'].map((file) => [file, 'export {};'] as const);
    for (const [file, text] of [...sound, ...PLANTED]) {
      await mkdir(join(folder, dirname(file)), { recursive: true });
      await writeFile(join(folder, file), `${text}\n`);
    }
    for (const [program, args] of Object.entries(COMMANDS)) {
      const { status, stdout } = spawnSync(join(folder, 'node_modules/.bin', program), args, {
        cwd: folder,
        encoding: 'utf8',
      });
      assert.notEqual(status, 0, stdout);
      const rules = PLANTED.filter(([, , by]) => by === program).map(([, , , rule]) => rule);
      assert.deepEqual(
        rules.filter((rule) => !stdout.includes(rule)),
        [],
        stdout,
      );
    }
  });
});
