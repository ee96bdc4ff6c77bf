// Bundles the tests with the sources that they import into .cache/tests, for `make test`, with the options of mocha.
// Each process of mocha would otherwise load 700 files through tsx, which takes twice the processor time.

import { readdirSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const OUTPUT = '.cache/tests';

/** Lets every file have the URL of its source, from which it finds others. */
const sourceUrls = {
  name: 'source URLs',
  setup({ onLoad }) {
    onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const url = JSON.stringify(pathToFileURL(path).href);
      return { contents: text.replaceAll('import.meta.url', url), loader: path.endsWith('x') ? 'tsx' : 'ts' };
    });
  },
};

const names = readdirSync('test', { recursive: true, encoding: 'utf8' });
await rm(OUTPUT, { recursive: true, force: true });
await build({
  entryPoints: names
    .filter((name) => name.endsWith('.test.ts') || name.endsWith('root-hooks.ts'))
    .map((name) => `test/${name}`),
  outbase: '.',
  outdir: OUTPUT,
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  plugins: [sourceUrls],
  logLevel: 'warning',
});

const { 'node-option': _, extension: __, require, ...options } = JSON.parse(await readFile('.mocharc.json', 'utf8'));
const bundled = require.map((path) => `./${OUTPUT}/${path.replace(/\.ts$/, '.js')}`);
await writeFile(`${OUTPUT}/mocharc.json`, JSON.stringify({ ...options, require: bundled }));
