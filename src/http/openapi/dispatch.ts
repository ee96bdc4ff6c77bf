import addFormats from 'ajv-formats';
import { OpenAPIBackend, type Context, type Document, type Operation as Described } from 'openapi-backend';
import { operations } from '../../api/index.js';
import type { CheckParameter, Dependencies, Operation, Policy } from '../../api/operation.js';
import type { Answer, OperationId, PathParameters } from '../../contract.js';
import { Problem } from '../../errors.js';
import { methodNotAllowed } from '../response/problems.js';
import { Representation } from '../response/representation.js';
import type { Middleware, RequestContext, RequestState } from '../request/context.js';
import type { Target } from '../request/target.js';
import { ContractRouter, ParameterValidator } from './contract-router.js';

/** The uses of the contract. */
export interface ByContract {
  /**
   * The last stage of a request: routes it, validates it, calls the operation, and sends its answer. It throws Problem
   * not_found, method_not_allowed, invalid_parameter, and those of the operation.
   */
  readonly dispatch: Middleware;
  /** @returns the operation whose path and method a request has, although it was refused before it was routed */
  readonly operationOf: (ctx: RequestContext) => OperationId | undefined;
}

/**
 * @param contract - valid OpenAPI
 * @throws Error if the contract lacks an operation of `src/api`
 */
export async function byContract(contract: Document, dependencies: Dependencies): Promise<ByContract> {
  const backend = await createBackend(contract, dependencies);
  const names = new Set(backend.getOperations().flatMap(queryNames));
  return {
    dispatch: async (ctx) => {
      const { target, timedOut } = ctx.state;
      if (timedOut) return;
      requireDecodable(target);
      const query = queryObject(target.search, names);
      const request = { method: methodOf(ctx), path: target.path, query, headers: {} };
      await backend.handleRequest(request, ctx);
    },
    operationOf(ctx) {
      const request = { method: methodOf(ctx), path: ctx.state.target.path, headers: {} };
      return backend.router.matchOperation(request)?.operationId as OperationId | undefined;
    },
  };
}

/** A path that people expect to list titles. */
const TITLES = /^\/api\/v1\/(?:titles|search)\/?$/;

/** HEAD is answered like GET (RFC 9110, section 9.3.2). */
function methodOf({ method }: RequestContext): string {
  return method === 'HEAD' ? 'GET' : method;
}

async function createBackend(definition: Document, dependencies: Dependencies): Promise<OpenAPIBackend> {
  const backend = new OpenAPIBackend<Document>({
    // Requests are authenticated before they are routed.
    definition: { ...definition, security: [] },
    strict: true,
    ignoreTrailingSlashes: false,
    // `make test` has checked the contract and compiled all response validators, so the start skips both.
    quick: true,
    coerceTypes: true,
    // A tolerant reader ignores the query parameters of other operations instead of refusing them. To check each
    // schema, Ajv would first compile the schema of schemas, once for each operation.
    ajvOpts: { strict: false, removeAdditional: true, validateSchema: false },
    customizeAjv: (ajv) => {
      addFormats.default(ajv);
      return ajv;
    },
    handlers: {
      postRoutingHandler: ({ operation }: Partial<Context>, { state }: RequestContext) => {
        if (operation) state.operation = operations[operation.operationId as OperationId];
      },
      notFound: ({ request: { path } }: Context) => {
        const shorter = { method: 'GET', path: path.replace(/\/$/, ''), headers: {} };
        const fits = backend.router.matchOperation(shorter) !== undefined;
        const advice = fits
          ? 'Remove the slash at its end.'
          : TITLES.test(path)
            ? 'The API has no list of titles and no search: get IDs from /api/v1/changes or from a copy of the catalogue.'
            : 'The contract at /openapi.yaml lists all paths.';
        throw new Problem('not_found', `This path does not exist. ${advice}`);
      },
      // No operation changes anything. HEAD comes with GET (RFC 9110, section 9.3.2).
      methodNotAllowed: () => {
        throw methodNotAllowed();
      },
      validationFail: ({ validation }: Context, { state }: RequestContext) => {
        throw invalidParameter(validation.errors?.[0], state);
      },
      ...Object.fromEntries(Object.values(operations).map((operation) => [operation.id, toHandler(operation)])),
    },
  });
  await backend.init();
  // These two lines only save time: without them, the library's own router and validator decide the same.
  backend.router = new ContractRouter(backend.definition);
  backend.validator = new ParameterValidator(backend);
  return backend;

  function toHandler<Id extends OperationId>({ handle, policy }: Operation<Id>) {
    return async ({ request }: Context, ctx: RequestContext): Promise<void> => {
      const { target, caller } = ctx.state;
      if (caller === undefined) throw new Error('a request without a caller was dispatched');
      // Validation by the contract ensures that the parameters have this type.
      const path = request.params as PathParameters<Id>;
      const fields: Record<string, string> = {};
      const setField = (name: string, value: string) => (fields[name] = value);
      const answer = await handle(dependencies, { path, search: target.search, caller, setField });
      await sendAnswer(ctx, policy, answer, fields);
    };
  }
}

