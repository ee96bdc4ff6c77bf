import { resolve } from 'node:path';
import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

const root = resolve(import.meta.dirname, '..');

const entryPoints = ['src/cli.ts'];

const noConsole = {
  name: 'console',
  message: 'Log through the logger, or write to the stream that the command was given.',
};
const noProcess = {
  name: 'process',
  message: 'Only src/cli.ts reads the process; take what is needed as a parameter.',
};

/** The rules that keep names out of a file, in each form that reaches them: global, member of the global object, import. */
function forbid(...restricted) {
  return {
    'no-restricted-globals': ['error', ...restricted],
    'no-restricted-imports': [
      'error',
      {
        paths: restricted.flatMap(({ name, message }) =>
          [name, `node:${name}`].map((path) => ({ name: path, message })),
        ),
      },
    ],
    'no-restricted-properties': [
      'error',
      ...restricted.flatMap(({ name, message }) =>
        ['globalThis', 'global'].map((object) => ({ object, property: name, message })),
      ),
    ],
  };
}

export default defineConfig(
  { ignores: ['.build/', '.cache/', '.data/', 'generated/', 'node_modules/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: 'test/tsconfig.json', tsconfigRootDir: root } },
    rules: {
      eqeqeq: 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // A default is how a switch over open-ended codes ends.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // A number in a message reads the same in every notation.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // `() => server.close()` as a callback says nothing about a value.
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // `while (true)` is the plain way to write a loop that ends by return.
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      // A parameter that an interface asks for may stay unused if its name says so.
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      // Functions of one interface are all async; that one of them awaits nothing is no mistake.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    ignores: entryPoints,
    rules: forbid(noProcess, noConsole),
  },
  {
    files: entryPoints,
    rules: forbid(noConsole),
  },
  {
    files: ['src/**/*.{ts,tsx}'],
    rules: { 'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }] },
  },
  {
    files: ['**/*.{js,mjs,cjs}'],
    ignores: ['src/site/static/*.js'],
    languageOptions: { globals: globals.nodeBuiltin },
  },
  {
    files: ['src/site/static/*.js'],
    languageOptions: { sourceType: 'script', globals: globals.browser },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { sourceType: 'commonjs', globals: globals.node },
  },
);
