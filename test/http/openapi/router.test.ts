import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import {
  OpenAPIBackend,
  OpenAPIRouter,
  type Document,
  type Operation,
  type ParsedRequest,
  type Request,
} from 'openapi-backend';
import { load } from 'js-yaml';
import { ContractRouter } from '../../../src/http/openapi/router.js';

const PARAMETER = { in: 'path', required: true, schema: { type: 'string' } } as const;

/** Paths that several operations could be for. */
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
  return {
    openapi: '3.0.3',
    info: { title: 'T', version: '1' },
    security: [{ one: [] }, { other: [] }],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, methods]) => [
        path,
        Object.fromEntries(
          methods.map((method) => [
            method,
            {
              operationId: `${method} ${path}`,
              parameters: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({ ...PARAMETER, name })),
              responses: {},
            },
          ]),
        ),
      ]),
    ),
  };
}

/** What a router makes of a request: the operation and the parameters, or its complaint. */
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
  let contract: Document;

  before(async () => {
    const text = await readFile(new URL('../../../openapi.yaml', import.meta.url), 'utf8');
    const backend = new OpenAPIBackend({
      definition: load(text) as Document,
      ajvOpts: { formats: { 'date-time': true } },
    });
    await backend.init();
    contract = backend.definition;
  });

  function routers(definition: Document): [own: OpenAPIRouter, plain: OpenAPIRouter] {
    return [new ContractRouter(definition), new OpenAPIRouter({ definition, ignoreTrailingSlashes: false })];
  }

  for (const [what, definitionOf, pieces] of [
    [
      'the contract',
      () => contract,
      ['/', 'api', 'v1', 'stats', 'me', 'titles', 'blade', '%41', '%2F', '{title_id}', '.'],
    ],
    ['crossing paths', () => CROSSING, ['/', 'a', 'b', 'c', '.json', 'xjson', '{x}', '{y}', '%C3%A4']],
  ] as const) {
    it(`decides as openapi-backend's router does: ${what}`, () => {
      const definition = definitionOf();
      const [own, plain] = routers(definition);
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
      // Every operation has been met, and both complaints.
      assert.equal(seen.size, plain.getOperations().length + 2);
    });
  }

  it('lists the same operations, without their security, which is checked before', () => {
    const [own, plain] = routers(CROSSING);
    assert.deepEqual(
      own.getOperations(),
      plain.getOperations().map((operation) => ({ ...operation, security: [] })),
    );
    assert.equal(own.getOperation('get /a'), own.getOperations()[1]);
    assert.equal(own.getOperation('get /none'), undefined);
  });

  it('refuses a contract with parameters that it would not read', () => {
    for (const parameter of [
      { in: 'cookie', name: 'c' },
      { in: 'header', name: 'h', required: true },
      { in: 'query', name: 'q', explode: false, schema: { type: 'string' } },
      { in: 'query', name: 'q', schema: { type: 'array', items: { type: 'string' } } },
      { in: 'query', name: 'q', content: { 'application/json': {} } },
    ]) {
      const definition = toDocument({ '/a': ['get'] });
      const { get } = definition.paths?.['/a'] ?? {};
      assert.ok(get);
      get.parameters = [parameter as never];
      assert.throws(
        () => new ContractRouter(definition),
        /^Error: get \/a has parameters or content that dispatch does not read$/,
      );
    }
  });
});
