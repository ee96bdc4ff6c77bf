import { GROUPS, type Entry } from './search-index.js';

/** The most characters of a query that count. */
export const MAX_QUERY = 100;

/** The most results of a group. */
const MOST_OF_A_GROUP = 6;

/** How many characters of an entry's text are shown. */
const SNIPPET = 160;

/** How many of them stand before the match. */
const SNIPPET_LEAD = 50;

/** How well an entry matches, from worst to best. An entry without any of these does not match. */
const SCORES = { text: 1, phrase: 2, inName: 3, wordsOfName: 4, prefix: 5, exact: 6 } as const;

/** Words that say little: they count only in a query or a name that has no others. */
const STOP_WORDS = new Set(
  'a an and are can do does for how i in is it my of on or the to what where which with you your'.split(' '),
);

/** A piece of a text, and whether the query matches it. */
export interface Piece {
  readonly text: string;
  readonly isMatch: boolean;
}

/** An entry that was found. */
export interface Found {
  readonly entry: Entry;
  readonly name: readonly Piece[];
  readonly snippet: readonly Piece[];
}

/** Results of one kind, the best first. */
export interface FoundGroup {
  readonly group: Entry['group'];
  readonly found: readonly Found[];
  /** The number of matching entries, shown or not. */
  readonly total: number;
}

/** Finds entries by all words of a query, which is cut to {@link MAX_QUERY}. */
export type Search = (query: string) => readonly FoundGroup[];

/** Prepares the search of a list of entries. */
export function createSearch(entries: readonly Entry[]): Search {
  const prepared = entries.map((entry) => {
    const names = [entry.name, ...(entry.aliases ?? [])];
    return {
      entry,
      names: names.map(wordsOf),
      text: [...names, entry.text].join(' ').toLowerCase(),
      context: entry.context.toLowerCase(),
    };
  });

  return (query) => {
    const words = wordsOf(query.slice(0, MAX_QUERY));
    if (words.length === 0) return [];
    const matches = prepared
      .map((each) => ({ entry: each.entry, score: scoreOf(words, each) }))
      .filter(({ score }) => score > 0)
      // Stable: entries that match equally well keep their order.
      .sort((a, b) => b.score - a.score);
    const groups = GROUPS.map((group) => matches.filter(({ entry }) => entry.group === group))
      .filter((group) => group.length > 0)
      .sort(([a], [b]) => (b?.score ?? 0) - (a?.score ?? 0));
    return groups.map((group) => ({
      group: group[0]?.entry.group ?? 'Guides',
      found: group.slice(0, MOST_OF_A_GROUP).map(({ entry, score }) => show(entry, words, score)),
      total: group.length,
    }));
  };
}

/** @returns the words of a name: `nextSince` and `next_since` have the same two */
function wordsOf(text: string): readonly string[] {
  return text
    .replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

/** An entry in lower case, as queries are matched with it. */
interface Prepared {
  readonly names: readonly (readonly string[])[];
  readonly text: string;
  readonly context: string;
}

/** @returns the words that count */
function significant(words: readonly string[]): readonly string[] {
  const others = words.filter((word) => !STOP_WORDS.has(word));
  return others.length > 0 ? others : words;
}

function scoreOf(query: readonly string[], { names, text, context }: Prepared): number {
  const words = significant(query);
  const joined = words.join('');
  const joinedNames = names.map((name) => significant(name).join(''));
  if (joinedNames.includes(joined)) return SCORES.exact;
  if (joinedNames.some((name) => name.startsWith(joined))) return SCORES.prefix;
  if (names.some((name) => words.every((word) => name.some((own) => own.startsWith(word))))) return SCORES.wordsOfName;
  if (joinedNames.some((name) => words.every((word) => name.includes(word)))) return SCORES.inName;
  // The context narrows a search, as in `problem detail`, but finds nothing by itself.
  if (!words.some((word) => text.includes(word))) return 0;
  if (!words.every((word) => text.includes(word) || context.includes(word))) return 0;
  return phrase(query).test(text) ? SCORES.phrase : SCORES.text;
}

/** @returns an expression for words that follow one another, in any spelling: `rate limit` matches `RateLimit` */
function phrase(words: readonly string[]): RegExp {
  return new RegExp(words.join('[^\\p{L}\\p{N}]*'), 'iu');
}

function show(entry: Entry, words: readonly string[], score: number): Found {
  // A single letter is marked within the phrase only: alone it would be marked everywhere.
  const marked = significant(words).filter((word) => word.length > 1);
  const marks = new RegExp([phrase(words).source, ...marked].join('|'), 'giu');
  const place = entry.text.search(phrase(words));
  const match = place >= 0 ? place : Math.max(0, entry.text.search(marks));
  const first = score >= SCORES.inName ? 0 : match;
  return { entry, name: split(entry.name, marks), snippet: split(cut(entry.text, first), marks) };
}

/** @returns the part of a text around a place, from one word to another */
function cut(text: string, place: number): string {
  const from = place <= SNIPPET_LEAD ? 0 : text.indexOf(' ', place - SNIPPET_LEAD) + 1;
  if (text.length - from <= SNIPPET) return `${from > 0 ? '… ' : ''}${text.slice(from)}`;
  const to = text.lastIndexOf(' ', from + SNIPPET);
  return `${from > 0 ? '… ' : ''}${text.slice(from, to > from ? to : from + SNIPPET)} …`;
}

/** Splits a text into what the query matches and what stands between. */
function split(text: string, marks: RegExp): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(marks)) {
    pieces.push({ text: text.slice(end, match.index), isMatch: false }, { text: match[0], isMatch: true });
    end = match.index + match[0].length;
  }
  return [...pieces, { text: text.slice(end), isMatch: false }].filter((piece) => piece.text !== '');
}
