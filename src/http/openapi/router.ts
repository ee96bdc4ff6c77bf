import type { OpenAPIRouter, Operation, Request } from 'openapi-backend';

/** An operation whose path has parameters, and how to read them. */
interface Route {
  readonly operation: Operation;
  readonly pattern: RegExp;
  readonly parameterNames: readonly string[];
  /** The path that was read last. */
  read?: { readonly path: string; readonly parameters: Readonly<Record<string, string>> };
}

const PATH_PARAMETER = /\{([^{}]+)\}/g;

/**
 * Makes a router work out once what it works out several times a request: the list of operations, the patterns of their
 * paths, and the request's parameters. What it decides stays the same.
 *
 * Requests come in their final form: the path without the query, the query as an object, neither header fields nor
 * content.
 *
 * @throws Error where the contract has parameters that cannot be read in this way
 */
export function prepareRouting(router: OpenAPIRouter): void {
  const operations = router.getOperations().map(withoutSecurity);
  operations.forEach(requirePlainParameters);
  const byId = new Map(operations.map((operation) => [operation.operationId, operation]));
  const byPath = new Map(operations.map((operation) => [`${operation.method} ${operation.path}`, operation]));
  const routes = operations.filter(({ path }) => path.includes('{')).map(toRoute);
  const routeOf = new Map(routes.map((route) => [route.operation, route]));
  const matchInItsOwnWay = router.matchOperation.bind(router) as (request: Request, strict?: boolean) => Operation;

  router.getOperations = () => operations;
  router.getOperation = (operationId) => byId.get(operationId);
  router.matchOperation = (request: Request, strict?: boolean): Operation => {
    const { path } = request;
    const method = request.method.toLowerCase();
    const exact = byPath.get(`${method} ${path}`);
    if (exact !== undefined) return exact;
    const matching = routes.filter(({ operation, pattern }) => operation.method === method && pattern.test(path));
    // None, or several of which the most specific counts.
    return matching.length === 1 && matching[0] ? matching[0].operation : matchInItsOwnWay(request, strict);
  };
  router.parseRequest = ({ method, path, query }, operation) => {
    const route = operation && routeOf.get(operation);
    return {
      method: method.toLowerCase(),
      path,
      params: route ? pathParameters(route, path) : {},
      query: { ...(query as Record<string, unknown>) },
      headers: {},
      cookies: {},
      requestBody: undefined,
    };
  };
}

/** Requests are authenticated before they get here: what is dispatched has a caller. */
function withoutSecurity(operation: Operation): Operation {
  return { ...operation, security: [] };
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

function toRoute(operation: Operation): Route {
  const parameterNames: string[] = [];
  const pattern = operation.path
    .split(PATH_PARAMETER)
    .map((part, i) => {
      if (i % 2 === 0) return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      parameterNames.push(part);
      return '([^/]+)';
    })
    .join('');
  return { operation, pattern: new RegExp(`^${pattern}$`), parameterNames };
}

/** A request's parameters are asked for several times. @returns what the caller may change */
function pathParameters(route: Route, path: string): Record<string, string> {
  if (route.read?.path !== path) route.read = { path, parameters: readPath(route, path) };
  return { ...route.read.parameters };
}

function readPath({ pattern, parameterNames }: Route, path: string): Record<string, string> {
  const values = pattern.exec(path) ?? [];
  return Object.fromEntries(parameterNames.map((name, i) => [name, decodeURIComponent(values[i + 1] ?? '')]));
}
