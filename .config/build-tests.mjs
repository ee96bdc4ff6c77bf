// Bundles the tests of some folders, with the sources that they import, into another folder, and writes the options of
// mocha that run them there. Each process of mocha would otherwise load 700 files through tsx, which takes twice the
// processor time.

import { readdirSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const [OUTPUT, ...FOLDERS] = process.argv.slice(2);

/** The folders with the longest files come first, so that no processor is idle at the end. */
const LONGEST = ['package', 'shared', 'feed-model', 'pages', 'commands', 'outages', 'sdk'];

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

const isLong = (path) => LONGEST.includes(path.split('/')[1]);

const tests = FOLDERS.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => `${folder}/${name}`),
);
const {
  'node-option': _,
  extension: __,
  require: hooks,
  ...options
} = JSON.parse(await readFile('.mocharc.json', 'utf8'));
await rm(OUTPUT, { recursive: true, force: true });
await build({
  entryPoints: [...tests, ...hooks],
  outbase: '.',
  outdir: OUTPUT,
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  sourcemap: true,
  sourcesContent: false,
  plugins: [sourceUrls],
  logLevel: 'warning',
});

const bundled = (path) => `./${OUTPUT}/${path.replace(/\.ts$/, '.js')}`;
const spec = [...tests.filter(isLong), ...tests.filter((path) => !isLong(path))].map(bundled);
const written = { ...options, 'node-option': ['enable-source-maps'], require: hooks.map(bundled), spec };
await writeFile(`${OUTPUT}/mocharc.json`, JSON.stringify(written));
