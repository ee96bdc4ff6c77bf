import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import openapiTypeScript, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { createSourceCompiler } from './compiler.js';
import { bodyFields, contract, groupsOf, withAdded, withTypeChanged, type BodyField, type Contract } from './drifts.js';

const GENERATED = 'generated/openapi.d.ts';
const SOURCES = readdirSync(new URL('../../src/api/', import.meta.url)).map((name) => `src/api/${name}`);

const compiler = createSourceCompiler();

const handlerOf = (operation: string): string => `src/api/${operation}.ts`;

/** Compiles the handlers with the types of a contract. Returns the errors. */
async function errorsUnder(changed: Contract): Promise<string[]> {
  const types = astToString(await openapiTypeScript(changed as unknown as OpenAPI3));
  return compiler.errors(SOURCES, { [GENERATED]: types });
}

const handlersOf = (fields: readonly BodyField[]): string[] =>
  fields.flatMap(({ operations }) => [...operations].map(handlerOf)).toSorted();

const describeGroup = (fields: readonly BodyField[]): string =>
  fields.map(({ owner, name }) => `${owner.join('/')} ${name}`).join(', ');

/** The files that have errors. */
function filesOf(lines: readonly string[]): string[] {
  return [...new Set(lines.map((line) => line.slice(0, line.indexOf(':'))))];
}

describe('the handlers of the operations', () => {
  it('the handlers compile with the contract', async () => {
    assert.deepEqual(await errorsUnder(contract()), []);
  });

  it('an operation of the contract without a handler is an error', async () => {
    const changed = contract();
    const { get } = changed.paths['/api/v1/stats'] ?? {};
    changed.paths['/api/v1/people'] = { get: { ...get, operationId: 'getPeople' } };
    const [error = '', ...others] = await errorsUnder(changed);
    assert.match(error, /^src\/api\/index\.ts: TS2741: Property 'getPeople' is missing in type /);
    assert.deepEqual(others, []);
  });

  it('a handler without an operation of the contract is an error', async () => {
    const changed = contract();
    delete changed.paths['/api/v1/me'];
    const [inHandler = '', inMap = '', ...others] = await errorsUnder(changed);
    assert.match(inHandler, /^src\/api\/getMe\.ts: TS2345: Argument of type '"getMe"' is not assignable to /);
    assert.match(inMap, /^src\/api\/index\.ts: TS2353: .*'getMe' does not exist in type /);
    assert.deepEqual(others, []);
  });

  it('a path parameter with another name is an error', async () => {
    const changed = contract();
    const parameters = changed.paths['/api/v1/titles/{title_id}']?.get?.parameters as { name: string }[];
    for (const parameter of parameters) if (parameter.name === 'title_id') parameter.name = 'id';
    const [error = '', ...others] = await errorsUnder(changed);
    assert.match(error, /^src\/api\/getTitle\.ts: TS2339: Property 'title_id' does not exist /);
    assert.deepEqual(others, []);
  });

  it('a query parameter with another name is an error where a handler explains its errors', async () => {
    const changed = contract();
    const parameters = changed.paths['/api/v1/changes']?.get?.parameters as { name: string }[];
    for (const parameter of parameters) if (parameter.name === 'since') parameter.name = 'after';
    const [error = '', ...others] = await errorsUnder(changed);
    assert.match(error, /^src\/api\/getChanges\.ts: TS2353: .*'since' does not exist in type /);
    assert.deepEqual(others, []);
  });

  it('a field with another type is an error, for every field of every answer', async () => {
    const fields = bodyFields();
    assert.ok(fields.length > 25, `only ${fields.length} fields were found`);
    for (const group of groupsOf(fields)) {
      assert.deepEqual(filesOf(await errorsUnder(withTypeChanged(group))), handlersOf(group), describeGroup(group));
    }
  });

  it('one more required field is an error, in every object of every answer', async () => {
    const objects = new Map(bodyFields().map((field) => [field.owner.join('/'), field]));
    for (const group of groupsOf(objects.values())) {
      const lines = await errorsUnder(withAdded(group, { name: 'added', required: true }));
      assert.deepEqual(filesOf(lines), handlersOf(group), describeGroup(group));
      for (const line of lines) assert.match(line, /Property 'added' is missing in type /);
    }
  });

  it('one more optional field is no error, in all objects of all answers', async () => {
    const objects = new Map(bodyFields().map((field) => [field.owner.join('/'), field]));
    assert.deepEqual(await errorsUnder(withAdded([...objects.values()], { name: 'added', required: false })), []);
  });
});
