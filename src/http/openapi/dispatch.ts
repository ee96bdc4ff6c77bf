import addFormats from 'ajv-formats';
import { OpenAPIBackend, type Context, type Document } from 'openapi-backend';
import { operations } from '../../api/index.js';
import type { CheckParameter, Dependencies, Operation } from '../../api/operation.js';
import type { Answer, OperationId, PathParameters } from '../../contract.js';
import { Problem } from '../../errors.js';
import type { Middleware, RequestContext, RequestState } from '../request/context.js';
import { queryNames, queryObject, requireDecodable } from './parameters.js';
import { ContractRouter } from './router.js';
import { hasParameters, ParameterValidator } from './validator.js';

/** The methods that a path of the contract may have; HEAD comes with GET (RFC 9110, section 9.3.2). */
const METHODS = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'] as const;

/**
 * Makes the last stage of a request: it routes the request by the contract, validates it, and calls the operation.
 *
 * @param contract - valid OpenAPI
 * @returns a middleware that throws Problem not_found, method_not_allowed, invalid_parameter, and those of the operation
 * @throws Error when the contract has no such operation as `src/api` has
 */
export async function dispatch(contract: Document, dependencies: Dependencies): Promise<Middleware> {
  const backend = await createBackend(contract, dependencies);
  const names = queryNames(backend.getOperations());
  return async (ctx) => {
    const { target, timedOut } = ctx.state;
    if (timedOut) return;
    requireDecodable(target);
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method;
    const request = { method, path: target.path, query: queryObject(target.search, names), headers: {} };
    ctx.state.answer = (await backend.handleRequest(request, ctx)) as Answer<OperationId>;
  };
}

async function createBackend(definition: Document, dependencies: Dependencies): Promise<OpenAPIBackend> {
  const backend = new OpenAPIBackend({
    definition,
    strict: true,
    // `make test` has checked the contract and compiled all validators of responses, so the start skips both.
    quick: true,
    coerceTypes: true,
    // Validation would refuse a parameter of another operation. A tolerant reader ignores it, so it is left out.
    ajvOpts: { strict: false, removeAdditional: true },
    customizeAjv: (ajv) => {
      addFormats.default(ajv);
      return ajv;
    },
    handlers: {
      postRoutingHandler: ({ operation }: Partial<Context>, { state }: RequestContext) => {
        if (operation) state.operation = operations[operation.operationId as OperationId];
      },
      notFound: () => {
        throw new Problem('not_found', 'There is no such path. The contract at /openapi.yaml lists all paths.');
      },
      methodNotAllowed: ({ request }: Context) => {
        throw methodNotAllowed(backend, request.path);
      },
      validationFail: ({ validation }: Context, { state }: RequestContext) => {
        throw invalidParameter(validation.errors?.[0], state);
      },
      ...Object.fromEntries(Object.values(operations).map((operation) => [operation.id, toHandler(operation)])),
    },
    // Without parameters in the contract there is nothing to validate.
    validate: ({ operation }: Context) => hasParameters(operation),
  });
  await backend.init();
  // `init` has made the library's router and validator. Ours answer the same with less work for each request.
  const { ajvOpts, customizeAjv, coerceTypes } = backend;
  const router = new ContractRouter(backend.definition);
  backend.router = router;
  backend.validator = new ParameterValidator({
    definition: backend.definition,
    router,
    coerceTypes,
    ajvOpts,
    lazyCompileValidators: true,
    ...(customizeAjv && { customizeAjv }),
  });
  return backend;

  function toHandler<Id extends OperationId>({ handle }: Operation<Id>) {
    return ({ request }: Context, { state: { target, caller } }: RequestContext): Answer<Id> | Promise<Answer<Id>> => {
      if (caller === undefined) throw new Error('a request without a caller was dispatched');
      // The contract's validation has just checked that the parameters have the handler's type.
      const path = request.params as PathParameters<Id>;
      return handle(dependencies, { path, search: target.search, caller });
    };
  }
}

function methodNotAllowed({ router }: OpenAPIBackend, path: string): Problem {
  const allowed = METHODS.filter(
    (method) => router.matchOperation({ method, path, headers: {} }) !== undefined,
  ).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return new Problem('method_not_allowed', `This path answers only to ${allowed.join(' and ')}.`, {
    headers: { Allow: allowed.join(', ') },
  });
}

/** @param error - the first one of ajv; its instancePath is `/query` or `/path` and the parameter's name */
function invalidParameter(
  error: { instancePath?: string; message?: string; params?: unknown } | undefined,
  { target, operation }: RequestState,
): Problem {
  const missing = (error?.params as { missingProperty?: string } | undefined)?.missingProperty;
  const name = missing ?? error?.instancePath?.split('/').at(2) ?? '';
  const parameterErrors: Readonly<Record<string, CheckParameter | undefined>> = operation?.policy.parameterErrors ?? {};
  // Called for the problem that it throws.
  parameterErrors[name]?.(target.search.getAll(name));
  return new Problem('invalid_parameter', `The parameter ${name} ${error?.message ?? 'is not valid'}.`);
}
