import { ERROR_CODES } from '../../../errors.js';
import { readRows } from '../../parts/content/markdown.js';
import type { Guide } from '../../parts/guides/guide-pages.js';
import { tagsOf, type Contract } from './contract.js';

/** The guide with the table of errors and the remedy for each. */
const GUIDE_TO_ERRORS = 'calling-the-api';

/** Additions of the reference to chapters of the contract, as Markdown: only people need them. */
const ADDITIONS: Readonly<Record<string, (guides: readonly Guide[]) => string>> = {
  Errors: errorTable,
  'Following the changes': () =>
    '[Mirroring the catalogue](/docs/guides/mirroring) needs one command; [Following the feed](/docs/guides/following-the-feed) has the loop in four languages.',
  Versions: () => 'The guide [Changes](/docs/guides/changes) lists the versions of the contract.',
};

/** @returns the remedy for each error, in plain text, by its code */
export function readErrorAdvice(guides: readonly Guide[]): ReadonlyMap<string, string> {
  return readRows(guides.find(({ name }) => name === GUIDE_TO_ERRORS)?.text ?? '');
}

/** @returns the chapters of the contract as Markdown, in its order, with the additions of the reference */
export function chaptersOf(contract: Contract, guides: readonly Guide[]): string {
  return tagsOf(contract)
    .chapters.map(({ name, description }) => [`## ${name}`, description, ADDITIONS[name]?.(guides) ?? ''].join('\n\n'))
    .join('\n\n');
}

function errorTable(guides: readonly Guide[]): string {
  const advice = readErrorAdvice(guides);
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, title }]) => `| \`${code}\` | ${status} | ${title}. ${advice.get(code) ?? ''} |`,
  );
  return ['| Code | Status | Meaning, and what to do |', '|---|---|---|', ...rows].join('\n');
}
