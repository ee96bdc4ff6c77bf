import { OpenAPIRouter, type Document, type Operation, type ParsedRequest, type Request } from 'openapi-backend';

/** How to recognise a path that has parameters, and how to read them. */
interface Template {
  readonly pattern: RegExp;
  readonly parameterNames: readonly string[];
}

const PATH_PARAMETER = /\{([^{}]+)\}/g;

/**
 * The router of openapi-backend, which rebuilds its lists of operations and patterns for every request. This one builds
 * them once. Its decisions are the same.
 *
 * Requests come in their final form: the path without the query, and the query as an object. They have neither header
 * fields nor content.
 */
export class ContractRouter extends OpenAPIRouter {
  readonly #operations: Operation[];
  readonly #byId: ReadonlyMap<string | undefined, Operation>;
  readonly #byPath: ReadonlyMap<string, Operation>;
  readonly #templates: ReadonlyMap<Operation, Template>;

  /**
   * @param definition - valid OpenAPI without references
   * @throws Error when the contract has parameters that this router does not read
   */
  constructor(definition: Document) {
    super({ definition, ignoreTrailingSlashes: false });
    // Requests are authenticated before they are routed.
    this.#operations = super.getOperations().map((operation) => ({ ...operation, security: [] }));
    this.#operations.forEach(requirePlainParameters);
    this.#byId = new Map(this.#operations.map((operation) => [operation.operationId, operation]));
    this.#byPath = new Map(this.#operations.map((operation) => [`${operation.method} ${operation.path}`, operation]));
    const templated = this.#operations.filter(({ path }) => path.includes('{'));
    this.#templates = new Map(templated.map((operation) => [operation, toTemplate(operation.path)]));
  }

  override getOperations(): Operation[] {
    return this.#operations;
  }

  override getOperation(operationId: string): Operation | undefined {
    return this.#byId.get(operationId);
  }

  override matchOperation(request: Request): Operation | undefined;
  override matchOperation(request: Request, strict: boolean): Operation;
  override matchOperation(request: Request, strict = false): Operation | undefined {
    const { path } = request;
    const method = request.method.toLowerCase();
    const exact = this.#byPath.get(`${method} ${path}`);
    if (exact !== undefined) return exact;
    const matching = [...this.#templates].filter(
      ([operation, { pattern }]) => operation.method === method && pattern.test(path),
    );
    // No operation, or several of which the most specific counts.
    return matching.length === 1 && matching[0] ? matching[0][0] : super.matchOperation(request, strict);
  }

  override parseRequest({ method, path, query }: Request, operation?: Operation): ParsedRequest {
    const template = operation && this.#templates.get(operation);
    return {
      method: method.toLowerCase(),
      path,
      params: template ? readParameters(template, path) : {},
      query: { ...(query as Record<string, unknown>) },
      headers: {},
      cookies: {},
      requestBody: undefined,
    };
  }
}

/** Optional header fields of the contract, such as If-None-Match, are read elsewhere. */
function requirePlainParameters({ operationId, parameters = [], requestBody }: Operation): void {
  const isPlain = parameters.every(
    (parameter) =>
      'in' in parameter &&
      (parameter.in === 'header' ? parameter.required !== true : parameter.in !== 'cookie') &&
      parameter.content === undefined &&
      parameter.explode !== false &&
      !isArray(parameter),
  );
  if (isPlain && requestBody === undefined) return;
  throw new Error(`${operationId ?? 'an operation'} has parameters or content that dispatch does not read`);
}

function isArray({ schema }: { readonly schema?: unknown }): boolean {
  return typeof schema === 'object' && schema !== null && 'type' in schema && schema.type === 'array';
}

function toTemplate(path: string): Template {
  const parameterNames: string[] = [];
  const pattern = path
    .split(PATH_PARAMETER)
    .map((part, i) => {
      if (i % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      parameterNames.push(part);
      return '([^/]+)';
    })
    .join('');
  return { pattern: new RegExp(`^${pattern}$`), parameterNames };
}

function readParameters({ pattern, parameterNames }: Template, path: string): Record<string, string> {
  const values = pattern.exec(path) ?? [];
  return Object.fromEntries(parameterNames.map((name, i) => [name, decodeURIComponent(values[i + 1] ?? '')]));
}
