import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import openapiTypeScript, { astToString, COMMENT_HEADER, type OpenAPI3 } from 'openapi-typescript';
import { ROOT } from '../support/guides.js';

const read = (path: string): Promise<string> => readFile(new URL(path, ROOT), 'utf8');

describe('the generated types', () => {
  // A handler whose answer does not fit them does not compile, and no operation may lack its handler.
  it('the generated types are those of the contract', async () => {
    const contract = load(await read('openapi.yaml')) as OpenAPI3;
    const types = COMMENT_HEADER + astToString(await openapiTypeScript(contract));
    assert.equal(types, await read('generated/openapi.d.ts'), 'run make generate');
  });
});
