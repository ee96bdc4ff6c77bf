import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const HERE = fileURLToPath(new URL('.', import.meta.url));

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
  const underway = compiled.get(folder) ?? compileAnew(folder);
  compiled.set(folder, underway);
  return underway;
}

async function compileAnew(folder: string): Promise<string> {
  const target = join(COMPILED, folder);
  await mkdir(target, { recursive: true });
  for (const file of await readdir(join(HERE, folder))) {
    const { outputText } = ts.transpileModule(await readFile(join(HERE, folder, file), 'utf8'), {
      compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
    });
    await writeFile(join(target, `${basename(file, '.ts')}.js`), outputText);
  }
  return target;
}
