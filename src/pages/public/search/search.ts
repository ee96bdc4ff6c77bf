import MiniSearch, { type SearchResult } from 'minisearch';
import type { Entry } from './search-index.js';

/** The most results of a group. */
const MOST_OF_A_GROUP = 6;

/** How many characters of an entry's text are shown. */
const SNIPPET = 160;

/** How many of them stand before the match. */
const SNIPPET_LEAD = 50;

/** How much a match counts, by the field that it is in. */
const WEIGHTS = { name: 5, aliases: 4, text: 1, context: 0.5 };

/** How many times more an entry counts if the query is its whole name. */
const WHOLE_NAME = 20;

/** How many typing errors a word may have, as a share of its letters and at most; none in numbers and short words. */
const MISTYPED = { fuzzy: (term: string) => (/^\p{L}{5,}$/u.test(term) ? 0.3 : false), maxFuzzy: 2 };

/** A word, whatever joins it to the next: `nextSince` and `next_since` have the same two. */
const WORD = /[\p{Lu}\p{N}]+[\p{Ll}\p{N}]*|[\p{Ll}\p{N}]+/gu;

/** Words that are written as one: `If-None-Match`, `next_since`. */
const JOINED_WORDS = /[\p{L}\p{N}]+(?:[-_][\p{L}\p{N}]+)*/gu;

/** Words that say little. */
const STOP_WORDS = new Set(
  (
    'a an and are at be by can do does for from have how i if in is it may me my not of on or should the there this to ' +
    'use using what when where which why with without you your'
  ).split(' '),
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
  readonly group: string;
  readonly found: readonly Found[];
  /** The number of matching entries, shown or not. */
  readonly total: number;
}

/** The results of a query. */
export interface Results {
  readonly groups: readonly FoundGroup[];
  /** The words of the query that no entry contains. The results are of the others. */
  readonly missing: readonly string[];
}

/** Finds entries by all words of a query, or by any if none has all of them. */
export type Search = (query: string) => Results;

/** Indexes a list of entries. A word of a query matches the words that it begins; failing that, similar ones. */
export async function createSearch(entries: readonly Entry[]): Promise<Search> {
  const index = new MiniSearch<{ readonly id: number }>({
    fields: Object.keys(WEIGHTS),
    tokenize: (text) => text.match(WORD) ?? [],
    processTerm: termOf,
    // A single letter begins too many words.
    searchOptions: { boost: WEIGHTS, combineWith: 'AND', prefix: ({ length }) => length > 1 },
  });
  // In pieces, between which other requests get their turn.
  await index.addAllAsync(
    entries.map(({ name, aliases = [], context, places = [], text }, id) => ({
      id,
      name: withJoined(name),
      aliases: aliases.map(withJoined).join(' '),
      context: [context, ...places.map(({ label }) => label)].join(' '),
      text,
    })),
  );

  const names = entries.map(({ name, aliases = [] }) => [name, ...aliases].map(joined));
  /** @returns the matches of all words, in the order of their rank */
  const findAll = (query: string): SearchResult[] => {
    const name = joined(query);
    const boostDocument = (id: number): number => (names[id]?.includes(name) === true ? WHOLE_NAME : 1);
    const exact = index.search(query, { boostDocument });
    return exact.length > 0 ? exact : index.search(query, MISTYPED);
  };
  return (query) => {
    const all = findAll(query);
    if (all.length > 0) return { groups: group(all), missing: [] };
    const words = (query.match(WORD) ?? []).filter((word) => termOf(word) !== undefined);
    const missing = words.filter((word) => findAll(word).length === 0);
    const rest = words.filter((word) => !missing.includes(word)).join(' ');
    const found = findAll(rest);
    return {
      groups: group(found.length > 0 ? found : index.search(rest, { combineWith: 'OR', ...MISTYPED })),
      missing,
    };
  };

  /** @returns the results by their group; the group of the best one comes first */
  function group(results: readonly SearchResult[]): FoundGroup[] {
    const matches = results.flatMap(({ id, terms }) => {
      const entry = entries[id as number];
      return entry === undefined ? [] : [{ entry, terms: new Set(terms) }];
    });
    return [...new Set(matches.map(({ entry }) => entry.group))].map((name) => {
      const ofGroup = matches.filter(({ entry }) => entry.group === name);
      return {
        group: name,
        found: ofGroup.slice(0, MOST_OF_A_GROUP).map(({ entry, terms }) => show(entry, terms)),
        total: ofGroup.length,
      };
    });
  }
}

/** @returns the form of a word in the index: in lower case, without a plural's ending; undefined for a stop word */
function termOf(word: string): string | undefined {
  const term = word.toLowerCase();
  if (STOP_WORDS.has(term)) return undefined;
  return /..[^isu]s$/.test(term) ? term.slice(0, -1) : term;
}

/** @returns a name as one word, for somebody who types `ratelimit` */
function joined(name: string): string {
  return (name.match(WORD) ?? []).map((word) => termOf(word) ?? '').join('');
}

function withJoined(name: string): string {
  return `${name} ${joined(name)}`;
}

function show(entry: Entry, terms: ReadonlySet<string>): Found {
  const name = split(entry.name, terms);
  const isInName = name.some(({ isMatch }) => isMatch);
  const [before] = split(entry.text, terms);
  const place = isInName || before === undefined || before.isMatch ? 0 : before.text.length;
  return { entry, name, snippet: split(cut(entry.text, place), terms) };
}

/** @returns the part of a text around a place, from one word to another */
function cut(text: string, place: number): string {
  const from = place <= SNIPPET_LEAD ? 0 : text.indexOf(' ', place - SNIPPET_LEAD) + 1;
  if (text.length - from <= SNIPPET) return `${from > 0 ? '… ' : ''}${text.slice(from)}`;
  const to = text.lastIndexOf(' ', from + SNIPPET);
  return `${from > 0 ? '… ' : ''}${text.slice(from, to > from ? to : from + SNIPPET)} …`;
}

/** Splits a text into the words that match and what stands between. Joined words are one if all of them match. */
function split(text: string, terms: ReadonlySet<string>): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: whole, index } of text.matchAll(JOINED_WORDS)) {
    const words = Array.from(whole.matchAll(WORD), ({ 0: word, index: at }) => ({ word, from: index + at }));
    const counted = words.filter(({ word }) => termOf(word) !== undefined);
    const matching = counted.filter(({ word }) => terms.has(termOf(word) ?? ''));
    const isWhole = matching.length > 0 && matching.length === counted.length;
    for (const { word, from } of isWhole ? [{ word: whole, from: index }] : matching) {
      pieces.push({ text: text.slice(end, from), isMatch: false }, { text: word, isMatch: true });
      end = from + word.length;
    }
  }
  return [...pieces, { text: text.slice(end), isMatch: false }].filter((piece) => piece.text !== '');
}
