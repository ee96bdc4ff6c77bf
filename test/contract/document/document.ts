import { readdirSync, readFileSync } from 'node:fs';
import { load } from 'js-yaml';

/** An object of the document, of whatever kind. */
export type Node = Readonly<Record<string, unknown>>;

/** A schema together with the examples that stand beside it (or, for `example` in a schema, within it). */
export interface ExampleSite {
  /** Where it stands, as a JSON pointer. */
  readonly pointer: string;
  readonly schema: Node;
  readonly examples: readonly (readonly [name: string, value: unknown])[];
}

/** A response of an operation, its `$ref` resolved. */
export interface OperationResponse {
  readonly operationId: string;
  /** In capitals. */
  readonly method: string;
  /** The template, such as `/api/v1/titles/{title_id}`. */
  readonly path: string;
  readonly status: string;
  readonly response: Node;
}

/** The contract, parsed. References are not resolved. */
export const document = load(readFileSync(new URL('../../../openapi.yaml', import.meta.url), 'utf8')) as Node;

const GENERATED = new URL('../../../generated/', import.meta.url);

/** The documents of the paths beside the contract, without references. */
export const documentsBeside: readonly Node[] = readdirSync(GENERATED)
  .filter((name) => name.endsWith('.json') && name !== 'openapi.json')
  .map((name) => {
    const whole = JSON.parse(readFileSync(new URL(name, GENERATED), 'utf8')) as Node;
    return dereference(whole, whole) as Node;
  });

const PROBLEM = 'application/problem+json';

/** Members whose content is data rather than a part of the document. */
const DATA_MEMBERS = new Set(['example', 'examples', 'enum', 'default']);

const nodesOf = (node: Node): [string, Node][] =>
  Object.entries(node).filter((entry): entry is [string, Node] => isNode(entry[1]));

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The member `name` of a node as a node; empty when there is none. */
export function child(node: Node, name: string): Node {
  const value = node[name];
  return isNode(value) ? value : {};
}

/** The node itself or, if it is a reference, what it refers to. Throws on a reference that leads nowhere. */
export function resolve(node: Node): Node {
  return typeof node.$ref === 'string' ? resolve(lookUp(document, node.$ref)) : node;
}

function lookUp(root: Node, reference: string): Node {
  let target: unknown = root;
  for (const part of reference.replace(/^#\//, '').split('/')) {
    target = isNode(target) ? target[part.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined;
  }
  if (!isNode(target)) throw new Error(`${reference} leads nowhere`);
  return target;
}

function dereference(value: unknown, root: Node): unknown {
  if (Array.isArray(value)) return value.map((part) => dereference(part, root));
  if (!isNode(value)) return value;
  if (typeof value.$ref === 'string') return dereference(lookUp(root, value.$ref), root);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, dereference(part, root)]));
}

/** Every parameter, header and media type of the document, and every schema that has an example of its own. */
export function* exampleSites(node: unknown = document, pointer = '#'): Generator<ExampleSite> {
  if (isNode(node)) {
    if (isNode(node.schema)) yield { pointer, schema: node.schema, examples: examplesOf(node) };
    else if ('example' in node && !('value' in node)) yield { pointer, schema: node, examples: examplesOf(node) };
  }
  if (typeof node !== 'object' || node === null) return;
  for (const [name, value] of Object.entries(node)) {
    if (!DATA_MEMBERS.has(name)) yield* exampleSites(value, `${pointer}/${name.replaceAll('/', '~1')}`);
  }
}

function examplesOf(node: Node): [string, unknown][] {
  const named = Object.entries(child(node, 'examples')).map(([name, example]): [string, unknown] => [
    name,
    isNode(example) ? resolve(example).value : undefined,
  ]);
  return 'example' in node ? [['example', node.example], ...named] : named;
}

/** Every response of every operation, in the document's order. @param of - a document without references, or the contract */
export function operationResponses(of: Node = document): OperationResponse[] {
  const paths = nodesOf(child(of, 'paths'));
  return paths.flatMap(([path, item]) =>
    nodesOf(item).flatMap(([method, operation]) =>
      nodesOf(child(operation, 'responses')).map(([status, response]) => ({
        operationId: String(operation.operationId),
        method: method.toUpperCase(),
        path,
        status,
        response: resolve(response),
      })),
    ),
  );
}

/** The names of the header fields of a response, as the contract writes them. */
export function fieldsOf(operationId: string, status: number | string): readonly string[] {
  const found = operationResponses().find((it) => it.operationId === operationId && it.status === String(status));
  return Object.keys(child(found?.response ?? {}, 'headers'));
}

/** The examples of the problems that a response may be; none when it is no error. */
export function problemExamplesOf(response: Node): Node[] {
  return examplesOf(child(child(response, 'content'), PROBLEM)).map(([, example]) => example as Node);
}

/** The first example of each problem that a response may be, by its code; none when it is no error. */
export function problemsOf(response: Node): Map<string, Node> {
  const examples = problemExamplesOf(response).map((example): [string, Node] => [String(example.code), example]);
  return new Map(examples.toReversed());
}

/** The values of `code` that a response's problem documents may have; none when it is no error. */
export const codesOf = (response: Node): string[] => [...problemsOf(response).keys()];

/** The node and all nodes within it, in arrays too; references are not followed. */
export function* nodesWithin(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return;
  if (isNode(value)) yield value;
  for (const part of Object.values(value)) yield* nodesWithin(part);
}

/** The schema and all that it is made of (properties, items, alternatives), references resolved, with their places. */
export function* schemasWithin(schema: Node, place: string): Generator<{ place: string; schema: Node }> {
  const resolved = resolve(schema);
  yield { place, schema: resolved };
  for (const [name, property] of Object.entries(child(resolved, 'properties'))) {
    if (isNode(property)) yield* schemasWithin(property, `${place}.${name}`);
  }
  if (isNode(resolved.items)) yield* schemasWithin(resolved.items, `${place}[]`);
  for (const keyword of ['allOf', 'oneOf', 'anyOf']) {
    const parts = resolved[keyword];
    if (!Array.isArray(parts)) continue;
    for (const part of parts.filter(isNode)) yield* schemasWithin(part, place);
  }
}
