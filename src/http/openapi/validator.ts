import type { ValidationResult } from 'openapi-backend/validation.js';
import type { OpenAPIRouter, OpenAPIValidator, Operation, ParsedRequest, Request } from 'openapi-backend';

type Parameters = Record<string, unknown>;
type Parsed = ParsedRequest<unknown, Parameters, Parameters>;

/** Whether a request to an operation has anything to be validated: parameters of the path or the query. */
export function hasParameters({ parameters = [] }: Operation): boolean {
  return parameters.some((parameter) => 'in' in parameter && (parameter.in === 'path' || parameter.in === 'query'));
}

/**
 * Makes a validator run its compiled schemas and nothing else. What it leaves out concerns requests that
 * {@link prepareRouting} does not let through: content, header fields, and parameters that are arrays or JSON.
 */
export function prepareValidation(validator: OpenAPIValidator, router: OpenAPIRouter): void {
  validator.validateRequest = (request: Request, operation?: Operation | string) => {
    const { method, path, headers } = request;
    const { params, query } = router.parseRequest(request, operation as Operation) as Parsed;
    const parameters = { path: params, query, header: {}, cookie: {} };
    const errors = [];
    for (const validate of validator.getRequestValidatorsForOperation((operation as Operation).operationId ?? '')) {
      validate(parameters);
      if (validate.errors) errors.push(...validate.errors);
    }
    const result = {
      valid: errors.length === 0,
      errors: errors.length === 0 ? null : errors,
      // Not `{ ...request, query }`: V8 as of Node.js 20 makes a hidden class for each object that is spread and then given
      // more, which only a full collection of garbage frees.
      coerced: { method, path, query: parameters.query, headers },
    };
    return result as ValidationResult<Request>;
  };
}
