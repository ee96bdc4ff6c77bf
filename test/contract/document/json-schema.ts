import { child, resolve, type Node } from './document.js';

/** Members of a schema object that say something to people, or nothing to a validator of draft 7. */
const DROPPED = new Set(['description', 'example', 'nullable', 'deprecated', 'externalDocs', 'xml', '$ref']);

/** OpenAPI's own formats: they describe a number's width, which draft 7 says with bounds. */
const NUMBER_FORMATS: Readonly<Record<string, Node>> = {
  int32: { minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  int64: {},
  float: {},
  double: {},
};

/**
 * A schema of OpenAPI 3.0 as JSON Schema draft 7, complete in itself: references are replaced by what they refer to.
 * Schemas that contain themselves are beyond it.
 */
export function jsonSchema(openApiSchema: Node): Node {
  const schema = resolve(openApiSchema);
  const { type, format, nullable, ...rest } = schema;
  const bounds = typeof format === 'string' ? NUMBER_FORMATS[format] : undefined;
  const members = Object.entries(rest)
    .filter(([keyword]) => !DROPPED.has(keyword))
    .map(([keyword, value]) => [keyword, convert(keyword, value)] as const);
  return {
    ...bounds,
    ...(type !== undefined && { type: nullable === true ? [type, 'null'] : type }),
    ...(format !== undefined && bounds === undefined && { format }),
    ...Object.fromEntries(members),
  };
}

function convert(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'properties':
      return Object.fromEntries(
        Object.keys(value as Node).map((name) => [name, jsonSchema(child(value as Node, name))]),
      );
    case 'allOf':
    case 'anyOf':
    case 'oneOf':
      return (value as Node[]).map(jsonSchema);
    case 'items':
    case 'not':
      return jsonSchema(value as Node);
    case 'additionalProperties':
      return typeof value === 'boolean' ? value : jsonSchema(value as Node);
    default:
      return value;
  }
}
