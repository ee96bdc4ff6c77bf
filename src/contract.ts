import type { operations, paths } from '../generated/openapi.js';

export type Path = keyof paths;

export type OperationId = keyof operations;

/** The body of a successful answer of an operation. */
export type Answer<Id extends OperationId> = operations[Id]['responses'][200]['content']['application/json'];

/** The body of an operation's error, of any status. */
export type Refusal<Id extends OperationId> = ProblemBody<
  operations[Id]['responses'][keyof operations[Id]['responses']]
>;

type ProblemBody<Response> = Response extends { content: { 'application/problem+json': infer Body } } ? Body : never;

export type PathParameters<Id extends OperationId> = Parameters<Id, 'path'>;

export type QueryParameters<Id extends OperationId> = Parameters<Id, 'query'>;

type Parameters<Id extends OperationId, In extends 'path' | 'query'> =
  operations[Id]['parameters'] extends Record<In, infer P> ? P : Readonly<Record<string, never>>;
