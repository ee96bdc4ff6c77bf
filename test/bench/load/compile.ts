import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const BENCH = fileURLToPath(new URL('..', import.meta.url));

/** The packages that the programs import are found above it. */
const COMPILED = fileURLToPath(new URL('../../../.cache/bench', import.meta.url));

let compiling: Promise<unknown> | undefined;

/**
 * Compiles the peer and the load generator. Under tsx they would run different, slower code.
 *
 * @param program - its path in `test/bench`, without the extension
 * @returns the path of the compiled program
 */
export async function compiled(program: 'peers/koa' | 'load/generator'): Promise<string> {
  await (compiling ??= build({
    entryPoints: ['peers/koa', 'load/generator'].map((name) => join(BENCH, `${name}.ts`)),
    outbase: BENCH,
    outdir: COMPILED,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
  }));
  return join(COMPILED, `${program}.js`);
}
