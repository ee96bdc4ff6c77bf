'use strict';

// Which part of the service may import which. A level imports only lower ones and its own folder, so each part can be
// read, tested and changed without those above it.

const levels = [
  { name: 'the ground', path: '^src/((errors|contract)[.]ts$|config/)' },
  { name: 'the ground floor', path: '^src/platform/(time|text|files|async)/' },
  { name: 'copies', path: '^src/copies/' },
  { name: 'embedded-postgres', path: '^src/embedded-postgres/' },
  { name: 'platform', path: '^src/platform/(postgres|redis|telemetry|process)/' },
  { name: 'events', path: '^src/events/' },
  { name: 'limits', path: '^src/limits/' },
  { name: 'domain', path: '^src/(keys|catalog|developers|accounts|usage|notices)/' },
  { name: 'admission', path: '^src/admission/' },
  { name: 'api', path: '^src/api/' },
  { name: 'http', path: '^src/http/' },
  { name: 'pages-context', path: '^src/pages/parts/context[.]ts$' },
  { name: 'pages-web', path: '^src/pages/parts/web/' },
  { name: 'pages-content', path: '^src/pages/parts/content/' },
  { name: 'pages-frame', path: '^src/pages/parts/frame/' },
  { name: 'pages-forms', path: '^src/pages/parts/forms/' },
  { name: 'pages-parts', path: '^src/pages/parts/(guides/|(page-server|read-together)[.]ts$|[^/]+[.]tsx$)' },
  { name: 'pages', path: '^src/pages/(public|settings|operator)/' },
  { name: 'site', path: '^src/pages/site[.]ts$' },
  { name: 'app', path: '^src/app[.]ts$' },
  { name: 'client', path: '^src/client/' },
  { name: 'service', path: '^src/service/' },
  { name: 'programs', path: '^src/(commands/|cli[.]ts$)' },
];

const domains = ['keys', 'catalog', 'developers', 'accounts', 'usage', 'notices'];

const pages = ['public', 'settings', 'operator'];

const entryPoint = '^src/cli[.]ts$';
const packageNamed = (names) => `(^|/node_modules/|^node_modules/)(@types/)?(${names})(/|$)`;
const koa = packageNamed('koa|@koa/[^/]+|koa__[^/]+');
const httpModules = '^(node:)?https?2?$';

const upward = levels.slice(0, -1).map((level, index) => ({
  name: `upward-from-${level.name.replaceAll(' ', '-')}`,
  severity: 'error',
  comment: 'A level knows nothing of the levels above it.',
  from: { path: level.path },
  to: { path: levels.slice(index + 1).map(({ path }) => path) },
}));

/** One rule for each folder: it imports none of the others beside it. */
const apart = (kind, folder, names, comment) =>
  names.map((name) => ({
    name: `${kind}-${name}-alone`,
    severity: 'error',
    comment,
    from: { path: `^${folder}${name}/` },
    to: { path: `^${folder}(${names.filter((other) => other !== name).join('|')})/` },
  }));

module.exports = {
  forbidden: [
    ...upward,
    ...apart('domain', 'src/', domains, 'The domains are separate subjects; src/admission and src/api join them.'),
    ...apart('pages', 'src/pages/', pages, 'What two kinds of pages show stands in src/pages/parts.'),
    {
      name: 'ground-apart',
      severity: 'error',
      comment: 'errors, contract and config know nothing of one another.',
      from: { path: '^src/((?:errors|contract)[.]ts$|config/)' },
      to: { path: levels[0].path, pathNot: '^src/$1' },
    },
    {
      name: 'client-outside',
      severity: 'error',
      comment: 'The client knows the service by its contract and the format of copies alone, as any other does.',
      from: { path: '^src/client/' },
      to: {
        path: '^src/',
        pathNot: '^src/(client/|copies/|platform/|(errors|contract)[.]ts$)',
      },
    },
    {
      name: 'program-is-entry-point',
      severity: 'error',
      comment: 'cli.ts runs when it is imported, so nothing imports it.',
      from: {},
      to: { path: entryPoint },
    },
    {
      name: 'a-level-for-each-file',
      severity: 'error',
      comment: 'A file outside the levels escapes their rules: give it a place in one, or add its place above.',
      from: { path: '^src/', pathNot: levels.map(({ path }) => path) },
      to: {},
    },
    {
      name: 'a-level-for-each-import',
      severity: 'error',
      comment: 'As before, for a file that imports nothing itself.',
      from: {},
      to: { path: '^src/', pathNot: levels.map(({ path }) => path) },
    },
    {
      name: 'no-cycle',
      severity: 'error',
      comment: 'Files that import each other cannot be understood, or moved, one by one.',
      from: {},
      to: { circular: true },
    },
    {
      name: 'http-only-above-api',
      severity: 'error',
      comment: 'The domain takes and gives data: it serves the command line and tests as well as HTTP.',
      from: {
        path: '^src/(errors|contract|config|embedded-postgres|platform|events|keys|catalog|developers|limits|accounts|usage|notices|admission)(/|[.]ts$)',
      },
      to: { path: [koa, httpModules, packageNamed('openapi-backend')] },
    },
    {
      name: 'api-without-koa',
      severity: 'error',
      comment: 'An operation is (dependencies, request) in, value out; it never sees ctx.',
      from: { path: '^src/api/' },
      to: { path: koa },
    },
    {
      name: 'generated-through-contract',
      severity: 'error',
      comment: 'src/contract.ts gives the generated types the names that the rest uses.',
      from: { path: '^src/', pathNot: '^src/contract[.]ts$' },
      to: { path: '^generated/' },
    },
    {
      name: 'src-alone',
      severity: 'error',
      comment: 'What is shipped does not need the tests, nor the scripts under db/ (their data it reads as files).',
      from: { path: '^src/' },
      to: { path: '^(test|db)/' },
    },
    {
      name: 'no-dev-package',
      severity: 'error',
      comment: 'A package that src imports is in "dependencies": an installation without the others must run.',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only'],
        pathNot: '^node_modules/@types/',
      },
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      comment: 'The imported file or package does not exist.',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-orphan',
      severity: 'error',
      comment: 'cli.ts does not lead to this file.',
      from: { path: entryPoint },
      to: { path: '^src/', pathNot: [entryPoint, '^src/pages/static/'], reachable: false },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^generated/'] },
    // Imports of types alone count: a level that names another's types depends on it.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      mainFields: ['module', 'main', 'types'],
    },
  },
};
