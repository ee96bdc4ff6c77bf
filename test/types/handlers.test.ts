import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import openapiTypeScript, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { createSourceCompiler, type Replacements } from './compiler.js';
import { bodyFields, contract, withAdded, withRenamed, withTypeChanged, type Contract } from './drifts.js';

const GENERATED = 'generated/openapi.d.ts';
const MAP = 'src/api/index.ts';
const SOURCES = readdirSync(new URL('../../src/api/', import.meta.url)).map((name) => `src/api/${name}`);

const compiler = createSourceCompiler();

const handlerOf = (operation: string): string => `src/api/${operation}.ts`;

/** What the compiler says of the handlers when the types are generated from this contract. */
async function errorsUnder(changed: Contract): Promise<string[]> {
  const types = astToString(await openapiTypeScript(changed as unknown as OpenAPI3));
  return compiler.errors(SOURCES, { [GENERATED]: types });
}

/** The files that the errors are in. */
function filesOf(lines: readonly string[]): string[] {
  return [...new Set(lines.map((line) => line.slice(0, line.indexOf(':'))))];
}

/** What the compiler says when one operation has this as its handler. */
function errorsWith(operation: string, parameters: string, body: string): string[] {
  const handler = `import { operation } from './operation.js';
export const ${operation} = operation('${operation}', { cache: 'never' }, async (${parameters}) => { ${body} });`;
  const replacements: Replacements = { [handlerOf(operation)]: handler };
  return compiler.errors(SOURCES, replacements);
}

describe('the handlers of the operations', () => {
  it('compile with the contract as it is', async () => {
    assert.deepEqual(await errorsUnder(contract()), []);
  });

  describe('do not compile', () => {
    it('when the contract has an operation that has no handler', async () => {
      const changed = contract();
      const { get } = changed.paths['/api/v1/stats'] ?? {};
      changed.paths['/api/v1/people'] = { get: { ...get, operationId: 'getPeople' } };
      const [error = '', ...others] = await errorsUnder(changed);
      assert.match(error, /^src\/api\/index\.ts: TS2741: Property 'getPeople' is missing in type /);
      assert.deepEqual(others, []);
    });

    it('when an operation has gone from the contract', async () => {
      const changed = contract();
      delete changed.paths['/api/v1/me'];
      const [inHandler = '', inMap = '', ...others] = await errorsUnder(changed);
      assert.match(inHandler, /^src\/api\/getMe\.ts: TS2345: Argument of type '"getMe"' is not assignable to /);
      assert.match(inMap, /^src\/api\/index\.ts: TS2353: .*'getMe' does not exist in type /);
      assert.deepEqual(others, []);
    });

    it('when an operation has another operationId', async () => {
      const changed = contract();
      Object.assign(changed.paths['/api/v1/me']?.get ?? {}, { operationId: 'getAccount' });
      const lines = await errorsUnder(changed);
      assert.deepEqual(filesOf(lines), [handlerOf('getMe'), MAP]);
      assert.match(lines.join('\n'), /'getMe' does not exist in type/);
    });

    it('when a path parameter has another name', async () => {
      const changed = contract();
      const parameters = changed.paths['/api/v1/titles/{title_id}']?.get?.parameters as { name: string }[];
      for (const parameter of parameters) if (parameter.name === 'title_id') parameter.name = 'id';
      const [error = '', ...others] = await errorsUnder(changed);
      assert.match(error, /^src\/api\/getTitle\.ts: TS2339: Property 'title_id' does not exist /);
      assert.deepEqual(others, []);
    });

    it('when a query parameter that an operation parameterErrors has another name', async () => {
      const changed = contract();
      const parameters = changed.paths['/api/v1/changes']?.get?.parameters as { name: string }[];
      for (const parameter of parameters) if (parameter.name === 'since') parameter.name = 'after';
      const [error = '', ...others] = await errorsUnder(changed);
      assert.match(error, /^src\/api\/getChanges\.ts: TS2353: .*'since' does not exist in type /);
      assert.deepEqual(others, []);
    });

    it('when any field of any answer has another type in the contract', async () => {
      const fields = bodyFields();
      assert.ok(fields.length > 25, `only ${fields.length} fields were found`);
      for (const field of fields) {
        const files = filesOf(await errorsUnder(withTypeChanged(field)));
        assert.deepEqual(
          files,
          [...field.operations].map(handlerOf).toSorted(),
          `${field.owner.join('/')} ${field.name}`,
        );
      }
    });

    it('when any field of any answer has another name in the contract', async () => {
      for (const field of bodyFields()) {
        const files = filesOf(await errorsUnder(withRenamed(field, 'renamed')));
        assert.deepEqual(
          files,
          [...field.operations].map(handlerOf).toSorted(),
          `${field.owner.join('/')} ${field.name}`,
        );
      }
    });

    it('when the contract requires a field more in any object of any answer', async () => {
      const objects = new Map(bodyFields().map((field) => [field.owner.join('/'), field]));
      for (const [owner, field] of objects) {
        const lines = await errorsUnder(withAdded(field, { name: 'added', required: true }));
        assert.deepEqual(filesOf(lines), [...field.operations].map(handlerOf).toSorted(), owner);
        for (const line of lines) assert.match(line, /Property 'added' is missing in type /, owner);
        // The control: what the contract allows to be absent is not asked for.
        assert.deepEqual(await errorsUnder(withAdded(field, { name: 'added', required: false })), [], owner);
      }
    });

    it('when they return anything else than the contract says', () => {
      const counts = 'movies: 1, series: 0, available_in_library: 1, people: 0, svc_collections: 0';
      const outcomes = {
        right: `return { data: { titles: 1, ${counts} } };`,
        'a field left out': `return { data: { ${counts} } };`,
        'a field of another type': `return { data: { titles: '1', ${counts} } };`,
        'a field that is null': `return { data: { titles: null, ${counts} } };`,
        'a field that may be undefined': `return { data: { titles: [1][0], ${counts} } };`,
        'without its envelope': `return { titles: 1, ${counts} };`,
        nothing: '',
        'another answer at times': `if (Date.now() > 0) return { error: 'x' }; return { data: { titles: 1, ${counts} } };`,
      };
      const found = Object.entries(outcomes).map(([what, body]) => [what, filesOf(errorsWith('getStats', '', body))]);
      const bad = handlerOf('getStats');
      assert.deepEqual(
        found,
        Object.keys(outcomes).map((what) => [what, what === 'right' ? [] : [bad]]),
      );
    });
  });
});
