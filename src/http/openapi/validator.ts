import type { ValidationResult } from 'openapi-backend/validation.js';
import { OpenAPIValidator, type Operation, type ParsedRequest, type Request } from 'openapi-backend';

type Parameters = Record<string, unknown>;

/** Whether a request to an operation has parameters of the path or the query to validate. */
export function hasParameters({ parameters = [] }: Operation): boolean {
  return parameters.some((parameter) => 'in' in parameter && (parameter.in === 'path' || parameter.in === 'query'));
}

/**
 * The validator of openapi-backend without its preparations for what ContractRouter refuses. That is content, header
 * fields, and parameters that are arrays or JSON. It runs the same compiled schemas.
 */
export class ParameterValidator extends OpenAPIValidator {
  override validateRequest(request: Request, operation: Operation): ValidationResult<Request> {
    const { method, path, headers } = request;
    const parsed = this.router.parseRequest(request, operation) as ParsedRequest<unknown, Parameters, Parameters>;
    const parameters = { path: parsed.params, query: parsed.query, header: {}, cookie: {} };
    const errors = [];
    for (const validate of this.getRequestValidatorsForOperation(operation.operationId ?? '')) {
      validate(parameters);
      if (validate.errors) errors.push(...validate.errors);
    }
    return {
      valid: errors.length === 0,
      errors: errors.length === 0 ? null : errors,
      // Not `{ ...request, query }`: V8 as of Node.js 20 makes a hidden class for each object that is spread and extended.
      // Only a full garbage collection frees those.
      coerced: { method, path, query: parameters.query as Record<string, string>, headers },
    };
  }
}
