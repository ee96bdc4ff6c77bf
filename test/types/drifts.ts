import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';

const TEXT = readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8');

/** The contract as parsed from YAML, free to be changed. */
export interface Contract {
  paths: Record<string, Record<string, Record<string, unknown>>>;
}

/** An object in the bodies of 200 answers. */
export interface BodyObject {
  /** The path to its schema, from the root of the document. */
  readonly path: readonly string[];
  /** The operations that answer with it. */
  readonly operations: Set<string>;
}

/** What is needed of a schema here. */
interface Schema {
  $ref?: string;
  type?: string;
  required?: string[];
  properties?: Record<string, Schema>;
  items?: Schema;
  allOf?: Schema[];
}

/** A copy of the contract. */
export function contract(): Contract {
  return load(TEXT) as Contract;
}

const ORIGINAL = contract();

/** The objects in the bodies of all 200 answers, each once, however many operations share it. */
export function objectsOfBodies(): BodyObject[] {
  const objects = new Map<string, BodyObject>();
  for (const [path, { get: operation }] of Object.entries(ORIGINAL.paths)) {
    const place = ['paths', path, 'get', 'responses', '200', 'content', 'application/json', 'schema'];
    collect(place, String(operation?.operationId), objects);
  }
  return [...objects.values()];
}

/** The contract with a change in each of these objects: its first field has another type, or there is one more. */
export function changedBodies(
  objects: readonly BodyObject[],
  change: 'other type' | 'required field' | 'optional field',
): Contract {
  const copy = contract();
  for (const { path } of objects) {
    const { properties = {}, required = [] } = followed(copy, path).schema;
    const [first = ''] = Object.keys(properties);
    if (change === 'other type') {
      const { type } = followed(copy, [...path, 'properties', first]).schema;
      properties[first] = { type: type === 'string' ? 'integer' : 'string' };
    } else {
      properties.added = { type: 'string' };
      if (change === 'required field') required.push('added');
    }
  }
  return copy;
}

function collect(place: readonly string[], operation: string, objects: Map<string, BodyObject>): void {
  const { schema, path } = followed(ORIGINAL, place);
  if (schema.properties) {
    const key = path.join('/');
    const object = objects.get(key) ?? { path, operations: new Set() };
    object.operations.add(operation);
    objects.set(key, object);
  }
  for (const name of Object.keys(schema.properties ?? {})) collect([...path, 'properties', name], operation, objects);
  if (schema.items) collect([...path, 'items'], operation, objects);
  schema.allOf?.forEach((_part, index) => collect([...path, 'allOf', String(index)], operation, objects));
}

/** The schema at a place or, if that is a reference, the one it leads to, with its own place. */
function followed(document: Contract, path: readonly string[]): { schema: Schema; path: readonly string[] } {
  const found = path.reduce<unknown>((node, name) => (node as Record<string, unknown> | undefined)?.[name], document);
  if (found === undefined) throw new Error(`${path.join('/')} leads nowhere`);
  const schema = found as Schema;
  return schema.$ref === undefined ? { schema, path } : followed(document, schema.$ref.split('/').slice(1));
}
