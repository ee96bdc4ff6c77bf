import type { Passing } from '../../support/proxies/altering-proxy.js';

/** One change to a response, and where a contract run should see it. */
export interface Alteration {
  /** For people. */
  readonly what: string;
  /** What the run must name: a status, a header, the body or a place in it. */
  readonly place: string;
  readonly alter: (response: Passing) => Passing;
}

/** In place of a value: take the member away. */
export const MISSING = Symbol('missing');

/** Replaces the status. */
export function status(value: number): Alteration {
  return { what: `status ${value}`, place: `status ${value}`, alter: (response) => ({ ...response, status: value }) };
}

/** Replaces a header's value, once for each given; undefined takes the header away. */
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
    alter: (response) => ({ ...response, body: value }),
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
    alter: (response) => ({ ...response, body: JSON.stringify(edit(JSON.parse(response.body), pointer, replace)) }),
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
