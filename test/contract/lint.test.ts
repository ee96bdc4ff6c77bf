import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { ERROR_CODES } from '../../src/errors.js';
import {
  child,
  codesOf,
  document,
  exampleSites,
  operationResponses,
  resolve,
  schemasWithin,
} from './document/document.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROBLEM = 'application/problem+json';

/** The code of requests that reach no operation of the contract: the table lists it, the operations do not. */
const CODE_WITHOUT_OPERATION = 'not_found';

/** Codes of requests that are answered before the key is looked at, so that a client can meet them at every operation. */
const CODES_BEFORE_THE_KEY = [
  'content_too_large',
  'header_fields_too_large',
  'malformed_request',
  'request_timeout',
] as const;

/** Runs a program of `node_modules/.bin` in the project's folder, offline; resolves whatever its exit code. */
function run(program: string, ...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  return new Promise((done) => {
    execFile(`${ROOT}/node_modules/.bin/${program}`, args, { cwd: ROOT, env }, (error, stdout, stderr) => {
      done({ code: error ? error.code : 0, stdout, stderr });
    });
  });
}

/** What a schema, or any of its alternatives, lists in the `enum` of one of its properties. */
function enumOf(schema: Record<string, unknown>, property: string): unknown[] {
  return [...schemasWithin(schema, '')]
    .filter(({ place }) => place === `.${property}`)
    .flatMap(({ schema: found }) => found.enum as unknown[]);
}

describe('openapi.yaml', () => {
  it("passes Redocly's strict rules without a warning", async () => {
    const config = '.config/redocly.yaml';
    const { code, stdout, stderr } = await run('redocly', 'lint', '--config', config, '--format=json', 'openapi.yaml');
    assert.ok(stdout.startsWith('{'), `${stdout}${stderr}`);
    const report = JSON.parse(stdout) as { totals: unknown; problems: unknown };
    assert.deepEqual(
      { code, totals: report.totals, problems: report.problems },
      { code: 0, totals: { errors: 0, warnings: 0, ignored: 0 }, problems: [] },
    );
  });

  it("passes Spectral's rules without a hint", async () => {
    const args = ['lint', '-r', '.config/spectral.yaml', '--fail-severity', 'hint', '--quiet', 'openapi.yaml'];
    assert.deepEqual(await run('spectral', ...args), { code: 0, stdout: '', stderr: '' });
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
    ajv.addVocabulary(['discriminator', 'example', 'components']);

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
          assert.deepEqual(((schema.required ?? []) as string[]).toSorted(), properties.toSorted(), place);
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

  it('leads from each code to the one schema that has it, where a status has several schemas', () => {
    let discriminated = 0;
    for (const { operationId, status, response } of operationResponses()) {
      const schema = resolve(child(child(child(response, 'content'), PROBLEM), 'schema'));
      if (schema.oneOf === undefined) continue;
      const alternatives = schema.oneOf as Record<string, unknown>[];
      const { propertyName, mapping } = child(schema, 'discriminator');
      assert.equal(propertyName, 'code', `${operationId} ${status}`);
      const expected = alternatives.flatMap(({ $ref }) => enumOf({ $ref }, 'code').map((code) => [code, $ref]));
      assert.deepEqual(mapping, Object.fromEntries(expected), `${operationId} ${status}`);
      assert.deepEqual(Object.keys(mapping as object).length, alternatives.length);
      discriminated += 1;
    }
    assert.notEqual(discriminated, 0);
  });

  it('names an example of each error after its code, with the status and the title of that code', () => {
    const codes = new Set<string>();
    for (const { operationId, status, response } of operationResponses()) {
      const media = child(child(response, 'content'), PROBLEM);
      assert.equal(PROBLEM in child(response, 'content'), Number(status) >= 400, `${operationId} ${status}`);
      const schema = child(media, 'schema');
      const examples = child(media, 'examples');
      const documented = enumOf(schema, 'code') as (keyof typeof ERROR_CODES)[];
      assert.deepEqual(Object.keys(examples), documented, `${operationId} ${status}`);
      assert.deepEqual(
        enumOf(schema, 'title'),
        documented.map((code) => ERROR_CODES[code].title),
      );
      for (const code of documented) {
        const body = child(child(examples, code), 'value');
        const shown = { code: body.code, status: body.status, title: body.title };
        assert.deepEqual(shown, { code, ...ERROR_CODES[code] }, `${operationId} ${status}`);
        assert.equal(String(body.status), status);
        codes.add(code);
      }
    }
    assert.deepEqual([...codes, CODE_WITHOUT_OPERATION].toSorted(), Object.keys(ERROR_CODES).toSorted());
  });

  it('has the same table of error codes as the service', () => {
    const description = String(child(document, 'info').description);
    const rows = [...description.matchAll(/^\| `(\w+)` \| (\d{3}) \| ([^|]+) \| [^|]+ \|$/gm)];
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
