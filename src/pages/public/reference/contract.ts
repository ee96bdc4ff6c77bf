/** A part of the contract, or a reference to one under `components`. */
export type OrReference<Part> = Part | { readonly $ref: string };

/** A schema, as far as the contract uses OpenAPI 3.0. */
export interface Schema {
  readonly description?: string;
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, OrReference<Schema>>>;
  readonly required?: readonly string[];
  readonly items?: OrReference<Schema>;
  readonly allOf?: readonly OrReference<Schema>[];
  readonly enum?: readonly unknown[];
  readonly [keyword: string]: unknown;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
  readonly required?: boolean;
  readonly schema: OrReference<Schema>;
  readonly example?: string | number;
}

export type Header = Omit<Parameter, 'name' | 'in'>;

/** An example of a body that has several. */
export interface Example {
  readonly summary?: string;
  readonly value: unknown;
}

export interface MediaType {
  readonly schema: OrReference<Schema>;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, OrReference<Example>>>;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, OrReference<Header>>>;
  readonly content?: Readonly<Record<string, MediaType>>;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly OrReference<Parameter>[];
  readonly responses: Readonly<Record<string, OrReference<Response>>>;
}

/** The contract, as the reference shows it. */
export interface Contract {
  readonly openapi: string;
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly url: string };
  };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, Readonly<Partial<Record<string, string>>>>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

/** An operation with its place in the contract. */
export interface PlacedOperation extends Operation {
  /** In capital letters. */
  readonly method: string;
  readonly path: string;
}

/** @returns every operation, in the order of the contract */
export function operationsOf({ paths }: Contract): readonly PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

type Tag = Contract['tags'][number];

/** @returns the tags without operations, which are the chapters of the contract, and the tags that group operations */
export function tagsOf(contract: Contract): { readonly chapters: readonly Tag[]; readonly groups: readonly Tag[] } {
  const used = new Set(operationsOf(contract).flatMap(({ tags }) => tags));
  return {
    chapters: contract.tags.filter(({ name }) => !used.has(name)),
    groups: contract.tags.filter(({ name }) => used.has(name)),
  };
}

/** A part of the contract, with its name under `components` if it is shared. */
export interface Resolved<Part> {
  readonly part: Part;
  readonly name: string | undefined;
}

/** Follows a reference. @throws Error if it leads nowhere */
export function resolve<Part extends object>({ components }: Contract, part: OrReference<Part>): Resolved<Part> {
  if (!('$ref' in part) || typeof part.$ref !== 'string') return { part: part as Part, name: undefined };
  const [, , kind = '', name = ''] = part.$ref.split('/');
  const found = (components as unknown as Readonly<Record<string, Readonly<Record<string, Part>>>>)[kind]?.[name];
  if (found === undefined) throw new Error(`the contract has no ${part.$ref}`);
  return { part: found, name };
}

/** @returns the fields of an object, including those of its `allOf` */
export function fieldsOf(
  contract: Contract,
  { properties = {}, required = [], allOf = [] }: Schema,
): readonly { readonly name: string; readonly field: OrReference<Schema>; readonly isRequired: boolean }[] {
  return [
    ...allOf.flatMap((part) => fieldsOf(contract, resolve(contract, part).part)),
    ...Object.entries(properties).map(([name, field]) => ({ name, field, isRequired: required.includes(name) })),
  ];
}

/** @returns the statuses of a shared response */
export function statusesOf(contract: Contract, name: string): readonly string[] {
  const statuses = operationsOf(contract).flatMap(({ responses }) =>
    Object.entries(responses)
      .filter(([, response]) => resolve(contract, response).name === name)
      .map(([status]) => status),
  );
  return [...new Set(statuses)];
}

/** @returns the names of the shared header fields, as a response has them */
export function headerNames(contract: Contract): ReadonlyMap<string, string> {
  const responses = operationsOf(contract).flatMap((operation) => Object.values(operation.responses));
  const headers = responses.flatMap((response) => Object.entries(resolve(contract, response).part.headers ?? {}));
  return new Map(headers.map(([name, header]) => [resolve(contract, header).name ?? name, name]));
}
