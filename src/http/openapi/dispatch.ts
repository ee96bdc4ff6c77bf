import addFormats from 'ajv-formats';
import { OpenAPIBackend, type Context as Exchange, type Document, type Operation } from 'openapi-backend';
import type { Dependencies, Handler } from '../../api/handler.js';
import { handlers } from '../../api/index.js';
import { parseSince } from '../../catalog/since.js';
import type { Answer, OperationId } from '../../contract.js';
import { Problem } from '../../errors.js';
import type { Caller } from '../../keys/callers.js';
import { prepareRouting } from './router.js';
import { hasParameters, prepareValidation } from './validator.js';

/** An authenticated request, before anyone knows which operation it is for. */
export interface UnroutedRequest {
  readonly method: string;
  /** Percent-encoded and normalised, without the query. */
  readonly path: string;
  /** The query as it came: percent-encoded. */
  readonly querystring: string;
  readonly search: URLSearchParams;
  readonly caller: Caller;
  /** Called as soon as the operation is known, also when its answer will be a problem. */
  readonly onRouted: (operationId: string) => void;
}

/**
 * Routes a request by the contract, validates it, and calls the operation's handler.
 *
 * @throws Problem not_found, method_not_allowed, invalid_parameter, and those of the operation
 */
export type Dispatch = (request: UnroutedRequest) => Promise<Answer<OperationId>>;

/** Parameters that explain what is wrong with them better than their schema can. Each throws a Problem of its own. */
const SELF_EXPLAINED: Readonly<Record<string, (values: readonly string[]) => unknown>> = { since: parseSince };

/** The methods that a path of the contract may have; HEAD comes with GET (RFC 9110, section 9.3.2). */
const METHODS = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'] as const;

/**
 * Prepares dispatch by a contract.
 *
 * @param contract - valid OpenAPI
 * @throws when it has no such operation as there is a handler for
 */
export async function createDispatch(contract: Document, dependencies: Dependencies): Promise<Dispatch> {
  const backend = new OpenAPIBackend({
    definition: contract,
    strict: true,
    // The start is spared what `make test` does: checking the contract, and compiling validators of all responses.
    quick: true,
    coerceTypes: true,
    ignoreTrailingSlashes: false,
    // A parameter of another operation is left out before validation would refuse it: a tolerant reader ignores it.
    ajvOpts: { strict: false, removeAdditional: true },
    customizeAjv: (ajv) => {
      addFormats.default(ajv);
      return ajv;
    },
    handlers: {
      postRoutingHandler: ({ operation }: Partial<Exchange>, { onRouted }: UnroutedRequest) => {
        if (operation?.operationId !== undefined) onRouted(operation.operationId);
      },
      notFound: () => {
        throw new Problem('not_found', 'There is no such path. The contract at /openapi.yaml lists those there are.');
      },
      methodNotAllowed: ({ request }: Exchange) => {
        throw methodNotAllowed(backend, request.path);
      },
      validationFail: ({ validation }: Exchange, { search }: UnroutedRequest) => {
        throw invalidParameter(validation.errors?.[0], search);
      },
      ...operationHandlers(dependencies),
    },
    // Nothing is there to be found wrong where the contract has no parameters.
    validate: ({ operation }: Exchange) => hasParameters(operation),
  });
  await backend.init();
  prepareRouting(backend.router);
  prepareValidation(backend.validator, backend.router);
  const names = queryNames(backend.router.getOperations());

  return (request) => {
    requireDecodable(request);
    return backend.handleRequest(
      {
        method: request.method === 'HEAD' ? 'GET' : request.method,
        path: request.path,
        query: queryObject(request.search, names),
        headers: {},
      },
      request,
    ) as Promise<Answer<OperationId>>;
  };
}

function operationHandlers(dependencies: Dependencies): Record<string, (...args: never[]) => unknown> {
  return Object.fromEntries(
    Object.entries(handlers).map(([operationId, handler]) => [
      operationId,
      ({ request: { params, query } }: Exchange, { search, caller }: UnroutedRequest) =>
        // The contract's validation has just made the parameters what the handler's type says they are.
        (handler as Handler<OperationId>)(dependencies, {
          path: params as never,
          query: query as never,
          search,
          caller,
        }),
    ]),
  );
}

/** Malformed percent-encoding, which decodeURIComponent answers with a URIError, is the client's mistake. */
function requireDecodable({ path, querystring }: UnroutedRequest): void {
  for (const [part, text] of [
    ['path', path],
    ['query', querystring],
  ] as const) {
    if (!text.includes('%')) continue;
    try {
      decodeURIComponent(text);
    } catch {
      throw new Problem(
        'invalid_parameter',
        `The ${part} is not valid percent-encoded UTF-8. Write a literal percent sign as %25.`,
      );
    }
  }
}

/** @returns the names of all query parameters that operations have */
function queryNames(operations: readonly Operation[]): readonly string[] {
  const parameters = operations.flatMap((operation) => operation.parameters ?? []);
  return [
    ...new Set(
      parameters.flatMap((parameter) => ('in' in parameter && parameter.in === 'query' ? [parameter.name] : [])),
    ),
  ];
}

/**
 * The query as an object. A parameter given once becomes a string, one given more often an array, which no parameter's
 * schema accepts.
 *
 * @param names - the only ones that are looked for: a query may have thousands
 */
function queryObject(search: URLSearchParams, names: readonly string[]): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  if (search.size === 0) return query;
  for (const name of names) {
    const values = search.getAll(name);
    if (values.length > 0) query[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return query;
}

function methodNotAllowed({ router }: OpenAPIBackend, path: string): Problem {
  const allowed = METHODS.filter(
    (method) => router.matchOperation({ method, path, headers: {} }) !== undefined,
  ).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return new Problem('method_not_allowed', `This path answers only to ${allowed.join(' and ')}.`, {
    headers: { Allow: allowed.join(', ') },
  });
}

/** @param error - the first thing that ajv found; its instancePath is `/query` or `/path` and the parameter's name */
function invalidParameter(
  error: { instancePath?: string; message?: string; params?: unknown } | undefined,
  search: URLSearchParams,
): Problem {
  const missing = (error?.params as { missingProperty?: string } | undefined)?.missingProperty;
  const name = missing ?? error?.instancePath?.split('/').at(2) ?? '';
  SELF_EXPLAINED[name]?.(search.getAll(name));
  return new Problem('invalid_parameter', `The parameter ${name} ${error?.message ?? 'is not valid'}.`);
}
