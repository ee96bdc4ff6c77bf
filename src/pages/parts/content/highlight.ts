import highlighter from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import php from 'highlight.js/lib/languages/php';
import python from 'highlight.js/lib/languages/python';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';

const GRAMMARS = { sh: bash, go, java, js: javascript, json, php, python, sql, ts: typescript } as const;

for (const [name, grammar] of Object.entries(GRAMMARS)) highlighter.registerLanguage(name, grammar);

/** A language that code can be highlighted in. */
export type Language = keyof typeof GRAMMARS;

/** The kinds of token that have a colour, by their scope in highlight.js. Classes of one letter keep pages small. */
const CLASSES: Readonly<Record<string, string>> = {
  comment: 'c',
  keyword: 'k',
  literal: 'k',
  type: 'k',
  number: 'n',
  string: 's',
  regexp: 's',
  attr: 't',
  title: 't',
};

/** Whether {@link highlight} has a grammar for a name, such as the info string of a fence in Markdown. */
export function isLanguage(name: string): name is Language {
  return Object.hasOwn(GRAMMARS, name);
}

/** @returns code as HTML, escaped, with a `span` around each token that has a colour */
export function highlight(code: string, language: Language): string {
  const { value } = highlighter.highlight(code, { language });
  // The class of each open element; empty for an element that is left out.
  const open: string[] = [];
  return value.replaceAll(/<span class="hljs-(\w+)[^"]*">|<\/span>/g, (_tag, scope?: string) => {
    if (scope === undefined) return open.pop() === '' ? '' : '</span>';
    const name = CLASSES[scope] ?? '';
    const shown = open.includes(name) ? '' : name;
    open.push(shown);
    return shown === '' ? '' : `<span class="${shown}">`;
  });
}
