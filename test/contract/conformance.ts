import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { child, operationResponses, resolve, type Node } from './document.js';
import { jsonSchema } from './json-schema.js';

/** An answer as it came. */
export interface Answer {
  readonly status: number;
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Which documented response an answer should be. */
export interface Expectation {
  readonly operationId: string;
  readonly status: number;
  /** The error's code; undefined when it is no error. */
  readonly code: string | undefined;
}

const ajv = new Ajv({ strict: true, allErrors: true });
formats.default(ajv);
const validators = new Map<Node, ValidateFunction>();
const responses = operationResponses();

/**
 * Holds an answer against the contract: its status, its media type to the letter, its headers (all that are required,
 * each with a value that its schema allows) and its body.
 *
 * @returns every deviation, each with its place; none when the answer is as documented
 */
export function deviations({ operationId, status, code }: Expectation, answer: Answer): string[] {
  const documented = responses.filter((response) => response.operationId === operationId);
  const response = documented.find((candidate) => candidate.status === String(status))?.response;
  if (response === undefined) throw new Error(`${operationId} documents no status ${status}`);
  if (answer.status !== status) {
    const known = documented.some((candidate) => candidate.status === String(answer.status));
    const received = memberOf(parseOr(undefined, answer.body), 'code');
    return [
      `status ${answer.status} instead of ${status}` +
        (known ? '' : `; ${operationId} documents no status ${answer.status}`) +
        (typeof received === 'string' ? ` (${received})` : ''),
    ];
  }
  return [...headerDeviations(response, answer), ...contentDeviations(response, answer, code)];
}

function headerDeviations(response: Node, { headers }: Answer): string[] {
  const documented = child(response, 'headers');
  return Object.keys(documented).flatMap((name) => {
    const { required, schema } = resolve(child(documented, name)) as { required?: boolean; schema: Node };
    const value = headers[name.toLowerCase()];
    if (value === undefined) return required === true ? [`header ${name} is missing`] : [];
    const text = String(value);
    return errorsOf(schema, isNumeric(schema) ? toNumber(text) : text).map(
      ({ message = '' }) => `header ${name} is ${JSON.stringify(value)}: it ${message}`,
    );
  });
}

function contentDeviations(response: Node, { headers, body }: Answer, code: string | undefined): string[] {
  const [mediaType] = Object.keys(child(response, 'content'));
  const received = headers['content-type'];
  const typeDeviations =
    received === mediaType ? [] : [`header Content-Type is ${String(received)} instead of ${String(mediaType)}`];
  if (mediaType === undefined) return body === '' ? typeDeviations : [...typeDeviations, 'body: there should be none'];

  const value = parseOr(undefined, body);
  if (value === undefined) return [...typeDeviations, 'body is not JSON'];
  const schema = child(child(child(response, 'content'), mediaType), 'schema');
  const bodyDeviations = errorsOf(schema, value).map(describe);
  if (code !== undefined && memberOf(value, 'code') !== code) {
    bodyDeviations.push(`body/code is ${JSON.stringify(memberOf(value, 'code'))} instead of "${code}"`);
  }
  if (code !== undefined && memberOf(value, 'request_id') !== headers['x-request-id']) {
    bodyDeviations.push('body/request_id is not what the header X-Request-Id says');
  }
  return [...typeDeviations, ...bodyDeviations];
}

function errorsOf(schema: Node, value: unknown): ErrorObject[] {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(jsonSchema(schema));
    validators.set(schema, validate);
  }
  return validate(value) ? [] : (validate.errors ?? []);
}

function describe({ instancePath, keyword, message = '', params }: ErrorObject): string {
  const { missingProperty } = params as { missingProperty?: string };
  if (keyword === 'required') return `body${instancePath}/${String(missingProperty)} is missing`;
  return `body${instancePath} ${message}`;
}

function isNumeric(schema: Node): boolean {
  return ['integer', 'number'].includes(String(resolve(schema).type));
}

function toNumber(text: string): number | string {
  return /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Node)[name] : undefined;
}

function parseOr(otherwise: undefined, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return otherwise;
  }
}
