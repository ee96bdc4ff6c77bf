import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ERROR_CODES, problemType, type ErrorCode } from '../../src/errors.js';
import { EXAMPLE_ORIGIN } from '../../src/http/probes/recent-examples.js';
import { QUOTA_EXCEEDED } from '../../src/http/response/rate-limit-fields.js';
import { errorsOf } from './document/conformance.js';
import {
  child,
  document,
  documentsBeside,
  exampleSites,
  nodesWithin,
  operationResponses,
  problemExamplesOf,
  resolve,
  schemasWithin,
  type Node,
} from './document/document.js';
import { execute, type Ended } from '../support/programs/execute.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The documents beside their handlers, which refer to the contract. */
const DESCRIPTIONS = ['src/http/leaked-keys/openapi-leaked-keys.yaml', 'src/http/copies/openapi-copies.yaml'];

/** Members that only problems of one code have, as their descriptions say. */
const OPTIONAL = ['oldest_since', 'violated-policies'];

/** Runs Redocly in the checkout, offline. */
function redocly(...args: string[]): Promise<Ended> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  return execute(`${ROOT}/node_modules/.bin/redocly`, args, ROOT, env);
}

describe('openapi.yaml', () => {
  it("every document of the contract passes Redocly's strict rules without a warning", async () => {
    const files = ['openapi.yaml', ...DESCRIPTIONS];
    const config = '.config/redocly.yaml';
    const { code, stdout, stderr } = await redocly('lint', '--config', config, '--format=json', ...files);
    assert.ok(stdout.startsWith('{'), `${stdout}${stderr}`);
    // One report after the other.
    const reports = JSON.parse(`[${stdout.replaceAll(/^\}\{/gm, '},{')}]`) as { totals: unknown; problems: unknown }[];
    const clean = { totals: { errors: 0, warnings: 0, ignored: 0 }, problems: [] };
    assert.deepEqual(
      { code, reports: reports.map(({ totals, problems }) => ({ totals, problems })) },
      { code: 0, reports: files.map(() => clean) },
    );
  });

  it('the contract has nothing that public generators turn into code that fails or leaks the key', async () => {
    const components = child(document, 'components');
    for (const { format, pattern, maxLength, enum: values = [] } of nodesWithin(document)) {
      // Python, Java and C# would check a date as if it were text.
      if (format === 'date-time') assert.deepEqual([pattern, maxLength], [undefined, undefined]);
      assert.ok(!(values as unknown[]).some((value) => /["'\\]/.test(String(value))), `quotes in ${String(values)}`);
    }
    // Generated clients throw at a value that an enumeration lacks, and codes may be added.
    const problems = Object.entries(child(components, 'schemas')).filter(([name]) => name.endsWith('Problem'));
    for (const [name, schema] of problems) {
      for (const { place, schema: part } of schemasWithin(schema as Node, name)) {
        if (/\.(type|title|status|code)$/.test(place)) assert.equal(part.enum, undefined, place);
      }
    }
    // Generated clients send the key in every way that is listed, and addresses are logged.
    const schemes = Object.values(child(components, 'securitySchemes')) as Node[];
    assert.ok(schemes.length > 0 && schemes.every(({ in: place }) => place !== 'query'));
  });

  it('every pattern is a literal that means the same in ECMAScript, Ruby, PCRE, Java, Go and Python', async () => {
    const names = (await readdir(`${ROOT}/generated`)).filter((name) => name.endsWith('.json'));
    const documents = await Promise.all(names.map((name) => readFile(`${ROOT}/generated/${name}`, 'utf8')));
    const parsed = documents.map((text) => JSON.parse(text) as unknown);
    const patterns = [...nodesWithin(parsed)].map(({ pattern }) => pattern).filter((it) => typeof it === 'string');
    assert.notEqual(patterns.length, 0);
    for (const pattern of patterns) {
      // A slash ends a literal in Ruby and PHP, and what follows # may be code in Ruby.
      assert.match(pattern, /^\^[ -~]*\$$/, 'printable ASCII, the whole text');
      assert.doesNotMatch(pattern, /[/\\]|#[{$@]/, 'no delimiters, and classes in place of escapes');
      assert.doesNotMatch(pattern, /\(\?|[*+?}]\+|[*+?}]\?|\[\[|\[\^?\]|&&|--|~~|\|\|/, 'only common operators');
      assert.doesNotThrow(() => new RegExp(pattern, 'u'), pattern);
    }
  });

  it('every operation has only what dispatch reads: plain values of the path and the query, and optional header fields', () => {
    for (const path of Object.values(child(document, 'paths')) as Node[]) {
      for (const { requestBody, parameters = [] } of Object.values(path) as Node[]) {
        assert.equal(requestBody, undefined);
        for (const { name, in: place, required, explode, schema } of (parameters as Node[]).map(resolve)) {
          assert.ok(place === 'path' || place === 'query' || (place === 'header' && required !== true), String(name));
          assert.ok(
            explode === undefined && schema !== undefined && resolve(schema as Node).type !== 'array',
            String(name),
          );
        }
      }
    }
  });

  it('the generated documents are those of the contract and of the documents beside it', async () => {
    const text = await readFile(`${ROOT}/generated/openapi.json`, 'utf8');
    // As text, since the order counts too.
    assert.equal(JSON.stringify(JSON.parse(text)), JSON.stringify(document), 'run make generate');
    const folder = await temporaryFolder();
    const bundled = await redocly('bundle', ...DESCRIPTIONS, '--ext', 'json', '--output', folder);
    assert.equal(bundled.code, 0, bundled.stderr);
    for (const name of await readdir(folder)) {
      const [made, kept] = await Promise.all([readFile(`${folder}/${name}`), readFile(`${ROOT}/generated/${name}`)]);
      assert.equal(made.toString(), kept.toString(), 'run make generate');
    }
  });

  it('every parameter, header and body has an example, which is valid against its schema', () => {
    let checked = 0;
    for (const { pointer, schema, examples } of exampleSites()) {
      assert.notEqual(examples.length, 0, `${pointer} has no example`);
      for (const [name, value] of examples) {
        assert.deepEqual(errorsOf(schema, value), [], `${pointer}, ${name}`);
        checked += 1;
      }
    }
    assert.ok(checked > Object.keys(ERROR_CODES).length, `only ${checked} examples were found`);
  });

  it('every property of every body is required and described', () => {
    let checked = 0;
    for (const { operationId, status, response } of operationResponses()) {
      for (const media of Object.values(child(response, 'content')) as Node[]) {
        for (const { place, schema } of schemasWithin(child(media, 'schema'), `${operationId} ${status}`)) {
          const properties = Object.entries(child(schema, 'properties'));
          const expected = properties.map(([name]) => name).filter((name) => !OPTIONAL.includes(name));
          assert.deepEqual(((schema.required ?? []) as string[]).toSorted(), expected.toSorted(), place);
          for (const [name, property] of properties) {
            assert.ok(resolve(property as Node).description, `${place}.${name} has no description`);
            checked += 1;
          }
        }
      }
    }
    assert.notEqual(checked, 0);
  });

  it('the example of each error has the code, status and title of the service, and its response describes the code', () => {
    const codes = new Set<string>();
    const responses = [document, ...documentsBeside].flatMap((each) => operationResponses(each));
    for (const { operationId, status, response } of responses) {
      const place = `${operationId} ${status}`;
      const problems = problemExamplesOf(response);
      assert.equal(problems.length > 0, Number(status) >= 400, place);
      for (const example of problems) {
        const code = String(example.code);
        const shown = { code: example.code, status: example.status, title: example.title };
        assert.deepEqual(shown, { code, ...ERROR_CODES[code as ErrorCode] }, place);
        assert.equal(String(example.status), status);
        const type = problemType(code as ErrorCode, EXAMPLE_ORIGIN);
        assert.equal(example.type, code === 'rate_limit_exceeded' ? QUOTA_EXCEEDED : type);
        assert.ok(String(response.description).includes(`\`${code}\``), `${place} does not describe ${code}`);
        codes.add(code);
      }
    }
    assert.deepEqual([...codes].toSorted(), Object.keys(ERROR_CODES).toSorted());
  });

  it('the contract lists the known codes of the service, to which codes can be added', () => {
    const { code } = child(child(child(child(document, 'components'), 'schemas'), 'Problem'), 'properties') as {
      code: Node;
    };
    assert.deepEqual((code['x-extensible-enum'] as string[]).toSorted(), Object.keys(ERROR_CODES).toSorted());
  });
});
