import type { ValidationResult } from 'openapi-backend/validation.js';
import {
  OpenAPIValidator,
  type OpenAPIBackend,
  type Operation,
  type ParsedRequest,
  type Request,
} from 'openapi-backend';

type Parameters = Record<string, unknown>;

type Options = Pick<OpenAPIBackend, 'definition' | 'router' | 'coerceTypes' | 'ajvOpts'> &
  Partial<Pick<OpenAPIBackend, 'customizeAjv'>>;

/**
 * The validator of openapi-backend without its preparations for content, header fields, and parameters that are arrays or
 * JSON, all of which ContractRouter refuses. It runs the same compiled schemas.
 */
export class ParameterValidator extends OpenAPIValidator {
  /** Takes the contract and the options of a backend. Schemas are compiled when they are first needed. */
  constructor({ definition, router, coerceTypes, ajvOpts, customizeAjv }: Options) {
    super({
      definition,
      router,
      coerceTypes,
      ajvOpts,
      lazyCompileValidators: true,
      ...(customizeAjv && { customizeAjv }),
    });
  }

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
      coerced: { method, path, query: parameters.query as Record<string, string>, headers },
    };
  }
}
