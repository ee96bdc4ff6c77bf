import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { OperatorParts } from '../../src/pages/operator/context.js';
import { routeOperatorPages } from '../../src/pages/operator/operator-pages.js';
import type { PublicParts } from '../../src/pages/public/context.js';
import type { Contract } from '../../src/pages/public/reference/contract.js';
import { routePages } from '../../src/pages/site.js';
import { GUIDES as OPERATOR_GUIDES } from '../../src/pages/operator/guides/guides.js';
import { GUIDES } from '../../src/pages/public/guides/guides.js';
import { ROOT } from '../support/guides.js';

/** Guides without their texts. */
const named = (guides: object): { readonly name: string }[] => Object.keys(guides).map((name) => ({ name }));

/** The routes of the public pages. They are not called, and what they need is not there. */
const router = routePages({
  contract: JSON.parse(readFileSync(new URL('generated/openapi.json', ROOT), 'utf8')) as Contract,
  site: { files: { representations: new Map() }, guides: named(GUIDES) },
} as unknown as PublicParts);

/** The routes of the operator pages, likewise. */
const operatorRouter = routeOperatorPages({
  config: {},
  files: { representations: new Map() },
  guides: named(OPERATOR_GUIDES),
} as unknown as OperatorParts);

/** @returns the paths of the routes of a method, with a value for each parameter */
function pathsOf(method: 'GET' | 'POST', values: Readonly<Record<string, string>>, routes = router): string[] {
  const paths = routes.stack
    .filter(({ methods }) => methods.includes(method))
    .map(({ path }) =>
      String(path).replaceAll(/:(\w+)/g, (_, name: string) => values[name] ?? assert.fail(`${String(path)}: which?`)),
    );
  return [...new Set(paths)];
}

/** Values that nobody has been given. */
export const UNKNOWN = { token: 'f'.repeat(64), prefix: 'svc_ZZZZZZZZ', id: '999999999' };

/** A file: its path has an extension. The others are pages. */
const isFile = (path: string): boolean => /\.\w+$/.test(path);

const isSettings = (path: string): boolean => /^\/settings(\/|$)/.test(path);

/** Every page that everybody sees, as a path. */
export const PAGES = pathsOf('GET', UNKNOWN).filter((path) => !isSettings(path) && !isFile(path));

/** Every file that everybody may load under a name of its own, such as a guide as Markdown. */
export const FILES = pathsOf('GET', UNKNOWN).filter((path) => !isSettings(path) && isFile(path));

/** Every page behind sign-in; not the files for download. @param prefix - of a key of the developer */
export function settingsPages(prefix: string): string[] {
  return pathsOf('GET', { ...UNKNOWN, prefix }).filter((path) => isSettings(path) && !isFile(path));
}

/** Where forms go. */
export const FORMS = pathsOf('POST', UNKNOWN);

/** Every page for operators. @param values - the id of a developer, and the prefix of one of their keys */
export function operatorPages(values: { readonly id: string; readonly prefix: string } = UNKNOWN): string[] {
  return pathsOf('GET', { ...UNKNOWN, ...values }, operatorRouter);
}

/** Whether a page for operators needs a session. */
export const needsOperator = (path: string): boolean => !/^\/(sign-|guides)/.test(path);

/** Where the forms of operators go. */
export const OPERATOR_FORMS = pathsOf('POST', UNKNOWN, operatorRouter);
