import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const TEST = fileURLToPath(new URL('../../', import.meta.url));

/** The programs and their imports. Paths are relative to `test/`, also in the folder of the compiled files. */
const FILES = [
  ...['koa.ts', 'queries.ts', 'settings.ts'].map((name) => `bench/peers/${name}`),
  'bench/load/generator.ts',
  'support/http/answer-reader.ts',
];

/** The packages that they import are found above it. */
const COMPILED = fileURLToPath(new URL('../../../.cache/bench', import.meta.url));

let compiling: Promise<void> | undefined;

/**
 * Compiles the peer and the load generator. Under tsx they would run different, slower code.
 *
 * @param program - its path in `test/bench`, without the extension
 * @returns the path of the compiled program
 */
export async function compiled(program: string): Promise<string> {
  await (compiling ??= compileAll());
  return join(COMPILED, 'bench', `${program}.js`);
}

async function compileAll(): Promise<void> {
  for (const file of FILES) {
    const { outputText } = ts.transpileModule(await readFile(join(TEST, file), 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
    });
    await mkdir(dirname(join(COMPILED, file)), { recursive: true });
    await writeFile(join(COMPILED, file.replace(/\.ts$/, '.js')), outputText);
  }
}
