import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import openapiTypeScript, { astToString, COMMENT_HEADER, type OpenAPI3 } from 'openapi-typescript';
import { createSourceCompiler } from './compiler.js';
import { changedBodies, contract, objectsOfBodies, type BodyObject, type Contract } from './drifts.js';

const GENERATED = 'generated/openapi.d.ts';
const SOURCES = readdirSync(new URL('../../src/api/', import.meta.url)).map((name) => `src/api/${name}`);

const compiler = createSourceCompiler();

/** The types that `make generate` writes for a contract, without the comment above them. */
async function typesOf(changed: Contract): Promise<string> {
  return astToString(await openapiTypeScript(changed as unknown as OpenAPI3));
}

/** Compiles the handlers with the types of a contract. Returns the errors. */
async function errorsUnder(changed: Contract): Promise<string[]> {
  return compiler.errors(SOURCES, { [GENERATED]: await typesOf(changed) });
}

/** Gives a parameter another name. */
function renameParameter(changed: Contract, path: string, from: string): void {
  const parameters = changed.paths[path]?.get?.parameters as { name: string }[];
  for (const parameter of parameters) if (parameter.name === from) parameter.name = 'renamed';
}

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

/** The files that errors are in, each once. */
function filesIn(errors: readonly string[]): string[] {
  return [...new Set(errors.map((line) => line.slice(0, line.indexOf(':'))))];
}

/** The files of the operations that answer with any of these objects. */
function handlersOf(objects: readonly BodyObject[]): string[] {
  return [...new Set(objects.flatMap(({ operations }) => [...operations].map((it) => `src/api/${it}.ts`)))].toSorted();
}

describe('the handlers of the operations', () => {
  it('the generated types are those of the contract', async () => {
    const types = COMMENT_HEADER + (await typesOf(contract()));
    assert.equal(types, await readFile(new URL(`../../${GENERATED}`, import.meta.url), 'utf8'), 'run make generate');
  });

  it('an operation or a parameter that the handlers and the contract do not share is an error', async () => {
    const more = contract();
    more.paths['/api/v1/people'] = { get: { ...more.paths['/api/v1/stats']?.get, operationId: 'getPeople' } };
    renameParameter(more, '/api/v1/titles/{title_id}', 'title_id');
    renameParameter(more, '/api/v1/changes', 'since');
    const less = contract();
    delete less.paths['/api/v1/me'];
    for (const [changed, expected] of [
      [
        more,
        [
          /^src\/api\/getChanges\.ts: TS2353: .*'since' does not exist in type /,
          /^src\/api\/getTitle\.ts: TS2339: Property 'title_id' does not exist /,
          /^src\/api\/getTitle\.ts: TS2353: .*'title_id' does not exist in type /,
          /^src\/api\/index\.ts: TS2741: Property 'getPeople' is missing in type /,
        ],
      ],
      [
        less,
        [
          /^src\/api\/getMe\.ts: TS2345: Argument of type '"getMe"' is not assignable to /,
          /^src\/api\/index\.ts: TS2353: .*'getMe' does not exist in type /,
        ],
      ],
    ] as const) {
      const errors = await errorsUnder(changed);
      assert.equal(errors.length, expected.length, errors.join('\n'));
      for (const [index, pattern] of expected.entries()) assert.match(errors[index] ?? '', pattern);
    }
  });

  it('one more required field is an error, in every object of every answer', async () => {
    const objects = objectsOfBodies();
    assert.ok(objects.length > 8, `only ${objects.length} objects were found`);
    for (const group of groupsOf(objects)) {
      const errors = await errorsUnder(changedBodies(group, 'required field'));
      assert.deepEqual(filesIn(errors), handlersOf(group), group.map(({ path }) => path.join('/')).join(', '));
    }
  });

  it('a field with another type is an error', async () => {
    const objects = objectsOfBodies();
    assert.deepEqual(filesIn(await errorsUnder(changedBodies(objects, 'other type'))), handlersOf(objects));
  });

  it('one more optional field is no error, in all objects of all answers', async () => {
    assert.deepEqual(await errorsUnder(changedBodies(objectsOfBodies(), 'optional field')), []);
  });
});
