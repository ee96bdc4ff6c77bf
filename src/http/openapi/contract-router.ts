import type { ValidationResult } from 'openapi-backend/validation.js';
import {
  OpenAPIRouter,
  OpenAPIValidator,
  type Document,
  type OpenAPIBackend,
  type Operation,
  type ParsedRequest,
  type Request,
} from 'openapi-backend';

type Parameters = Record<string, unknown>;

type Options = Pick<OpenAPIBackend, 'definition' | 'router' | 'coerceTypes' | 'ajvOpts'> &
  Partial<Pick<OpenAPIBackend, 'customizeAjv'>>;

/** Matches a path that has parameters, and captures their values. */
interface Template {
  readonly operation: Operation;
  readonly pattern: RegExp;
  readonly names: readonly string[];
}

/**
 * The router of openapi-backend, except that it builds its lists of operations and patterns once instead of for each
 * request. Its decisions are the same.
 *
 * Requests come in their final form: a path without the query, the query as an object, no header fields and no content.
 */
export class ContractRouter extends OpenAPIRouter {
  readonly #operations: Operation[];
  readonly #byPath: ReadonlyMap<string, Operation>;
  readonly #templates: readonly Template[];

  /**
   * @param definition - valid OpenAPI without references, whose required parameters are plain values of the path and
   *   the query
   */
  constructor(definition: Document) {
    super({ definition, ignoreTrailingSlashes: false });
    this.#operations = super.getOperations();
    this.#byPath = new Map(this.#operations.map((operation) => [`${operation.method} ${operation.path}`, operation]));
    this.#templates = this.#operations.filter(({ path }) => path.includes('{')).map(toTemplate);
  }

  override getOperations(): Operation[] {
    return this.#operations;
  }

  override matchOperation(request: Request): Operation | undefined;
  override matchOperation(request: Request, strict: boolean): Operation;
  override matchOperation(request: Request, strict = false): Operation | undefined {
    const method = request.method.toLowerCase();
    const exact = this.#byPath.get(`${method} ${request.path}`);
    if (exact !== undefined) return exact;
    const [match, ...others] = this.#templates.filter(
      ({ operation, pattern }) => operation.method === method && pattern.test(request.path),
    );
    // For no match, or the most specific one of several.
    return match && others.length === 0 ? match.operation : super.matchOperation(request, strict);
  }

  override parseRequest({ method, path, query }: Request, operation?: Operation): ParsedRequest {
    const template = this.#templates.find((each) => each.operation === operation);
    const values = template?.pattern.exec(path)?.slice(1) ?? [];
    const params = values.map((value, i): [string, string] => [template?.names[i] ?? '', decodeURIComponent(value)]);
    return {
      method: method.toLowerCase(),
      path,
      params: Object.fromEntries(params),
      query: { ...(query as Record<string, unknown>) },
      headers: {},
      cookies: {},
      requestBody: undefined,
    };
  }
}

/**
 * The validator of openapi-backend without its preparations for content, header fields, and parameters that are arrays
 * or JSON, which the contract does not have. It runs the same compiled schemas.
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

function toTemplate(operation: Operation): Template {
  const literals = operation.path.split(/\{[^{}]+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return {
    operation,
    pattern: new RegExp(`^${literals.join('([^/]+)')}$`),
    names: [...operation.path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => name),
  };
}
