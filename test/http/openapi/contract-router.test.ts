import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import {
  OpenAPIRouter,
  OpenAPIValidator,
  type Document,
  type Operation,
  type ParsedRequest,
  type Request,
} from 'openapi-backend';
import { ContractRouter, ParameterValidator } from '../../../src/http/openapi/contract-router.js';
import { ROOT } from '../../support/guides.js';

const CONTRACT = JSON.parse(readFileSync(new URL('generated/openapi.json', ROOT), 'utf8')) as Document;

/** Every path of the contract, each parameter of which is text. */
const PLAIN_CONTRACT = toDocument(
  Object.fromEntries(Object.entries(CONTRACT.paths ?? {}).map(([path, item]) => [path, Object.keys(item ?? {})])),
);

/** Paths of which several may match a request. */
const CROSSING = toDocument({
  '/': ['get'],
  '/a': ['get', 'post'],
  '/a/{x}': ['get'],
  '/a/b': ['post'],
  '/{y}/b': ['get', 'delete'],
  '/a/{x}.json': ['get'],
  '/a/{x}/{y}': ['get'],
});

function toDocument(paths: Readonly<Record<string, readonly string[]>>): Document {
  const parameter = { in: 'path', required: true, schema: { type: 'string' } };
  const operation = (method: string, path: string): object => ({
    operationId: `${method} ${path}`,
    parameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({ ...parameter, name })),
    responses: {},
  });
  return {
    openapi: '3.0.3',
    info: { title: 'T', version: '1' },
    security: [{ one: [] }, { other: [] }],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, methods]) => [
        path,
        Object.fromEntries(methods.map((method) => [method, operation(method, path)])),
      ]),
    ),
  };
}

/** Returns the operation and the parameters that a router reads from a request, or its error message. */
function decide(router: OpenAPIRouter, request: Request): unknown {
  let operation: Operation;
  try {
    operation = router.matchOperation(request, true);
  } catch (error) {
    return (error as Error).message;
  }
  assert.equal(router.matchOperation(request)?.operationId, operation.operationId);
  const parsed = router.parseRequest(request, operation) as ParsedRequest<unknown, object, object, object, object>;
  const { method, path, params, query, headers, cookies } = parsed;
  return { operation: operation.operationId, method, path, params, query, headers, cookies: { ...cookies } };
}

describe('the router of the contract', () => {
  for (const [what, definition, pieces] of [
    [
      'the contract',
      PLAIN_CONTRACT,
      ['/', 'api', 'v1', 'stats', 'me', 'titles', 'blade', '%41', '%2F', '{title_id}', '.'],
    ],
    ['crossing paths', CROSSING, ['/', 'a', 'b', 'c', '.json', 'xjson', '{x}', '{y}', '%C3%A4']],
  ] as const) {
    it(`${what}: every decision is that of openapi-backend's router`, () => {
      const [own, plain] = [
        new ContractRouter(definition),
        new OpenAPIRouter({ definition, ignoreTrailingSlashes: false }),
      ];
      const known = Object.keys(definition.paths ?? {});
      const path = fc.oneof(
        fc.constantFrom(...known),
        fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((parts) => `/${parts.join('')}`),
        fc.constantFrom(...known).map((template) => template.replaceAll(/\{\w+\}/g, 'x%20y')),
      );
      const query = fc.dictionary(fc.constantFrom('since', 'x', 'y'), fc.constantFrom('1', '', 'a b'));
      const seen = new Set<unknown>();
      fc.assert(
        fc.property(fc.constantFrom('GET', 'POST', 'DELETE', 'PUT'), path, query, (method, path, query) => {
          const request = { method, path, query: { ...query }, headers: {} };
          const decision = decide(own, request);
          assert.deepEqual(decision, decide(plain, request));
          seen.add(typeof decision === 'string' ? decision : (decision as { operation: string }).operation);
        }),
        { numRuns: 2_000 },
      );
      // Every operation, and both errors.
      assert.equal(seen.size, plain.getOperations().length + 2);
      assert.deepEqual(own.getOperations(), plain.getOperations());
    });
  }
});

describe('the validator of parameters', () => {
  it("every error and every value is that of openapi-backend's validator", () => {
    const text = { type: 'string', minLength: 2, maxLength: 3 };
    const definition = toDocument({ '/a/{x}': ['get'] });
    const { get } = definition.paths?.['/a/{x}'] ?? {};
    assert.ok(get);
    get.parameters = [
      { in: 'path', name: 'x', required: true, schema: { type: 'integer', maximum: 20 } },
      { in: 'query', name: 'q', required: true, schema: { type: 'number' } },
      { in: 'query', name: 'r', schema: text },
      { in: 'header', name: 'If-None-Match', schema: text },
    ] as never;
    const router = new ContractRouter(definition);
    const options = { definition, router, coerceTypes: true, ajvOpts: { strict: false, removeAdditional: true } };
    const [own, plain] = [new ParameterValidator(options), new OpenAPIValidator(options)];
    const operation = router.getOperation('get /a/{x}') ?? assert.fail();
    const value = fc.constantFrom('', '1', '1.5', '30', 'ab', 'abcd', 'x');
    const query = fc.dictionary(fc.constantFrom('q', 'r', 'unknown'), value);
    const verdicts = new Set<string>();
    fc.assert(
      fc.property(value, query, (x, given) => {
        const validate = (validator: OpenAPIValidator): { valid: boolean; errors?: unknown; query: unknown } => {
          const request: Request = { method: 'GET', path: `/a/${x}`, query: { ...given }, headers: {} };
          const { valid, errors, coerced } = validator.validateRequest(request, operation);
          verdicts.add(errors?.[0]?.schemaPath ?? 'valid');
          // The values of a refused request are not read.
          return { valid, errors, query: valid && coerced?.query };
        };
        assert.deepEqual(validate(own), validate(plain));
      }),
      { numRuns: 1_000 },
    );
    // A valid request, and an error of each parameter.
    assert.ok(verdicts.size >= 5, [...verdicts].join(', '));
  });
});
