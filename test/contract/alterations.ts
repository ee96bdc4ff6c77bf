import type { Answer } from './document/conformance.js';

/** One change to an answer, and the place that a comparison with the contract must name. */
export interface Alteration {
  readonly what: string;
  /** A status, a header, the body or a place in it. */
  readonly place: string;
  readonly alter: (answer: Answer) => Answer;
}

/** In place of a value: removes the member. */
export const MISSING = Symbol('missing');

/** Replaces the status. */
export function status(value: number): Alteration {
  return { what: `status ${value}`, place: `status ${value}`, alter: (answer) => ({ ...answer, status: value }) };
}

/** Replaces a header's value, once for each given; undefined removes the header. */
export function header(name: string, ...values: (string | undefined)[]): Alteration[] {
  return values.map((value) => ({
    what: `${name}: ${value ?? 'missing'}`,
    place: `header ${name}`,
    alter({ headers: { [name.toLowerCase()]: _removed, ...others }, ...rest }) {
      return { ...rest, headers: { ...others, ...(value !== undefined && { [name.toLowerCase()]: value }) } };
    },
  }));
}

/** Replaces the whole body, once for each given. */
export function text(...values: string[]): Alteration[] {
  return values.map((value) => ({
    what: `body ${JSON.stringify(value)}`,
    place: 'body',
    alter: (answer) => ({ ...answer, body: value }),
  }));
}

/** Replaces the value at a JSON pointer, once for each given. */
export function value(pointer: string, ...replacements: unknown[]): Alteration[] {
  return replacements.map((replacement) =>
    change(pointer, replacement === MISSING ? 'missing' : shorten(JSON.stringify(replacement)), () => replacement),
  );
}

/** Changes the value at a JSON pointer. */
export function change(pointer: string, what: string, replace: (present: unknown) => unknown): Alteration {
  return {
    what: `${pointer} ${what}`,
    place: `body${pointer}`,
    alter: (answer) => ({ ...answer, body: JSON.stringify(edit(JSON.parse(answer.body), pointer, replace)) }),
  };
}

function edit(document: unknown, pointer: string, replace: (present: unknown) => unknown): unknown {
  const names = pointer.split('/').slice(1);
  const last = names.pop() ?? '';
  const parent = names.reduce<unknown>((node, name) => (node as Record<string, unknown>)[name], document);
  const members = parent as Record<string, unknown>;
  const replacement = replace(members[last]);
  if (replacement === MISSING) Reflect.deleteProperty(members, last);
  else members[last] = replacement;
  return document;
}

function shorten(json: string): string {
  return json.length > 40 ? `${json.slice(0, 40)}…` : json;
}
