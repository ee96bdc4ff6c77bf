import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import openapiTypeScript, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { createSourceCompiler } from './compiler.js';
import { changedBodies, contract, objectsOfBodies, type BodyObject, type Contract } from './drifts.js';

const GENERATED = 'generated/openapi.d.ts';
const SOURCES = readdirSync(new URL('../../src/api/', import.meta.url)).map((name) => `src/api/${name}`);

const compiler = createSourceCompiler();

/** Compiles the handlers with the types of a contract. Returns the errors. */
async function errorsUnder(changed: Contract): Promise<string[]> {
  const types = astToString(await openapiTypeScript(changed as unknown as OpenAPI3));
  return compiler.errors(SOURCES, { [GENERATED]: types });
}

/** Gives a parameter another name. */
function renameParameter(changed: Contract, path: string, from: string): void {
  const parameters = changed.paths[path]?.get?.parameters as { name: string }[];
  for (const parameter of parameters) if (parameter.name === from) parameter.name = 'renamed';
}

/** Changes of the contract that the handlers do not follow, and the errors of the compiler. */
const DRIFTS: readonly (readonly [what: string, change: (changed: Contract) => void, errors: readonly RegExp[]])[] = [
  [
    'an operation of the contract without a handler',
    ({ paths }) => (paths['/api/v1/people'] = { get: { ...paths['/api/v1/stats']?.get, operationId: 'getPeople' } }),
    [/^src\/api\/index\.ts: TS2741: Property 'getPeople' is missing in type /],
  ],
  [
    'a handler without an operation of the contract',
    ({ paths }) => delete paths['/api/v1/me'],
    [
      /^src\/api\/getMe\.ts: TS2345: Argument of type '"getMe"' is not assignable to /,
      /^src\/api\/index\.ts: TS2353: .*'getMe' does not exist in type /,
    ],
  ],
  [
    'a path parameter with another name',
    (changed) => renameParameter(changed, '/api/v1/titles/{title_id}', 'title_id'),
    [/^src\/api\/getTitle\.ts: TS2339: Property 'title_id' does not exist /],
  ],
  [
    'a query parameter with another name, whose errors a handler explains',
    (changed) => renameParameter(changed, '/api/v1/changes', 'since'),
    [/^src\/api\/getChanges\.ts: TS2353: .*'since' does not exist in type /],
  ],
];

/** Groups objects so that no two of a group share an operation: each error of a group is then due to one object. */
function groupsOf(objects: readonly BodyObject[]): BodyObject[][] {
  const groups: BodyObject[][] = [];
  for (const object of objects) {
    const isApart = (other: BodyObject): boolean => ![...other.operations].some((it) => object.operations.has(it));
    const free = groups.find((group) => group.every(isApart));
    if (free) free.push(object);
    else groups.push([object]);
  }
  return groups;
}

describe('the handlers of the operations', () => {
  for (const [what, change, expected] of DRIFTS) {
    it(`${what} is an error`, async () => {
      const changed = contract();
      change(changed);
      const errors = await errorsUnder(changed);
      assert.equal(errors.length, expected.length, errors.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(errors[index] ?? '', pattern);
    });
  }

  it('a field with another type or one more required field is an error, in every object of every answer', async () => {
    const objects = objectsOfBodies();
    assert.ok(objects.length > 8, `only ${objects.length} objects were found`);
    for (const group of groupsOf(objects)) {
      const handlers = group.flatMap(({ operations }) => [...operations].map((it) => `src/api/${it}.ts`)).toSorted();
      for (const change of ['other type', 'required field'] as const) {
        const errors = await errorsUnder(changedBodies(group, change));
        const files = [...new Set(errors.map((line) => line.slice(0, line.indexOf(':'))))];
        assert.deepEqual(files, handlers, `${change}: ${group.map(({ path }) => path.join('/')).join(', ')}`);
      }
    }
  });

  it('one more optional field is no error, in all objects of all answers', async () => {
    assert.deepEqual(await errorsUnder(changedBodies(objectsOfBodies(), 'optional field')), []);
  });
});
