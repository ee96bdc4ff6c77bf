import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { ERROR_CODES, type ErrorCode } from '../../src/errors.js';
import {
  child,
  codesOf,
  document,
  exampleSites,
  nodesWithin,
  operationResponses,
  problemsOf,
  resolve,
  schemasWithin,
  type Node,
} from './document/document.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Codes of requests that reach no operation of the contract: the table lists them, the operations do not. */
const CODES_WITHOUT_OPERATION = ['not_found', 'unsupported_media_type'];

/** Codes of requests that are answered before the key is looked at, so that a client can meet them at every operation. */
const CODES_BEFORE_THE_KEY = [
  'content_too_large',
  'header_fields_too_large',
  'malformed_request',
  'request_timeout',
] as const;

/** Members that only problems of one code have, as their descriptions say. */
const OPTIONAL = ['oldest_since', 'violated-policies'];

/** Runs a program of `node_modules/.bin` in the project's folder, offline; resolves whatever its exit code. */
function run(program: string, ...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  return new Promise((done) => {
    execFile(`${ROOT}/node_modules/.bin/${program}`, args, { cwd: ROOT, env }, (error, stdout, stderr) => {
      done({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

/** The text of a chapter: the description of a tag. */
function chapter(name: string): string {
  const tag = (document.tags as Node[]).find((each) => each.name === name);
  return String(tag?.description);
}

describe('openapi.yaml', () => {
  for (const file of ['openapi.yaml', 'src/http/leaked-keys/openapi.json']) {
    it(`passes Redocly's strict rules without a warning, in ${file}`, async () => {
      const config = '.config/redocly.yaml';
      const { code, stdout, stderr } = await run('redocly', 'lint', '--config', config, '--format=json', file);
      assert.ok(stdout.startsWith('{'), `${stdout}${stderr}`);
      const report = JSON.parse(stdout) as { totals: unknown; problems: unknown };
      assert.deepEqual(
        { code, totals: report.totals, problems: report.problems },
        { code: 0, totals: { errors: 0, warnings: 0, ignored: 0 }, problems: [] },
      );
    });
  }

  it("passes Spectral's rules without a hint", async () => {
    const args = ['lint', '-r', '.config/spectral.yaml', '--fail-severity', 'hint', '--quiet', 'openapi.yaml'];
    assert.deepEqual(await run('spectral', ...args), { code: 0, stdout: '', stderr: '' });
  });

  it('has nothing that public generators turn into code that fails, or that leaks the key', () => {
    const components = child(document, 'components');
    for (const schema of nodesWithin(document)) {
      const { format, pattern, maxLength, enum: values = [] } = schema;
      // Python, Java and C# would check a date as if it were text.
      if (format === 'date-time')
        assert.deepEqual({ pattern, maxLength }, { pattern: undefined, maxLength: undefined });
      assert.ok(!(values as unknown[]).some((value) => /["'\\]/.test(String(value))), `quotes in ${String(values)}`);
    }
    // A generated client throws at a value that an enumeration lacks, and codes may be added.
    for (const [name, schema] of Object.entries(child(components, 'schemas'))) {
      if (name.endsWith('Problem'))
        for (const { place, schema: part } of schemasWithin(schema as Node, name)) {
          if (/\.(type|title|status|code)$/.test(place)) assert.equal(part.enum, undefined, place);
        }
    }
    // The beginning of every generated file.
    assert.ok(Buffer.byteLength(String(child(document, 'info').description)) <= 1_500);
    // Generated clients send the key in every way that is listed.
    const schemes = child(components, 'securitySchemes');
    const listed = (document.security as Node[]).flatMap((alternative) => Object.keys(alternative));
    const inAddress = Object.keys(schemes).filter((name) => child(schemes, name).in === 'query');
    assert.equal(inAddress.length, 1);
    assert.deepEqual([...listed, ...inAddress].toSorted(), Object.keys(schemes).toSorted());
  });

  it('is what the generated types were made from', async () => {
    const args = ['openapi.yaml', '-o', 'generated/openapi.d.ts', '--check'];
    const { code, stderr } = await run('openapi-typescript', ...args);
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, 'run make generate');
  });

  it('is what the JSON was made from that servers read and serve', async () => {
    const text = await readFile(new URL('../../generated/openapi.json', import.meta.url), 'utf8');
    // As texts, since the order counts too.
    assert.equal(JSON.stringify(JSON.parse(text)), JSON.stringify(document), 'run make generate');
  });

  it('gives an example of every parameter, header and body, each valid against its schema', () => {
    const ajv = new Ajv({ strict: true, strictRequired: true, allErrors: true });
    formats.default(ajv);
    ajv.addVocabulary(['example', 'components']);

    const components = document.components;
    let checked = 0;
    for (const { pointer, schema, examples } of exampleSites()) {
      assert.notEqual(examples.length, 0, `${pointer} has no example`);
      const validate = ajv.compile({ ...schema, components });
      for (const [name, value] of examples) {
        assert.ok(validate(value), `${pointer}, ${name}: ${ajv.errorsText(validate.errors)}`);
        checked += 1;
      }
    }
    // A walk that finds less than the bodies of the errors alone has lost its way.
    assert.ok(checked > Object.keys(ERROR_CODES).length, `only ${checked.toString()} examples were found`);
  });

  it('requires and describes every property of every body', () => {
    let checked = 0;
    for (const { operationId, status, response } of operationResponses()) {
      for (const media of Object.values(child(response, 'content')) as Record<string, unknown>[]) {
        for (const { place, schema } of schemasWithin(child(media, 'schema'), `${operationId} ${status}`)) {
          const properties = Object.keys(child(schema, 'properties'));
          const required = (schema.required ?? []) as string[];
          const expected = properties.filter((property) => !OPTIONAL.includes(property));
          assert.deepEqual(required.toSorted(), expected.toSorted(), place);
          for (const property of properties) {
            const { description } = resolve(child(child(schema, 'properties'), property));
            assert.ok(typeof description === 'string' && description !== '', `${place}.${property}: no description`);
            checked += 1;
          }
        }
      }
    }
    assert.notEqual(checked, 0);
  });

  it('links from a page of changes to its next page and to a title, by parameters that they have', () => {
    const page = operationResponses().find((it) => it.operationId === 'getChanges' && it.status === '200');
    const links = Object.values(child(page?.response ?? {}, 'links')) as { operationId: string; parameters: object }[];
    const operations = Object.values(child(document, 'paths')).map((path) => child(path as typeof document, 'get'));
    for (const { operationId, parameters } of links) {
      const operation = operations.find((it) => it.operationId === operationId) ?? assert.fail(operationId);
      const names = (operation.parameters as (typeof document)[]).map((parameter) => resolve(parameter).name);
      for (const name of Object.keys(parameters)) assert.ok(names.includes(name), `${operationId}: ${name}`);
    }
    assert.deepEqual(
      links.map(({ operationId }) => operationId),
      ['getChanges', 'getTitle'],
    );
  });

  it('documents on every response the headers that every response carries', () => {
    for (const { operationId, status, response } of operationResponses()) {
      for (const name of ['X-Request-Id', 'Cache-Control']) {
        const header = resolve(child(child(response, 'headers'), name));
        assert.equal(header.required, true, `${operationId} ${status}: ${name}`);
      }
    }
  });

  it('documents Vary and the limits as absent where the key was not looked at, and there alone', () => {
    const early = (code: string): boolean => (CODES_BEFORE_THE_KEY as readonly string[]).includes(code);
    for (const { operationId, status, response } of operationResponses()) {
      const place = `${operationId} ${status}`;
      const codes = codesOf(response);
      const header = (name: string) => resolve(child(child(response, 'headers'), name));
      const kinds = { isEarly: codes.some(early), isLate: codes.length === 0 || !codes.every(early) };
      if (kinds.isEarly && kinds.isLate) {
        for (const name of ['Vary', 'RateLimit-Policy', 'RateLimit']) {
          const { required, 'x-absent-with': without } = header(name);
          assert.deepEqual({ required, without }, { required: false, without: codes.filter(early) }, place);
        }
      } else if (kinds.isEarly) {
        assert.deepEqual(Object.keys(child(response, 'headers')), ['X-Request-Id', 'Cache-Control'], place);
      } else {
        assert.equal(header('Vary').required, true, place);
      }
    }
  });

  it('lists at every operation what is answered before the key is looked at', () => {
    const operations = new Map<string, string[]>();
    for (const { operationId, status, response } of operationResponses()) {
      const listed = codesOf(response).map((code) => `${code} ${status}`);
      operations.set(operationId, [...(operations.get(operationId) ?? []), ...listed]);
    }
    const expected = CODES_BEFORE_THE_KEY.map((code) => `${code} ${ERROR_CODES[code].status}`);
    for (const [operationId, listed] of operations) {
      assert.deepEqual(
        expected.filter((each) => !listed.includes(each)),
        [],
        operationId,
      );
    }
  });

  it('names an example of each error after its code, with the status and the title of that code', () => {
    const codes = new Set<string>();
    for (const { operationId, status, response } of operationResponses()) {
      const place = `${operationId} ${status}`;
      const problems = problemsOf(response);
      assert.equal(problems.size > 0, Number(status) >= 400, place);
      for (const [code, example] of problems) {
        const shown = { code: example.code, status: example.status, title: example.title };
        assert.deepEqual(shown, { code, ...ERROR_CODES[code as ErrorCode] }, place);
        assert.equal(String(example.status), status);
        assert.ok(String(response.description).includes(`\`${code}\``), `${place} does not describe ${code}`);
        codes.add(code);
      }
    }
    assert.deepEqual([...codes, ...CODES_WITHOUT_OPERATION].toSorted(), Object.keys(ERROR_CODES).toSorted());
  });

  it('lists its own version first among its versions, and each version once, the newest first', () => {
    const listed = [...chapter('Versions').matchAll(/^\| (\d+\.\d+\.\d+) \| (\d{4}-\d\d-\d\d) \|/gm)];
    assert.equal(listed[0]?.[1], child(document, 'info').version);
    const byVersion = new Intl.Collator('en', { numeric: true });
    for (const [index, [, version = '', date = '']] of listed.slice(1).entries()) {
      const [, newer = '', later = ''] = listed[index] ?? [];
      assert.ok(byVersion.compare(newer, version) > 0 && later >= date, `${newer} before ${version}`);
    }
  });

  it('has the same table of error codes as the service', () => {
    const rows = [...chapter('Errors').matchAll(/^\| `(\w+)` \| (\d{3}) \| ([^|]+) \| [^|]+ \|$/gm)];
    const table = rows.map(([, code, status, title]) => ({ code, status: Number(status), title }));
    const byCode = (a: { code: string | undefined }, b: { code: string | undefined }): number =>
      (a.code ?? '').localeCompare(b.code ?? '');
    assert.deepEqual(
      table.toSorted(byCode),
      Object.entries(ERROR_CODES)
        .map(([code, definition]) => ({ code, ...definition }))
        .toSorted(byCode),
    );
  });
});
