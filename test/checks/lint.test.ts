import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

const PROCESS = 'Only src/cli.ts reads the process; take what is needed as a parameter.';
const CONSOLE = 'Log through the logger, or write to the stream that the command was given.';

/** A mistake that only type information reveals. Every folder with TypeScript has it. */
const FLOATING = 'export function start(): void {\n  Promise.resolve();\n}\n';

/** A mistake only where an index is assumed to be present. */
const UNCHECKED =
  'export function firstOf(list: readonly string[]): string {\n  const [first] = list;\n  return first ?? "";\n}\n';

/** Files with one mistake each, and its report; undefined for no mistake. */
const FILES: Readonly<Record<string, readonly [text: string, found: string | undefined]>> = {
  'src/http/floating.ts': [FLOATING, 'typescript(no-floating-promises)'],
  'test/http/floating.ts': [FLOATING, 'typescript(no-floating-promises)'],
  'db/floating.ts': [FLOATING, 'typescript(no-floating-promises)'],
  'src/http/unchecked.ts': [UNCHECKED, undefined],
  'test/http/unchecked.ts': [UNCHECKED, undefined],
  'db/unchecked.ts': [UNCHECKED, undefined],
  'src/http/type.ts': ["export const count: number = 'one';\n", 'typescript(TS2322)'],
  'test/http/type.ts': ["export const count: number = 'one';\n", 'typescript(TS2322)'],
  'db/type.ts': ["export const count: number = 'one';\n", 'typescript(TS2322)'],
  'src/http/any.ts': ['export const loose: any = 1;\n', 'typescript(no-explicit-any)'],
  'src/http/process.ts': ['export const { pid } = process;\n', PROCESS],
  'src/http/import.ts': ["export { pid } from 'node:process';\n", 'eslint(no-restricted-imports)'],
  'src/http/console.ts': ['console.log(1);\n', CONSOLE],
  'src/http/member.ts': ['globalThis.console.log(1);\n', 'eslint(no-restricted-properties)'],
  'src/http/respond.ts': [
    'export function f(ctx: { respond: boolean }): void {\n  ctx.respond = false;\n}\n',
    "'respond' is restricted",
  ],
  'src/pages/head.ts': [
    'export function f(res: { writeHead(n: number): void }): void {\n  res.writeHead(1);\n}\n',
    "'writeHead' is restricted",
  ],
  'src/cli.ts': ['export const { pid } = process;\n', undefined],
  'src/http/long.ts': [
    Array.from({ length: 301 }, (_, i) => `export const line${i} = ${i};\n`).join(''),
    'eslint(max-lines)',
  ],
  'src/http/unused.ts': ['// oxlint-disable-next-line no-empty\nexport const one = 1;\n', 'Unused oxlint-disable'],
  'src/pages/static/page.js': ['document.title = nothing;\n', "'nothing' is not defined"],
  'test/support/hook.cjs': ['module.exports = nothing;\n', "'nothing' is not defined"],
};

describe('make check-lint', () => {
  let folder: string;

  before(async () => {
    folder = await temporaryFolder();
    for (const name of ['.oxlintrc.json', 'package.json', 'tsconfig.json', 'test/tsconfig.json', 'db/tsconfig.json']) {
      await cp(join(root, name), join(folder, name));
    }
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
    for (const [name, [text]] of Object.entries(FILES)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
  });

  it('make check-lint finds a mistake of each kind in each folder, and nothing else', async () => {
    const lines = (await lint(folder)).split('\n').filter((line) => /^\S+:\d+:\d+: /.test(line));
    const report = Object.fromEntries(
      Object.keys(FILES).map((name) => [name, lines.filter((line) => line.startsWith(`${name}:`))]),
    );
    for (const [name, [, found]] of Object.entries(FILES)) {
      const said = report[name] ?? [];
      if (found === undefined) assert.deepEqual(said, [], name);
      else assert.ok(said.length === 1 && said[0]?.includes(found), `${name}: ${found}, not ${said.join('; ')}`);
    }
  });
});

/** Returns the report of the linter, a line for each mistake. */
function lint(folder: string): Promise<string> {
  const program = join(root, 'node_modules/.bin/oxlint');
  return new Promise((resolve) => {
    execFile(program, ['--deny-warnings', '--format', 'unix', '.'], { cwd: folder }, (_error, stdout) =>
      resolve(stdout),
    );
  });
}