const MEDIA_TYPE = 'application/json';

/** Those of long answers: requests may share one. */
const SHARED = new WeakMap<object, Representation>();

/**
 * Sends an operation's answer as JSON according to its policy, unless the request's deadline has passed.
 *
 * Answers are `private`, since a shared cache must never serve one caller's answer to another, and `no-cache`, since a
 * client must revalidate a stored answer before it uses it.
 *
 * @param fields - set with the answer: a problem must not carry them
 */
async function sendAnswer<Id extends OperationId>(
  ctx: RequestContext,
  policy: Policy<Id>,
  answer: Answer<Id>,
  fields: Readonly<Record<string, string>>,
): Promise<void> {
  if (ctx.state.timedOut) return;
  if (policy.cache === 'never') {
    ctx.set({ ...fields, 'Content-Type': MEDIA_TYPE, 'Cache-Control': 'no-store' });
    ctx.body = JSON.stringify(answer);
    return;
  }
  const representation = SHARED.get(answer) ?? new Representation(JSON.stringify(answer), MEDIA_TYPE);
  if (policy.compress) SHARED.set(answer, representation);
  await representation.send(ctx, 'private, no-cache', policy.compress ?? false);
  const page = ctx.status === 200 ? policy.nextPage?.(answer) : undefined;
  ctx.set(fields);
  // A query-only reference replaces the whole query, including a key in it, and is valid behind every proxy.
  if (page !== undefined) ctx.set('Link', `<?${page}>; rel="next"`);
}

/** @param error - ajv's first one; its instancePath is `/query` or `/path` followed by the parameter's name */
function invalidParameter(
  error: { instancePath?: string; message?: string; params?: unknown } | undefined,
  { target, operation }: RequestState,
): Problem {
  const missing = (error?.params as { missingProperty?: string } | undefined)?.missingProperty;
  const name = missing ?? error?.instancePath?.split('/').at(2) ?? '';
  const parameterErrors: Readonly<Record<string, CheckParameter | undefined>> = operation?.policy.parameterErrors ?? {};
  // Throws a more helpful problem.
  parameterErrors[name]?.(target.search.getAll(name));
  return new Problem('invalid_parameter', `The parameter ${name} ${error?.message ?? 'is not valid'}.`);
}

/**
 * Refuses malformed percent-encoding, which makes decodeURIComponent throw a URIError.
 *
 * @throws Problem invalid_parameter
 */
function requireDecodable({ path, querystring }: Target): void {
  for (const [part, text] of Object.entries({ path, query: querystring })) {
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

function queryNames({ parameters = [] }: Described): readonly string[] {
  return parameters.flatMap((each) => ('in' in each && each.in === 'query' ? [each.name] : []));
}

/**
 * Converts the query to an object. A repeated parameter becomes an array, which the schema of no parameter accepts.
 *
 * @param names - those of the contract; others, which can be thousands, are ignored
 */
function queryObject(search: URLSearchParams, names: ReadonlySet<string>): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = {};
  for (const name of names) {
    const [value, ...others] = search.getAll(name);
    if (value !== undefined) query[name] = others.length === 0 ? value : [value, ...others];
  }
  return query;
}
