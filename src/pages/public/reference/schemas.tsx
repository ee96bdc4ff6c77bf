import type { VNode } from 'preact';
import { Heading } from '../../parts/content/heading.js';
import { fieldId, schemaId } from './anchors.js';
import { fieldsOf, resolve, type OrReference, type Schema } from './contract.js';
import { Fold } from './fold.js';
import { Text, type ReferenceContext } from './text.js';

/** Keywords that bound a value, and how each is written. */
const BOUNDS = {
  format: 'format',
  minimum: 'at least',
  maximum: 'at most',
  minLength: 'min length',
  maxLength: 'max length',
  minItems: 'min items',
  maxItems: 'max items',
  pattern: 'pattern',
  default: 'default',
} as const;

interface SchemaProps {
  readonly context: ReferenceContext;
  readonly schema: OrReference<Schema>;
}

/** The type of a value in a few words: `string`, `array of CatalogEntry`. Named schemas are links. */
export function TypeName({ context, schema }: SchemaProps): VNode {
  const { part, name } = resolve(context.contract, schema);
  if (name !== undefined) return <a href={`#${schemaId(name)}`}>{name}</a>;
  if (part.items !== undefined) {
    return (
      <>
        array of <TypeName context={context} schema={part.items} />
      </>
    );
  }
  return <>{part.type ?? 'object'}</>;
}

interface BoundsProps {
  readonly schema: Schema;
  /** The example of a parameter, which its schema does not have. */
  readonly example?: string | number | undefined;
}

/** The bounds of a value besides its type, and an example; nothing if it has neither. */
export function Bounds({ schema, example }: BoundsProps): VNode | null {
  const bounds: [words: string, ...values: unknown[]][] = Object.entries(BOUNDS)
    .filter(([keyword]) => schema[keyword] !== undefined)
    .map(([keyword, words]) => [words, schema[keyword]]);
  if (schema.enum) bounds.push([schema.enum.length > 1 ? 'one of' : 'always', ...schema.enum]);
  const known = schema['x-extensible-enum'] as readonly unknown[] | undefined;
  if (known) bounds.push(['known values', ...known]);
  if (schema.uniqueItems === true) bounds.push(['unique items']);
  if (example !== undefined) bounds.push(['example', example]);
  if (bounds.length === 0) return null;
  const items = bounds.map(([words, ...values]) => (
    <li key={words}>
      {words}{' '}
      {values.map((value, index) => (
        <>
          {index > 0 && ', '}
          <code>{String(value)}</code>
        </>
      ))}
    </li>
  ));
  if (schema.maximum !== Number.MAX_SAFE_INTEGER) return <ul class="bounds">{items}</ul>;
  // The bounds of every count would stand in most lines.
  return (
    <details class="small">
      <summary class="aside">limits</summary>
      <ul class="bounds">{items}</ul>
    </details>
  );
}

interface FieldProps extends SchemaProps {
  readonly name: string;
  readonly isRequired: boolean;
  /** Whether the fields of a named schema follow in place, or only a link to them. */
  readonly expands: boolean;
  readonly id: string | undefined;
}

/** One field of an object, with its type, its bounds and its description. */
function Field({ context, schema, name, isRequired, expands, id }: FieldProps): VNode {
  const { part, name: schemaName } = resolve(context.contract, schema);
  const items = part.items && resolve(context.contract, part.items).part;
  return (
    <li id={id}>
      <div class="field-head">
        <code>{name}</code>
        <span>
          <TypeName context={context} schema={schema} />
        </span>
        {!isRequired && <span class="aside">optional</span>}
        {(schemaName === undefined || expands) && <Bounds schema={part} />}
        {items && !('$ref' in (part.items ?? {})) && <Bounds schema={items} />}
      </div>
      {(schemaName === undefined || expands) && <Text context={context} text={part.description} />}
      {expands && <Fields context={context} schema={items ?? part} expands />}
    </li>
  );
}

interface FieldsProps extends SchemaProps {
  readonly expands?: boolean;
  /** The name of the schema under which links lead to the fields. */
  readonly of?: string;
}

/** The fields of an object; nothing for a schema of another type. */
export function Fields({ context, schema, expands = false, of }: FieldsProps): VNode | null {
  const { part } = resolve(context.contract, schema);
  const fields = fieldsOf(context.contract, part);
  if (fields.length === 0) return null;
  return (
    <ul class="fields">
      {fields.map(({ name, field, isRequired }) => (
        <Field
          key={name}
          id={of === undefined ? undefined : fieldId(of, name)}
          context={context}
          name={name}
          schema={field}
          isRequired={isRequired}
          expands={expands}
        />
      ))}
    </ul>
  );
}

/** The named schemas of the contract. */
export function Schemas({ context }: { readonly context: ReferenceContext }): VNode {
  return (
    <section aria-labelledby="schemas">
      <Heading level={2} id="schemas" text="Schemas" />
      {Object.entries(context.contract.components.schemas).map(([name, schema]) => (
        <Fold
          key={name}
          id={schemaId(name)}
          text={name}
          summary={
            <>
              <h3>{name}</h3>
              <span class="muted">{schema.type ?? 'object'}</span>
            </>
          }
        >
          <Text context={context} text={schema.description} />
          <Bounds schema={schema} />
          <Fields context={context} schema={schema} of={name} />
        </Fold>
      ))}
    </section>
  );
}
