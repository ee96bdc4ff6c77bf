import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const TEST = fileURLToPath(new URL('../../', import.meta.url));

/** What programs import from outside their folder. Paths are relative to `test/`, here and in what is compiled. */
const SHARED = ['support/http/answer-reader.ts'];

/** In the checkout, so that packages are found. */
const COMPILED = fileURLToPath(new URL('../../../.cache/bench', import.meta.url));

const compiled = new Map<string, Promise<string>>();

/**
 * Compiles a folder of programs that are measured, or that measure: under tsx they would run other code, and slower.
 * Types are checked by `make check`, as everywhere.
 *
 * @param folder - beside this file
 * @returns where the compiled files are
 */
export function compile(folder: string): Promise<string> {
  const compiling = compiled.get(folder) ?? compileAnew(folder);
  compiled.set(folder, compiling);
  return compiling;
}

async function compileAnew(folder: string): Promise<string> {
  const path = join('bench/speed', folder);
  for (const file of [...SHARED, ...(await readdir(join(TEST, path))).map((name) => join(path, name))]) {
    const { outputText } = ts.transpileModule(await readFile(join(TEST, file), 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
    });
    await mkdir(dirname(join(COMPILED, file)), { recursive: true });
    await writeFile(join(COMPILED, file.replace(/\.ts$/, '.js')), outputText);
  }
  return join(COMPILED, path);
}
