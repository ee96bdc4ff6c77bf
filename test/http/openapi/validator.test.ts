import assert from 'node:assert/strict';
import fc from 'fast-check';
import { OpenAPIValidator, type Document, type Operation, type Request } from 'openapi-backend';
import { ContractRouter } from '../../../src/http/openapi/router.js';
import { hasParameters, ParameterValidator } from '../../../src/http/openapi/validator.js';

const text = { type: 'string', minLength: 2, maxLength: 3 };

/** One operation with parameters of each kind that the preparation knows, and one without any. */
const DEFINITION = {
  openapi: '3.0.3',
  info: { title: 'Validation', version: '1' },
  paths: {
    '/a/{x}': {
      get: {
        operationId: 'get',
        parameters: [
          { in: 'path', name: 'x', required: true, schema: { type: 'integer', maximum: 20 } },
          { in: 'query', name: 'q', required: true, schema: { type: 'number' } },
          { in: 'query', name: 'r', schema: text },
          { in: 'header', name: 'If-None-Match', schema: text },
        ],
        responses: { 200: { description: 'ok' } },
      },
    },
    '/b': {
      get: {
        operationId: 'none',
        parameters: [{ in: 'header', name: 'If-None-Match', schema: text }],
        responses: { 200: { description: 'ok' } },
      },
    },
  },
} as unknown as Document;

const router = new ContractRouter(DEFINITION);

const OPTIONS = {
  definition: DEFINITION,
  router,
  coerceTypes: true,
  ajvOpts: { strict: false, removeAdditional: true },
};

function operation(id: string): Operation {
  const found = router.getOperation(id);
  assert.ok(found);
  return found;
}

describe('the validator of parameters', () => {
  const own = new ParameterValidator(OPTIONS);
  const plain = new OpenAPIValidator(OPTIONS);

  it("finds the same errors and makes the same values as openapi-backend's validator", () => {
    const value = fc.constantFrom('', '1', '1.5', '30', 'ab', 'abcd', 'x');
    const query = fc.dictionary(fc.constantFrom('q', 'r', 'unknown'), value);
    const verdicts = new Set<string>();
    fc.assert(
      fc.property(value, query, (x, given) => {
        const validate = (validator: OpenAPIValidator) => {
          const request: Request = { method: 'GET', path: `/a/${x}`, query: { ...given }, headers: {} };
          const { valid, errors, coerced } = validator.validateRequest(request, operation('get'));
          // What is refused is not read.
          return { valid, errors, query: valid && coerced?.query };
        };
        const verdict = validate(own);
        assert.deepEqual(verdict, validate(plain));
        verdicts.add(verdict.errors?.[0]?.schemaPath ?? 'valid');
      }),
      { numRuns: 1_000 },
    );
    // Something valid, and something wrong with each of them.
    assert.ok(verdicts.size >= 5, [...verdicts].join(', '));
  });

  it('is spared where neither path nor query has parameters', () => {
    assert.deepEqual(
      ['get', 'none'].map((id) => hasParameters(operation(id))),
      [true, false],
    );
  });
});
