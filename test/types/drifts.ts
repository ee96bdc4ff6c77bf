import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';

const TEXT = readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8');

/** The contract as parsed from YAML, free to be changed. */
export interface Contract {
  paths: Record<string, Record<string, Record<string, unknown>>>;
}

/** A property of the body of a 200 answer. */
export interface BodyField {
  readonly name: string;
  /** The path to the object schema that it belongs to, from the root of the document. */
  readonly owner: readonly string[];
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

type ObjectSchema = Schema & Required<Pick<Schema, 'properties' | 'required'>>;

/** A copy of the contract. */
export function contract(): Contract {
  return load(TEXT) as Contract;
}

const ORIGINAL = contract();

/** The properties of the bodies of all 200 answers, each once, however many operations share it. */
export function bodyFields(): BodyField[] {
  const fields = new Map<string, BodyField>();
  for (const [path, { get: operation }] of Object.entries(ORIGINAL.paths)) {
    const place = ['paths', path, 'get', 'responses', '200', 'content', 'application/json', 'schema'];
    collect(place, String(operation?.operationId), fields);
  }
  return [...fields.values()];
}

/** The contract with fields of another type. */
export function withTypeChanged(fields: readonly BodyField[]): Contract {
  return changed(fields, ({ properties }, { owner, name }, copy) => {
    const { type } = followed(copy, [...owner, 'properties', name]).schema;
    properties[name] = { type: type === 'string' ? 'integer' : 'string' };
  });
}

/** The contract with one more field, a string, in the objects of these fields. */
export function withAdded(fields: readonly BodyField[], added: { name: string; required: boolean }): Contract {
  return changed(fields, (schema) => {
    schema.properties[added.name] = { type: 'string' };
    if (added.required) schema.required.push(added.name);
  });
}

function changed(
  fields: readonly BodyField[],
  change: (schema: ObjectSchema, field: BodyField, copy: Contract) => void,
): Contract {
  const copy = contract();
  for (const field of fields) change(at(copy, field.owner) as ObjectSchema, field, copy);
  return copy;
}

/** Groups fields so that no two of a group share an operation: each error of a group is then due to one field. */
export function groupsOf(fields: Iterable<BodyField>): BodyField[][] {
  const groups: BodyField[][] = [];
  for (const field of fields) {
    const free = groups.find(
      (group) => !group.some(({ operations }) => [...operations].some((operation) => field.operations.has(operation))),
    );
    if (free) free.push(field);
    else groups.push([field]);
  }
  return groups;
}

function collect(place: readonly string[], operation: string, fields: Map<string, BodyField>): void {
  const { schema, path } = followed(ORIGINAL, place);
  for (const name of Object.keys(schema.properties ?? {})) {
    const key = [...path, name].join('/');
    const field = fields.get(key) ?? { name, owner: path, operations: new Set() };
    field.operations.add(operation);
    fields.set(key, field);
    collect([...path, 'properties', name], operation, fields);
  }
  if (schema.items) collect([...path, 'items'], operation, fields);
  schema.allOf?.forEach((_part, index) => collect([...path, 'allOf', String(index)], operation, fields));
}

/** The schema at a place or, if that is a reference, the one it leads to, with its own place. */
function followed(document: Contract, path: readonly string[]): { schema: Schema; path: readonly string[] } {
  const schema = at(document, path);
  return schema.$ref === undefined ? { schema, path } : followed(document, schema.$ref.split('/').slice(1));
}

function at(document: Contract, path: readonly string[]): Schema {
  const found = path.reduce<unknown>((node, name) => (node as Record<string, unknown> | undefined)?.[name], document);
  if (found === undefined) throw new Error(`${path.join('/')} leads nowhere`);
  return found as Schema;
}
