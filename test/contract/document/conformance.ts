import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import { child, document, documentsBeside, operationResponses, problemsOf, resolve, type Node } from './document.js';

/** An answer, its content decoded. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
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

const ajv = new Ajv({ strict: true, strictRequired: true, allErrors: true });
formats.default(ajv);
ajv.addVocabulary(['example', 'components', 'x-extensible-enum']);
const validators = new Map<Node, ValidateFunction>();
const responses = [document, ...documentsBeside].flatMap((each) => operationResponses(each));

/**
 * Compares an answer with the response that it should be: status, media type to the letter, headers and body. All
 * required headers must be present, each with a value that its schema allows.
 *
 * @returns every deviation, each with its place; none if the answer is as documented
 */
export function deviations({ operationId, status, code }: Expectation, answer: Answer): string[] {
  const documented = responses.filter((response) => response.operationId === operationId);
  const response = documented.find((candidate) => candidate.status === String(status))?.response;
  if (response === undefined) throw new Error(documentsNot(operationId, status));
  if (answer.status !== status) {
    const known = documented.some((candidate) => candidate.status === String(answer.status));
    const received = memberOf(parsed(answer.body), 'code');
    return [
      `status ${answer.status} instead of ${status}` +
        (known ? '' : `; ${documentsNot(operationId, answer.status)}`) +
        (typeof received === 'string' ? ` (${received})` : ''),
    ];
  }
  return [...headerDeviations(response, answer, code), ...contentDeviations(response, answer, code)];
}

/**
 * Compares an answer with the response of the operation that has its status.
 *
 * @param isHead - whether the method was HEAD, so that the content may be missing
 * @returns every deviation, each with its place
 */
export function deviationsFrom(operationId: string, answer: Answer, isHead = false): string[] {
  const { status, body } = answer;
  const documented = responses.find((it) => it.operationId === operationId && it.status === String(status));
  if (documented === undefined) return [`${documentsNot(operationId, status)}: ${body}`];
  if (isHead && body === '') return headerDeviations(documented.response, answer, undefined);
  const received = status < 400 ? undefined : memberOf(parsed(body), 'code');
  const code = typeof received === 'string' ? received : undefined;
  return [
    ...headerDeviations(documented.response, answer, code),
    ...contentDeviations(documented.response, answer, code),
  ];
}

/** Header fields of every HTTP message. */
const OF_HTTP = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'];

/**
 * @returns the header fields that the documented response with this status does not have. Another deployment, or a
 *   proxy before it, may add some
 */
export function undocumentedFields(operationId: string, { status, headers }: Answer): string[] {
  const documented = responses.find((it) => it.operationId === operationId && it.status === String(status));
  const names = Object.keys(child(documented?.response ?? {}, 'headers')).map((name) => name.toLowerCase());
  return Object.keys(headers).filter((name) => !names.includes(name) && !OF_HTTP.includes(name));
}

function documentsNot(operationId: string, status: number): string {
  return `${operationId} documents no status ${status}`;
}

const LATER_FAILURES = ['internal_error', 'service_unavailable'];

/** A header of a response. */
interface Header {
  readonly required?: boolean;
  readonly schema: Node;
}

function headerDeviations(response: Node, { headers }: Answer, code: string | undefined): string[] {
  const documented = child(response, 'headers');
  return Object.keys(documented).flatMap((name) => {
    const { required = false, schema } = resolve(child(documented, name)) as unknown as Header;
    const value = headers[name.toLowerCase()];
    // The optional fields of a problem are those of a checked key. Later failures may come before or after the plan
    // is read.
    const isAbsent = !required && code === 'malformed_request';
    const isExpected = required || (code !== undefined && !isAbsent && !LATER_FAILURES.includes(code));
    if (value === undefined) return isExpected ? [`header ${name} is missing`] : [];
    if (isAbsent) return [`header ${name} is present although the code is ${code}`];
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

  if (!mediaType.endsWith('json')) return typeDeviations;
  const value = parsed(body);
  if (value === undefined) return [...typeDeviations, 'body is not JSON'];
  const schema = child(child(child(response, 'content'), mediaType), 'schema');
  const bodyDeviations = errorsOf(schema, value).map(describe);
  if (code !== undefined) bodyDeviations.push(...problemDeviations(response, value, code));
  if (code !== undefined && memberOf(value, 'request_id') !== headers['x-request-id']) {
    bodyDeviations.push('body/request_id differs from the header X-Request-Id');
  }
  return [...typeDeviations, ...bodyDeviations];
}

/** A problem must have all members of the example of its code, and the same values in what identifies it. */
function problemDeviations(response: Node, value: unknown, code: string): string[] {
  const example = problemsOf(response).get(code);
  if (example === undefined) return [`body/code is "${code}", which is not documented here`];
  return Object.keys(example).flatMap((name) => {
    const received = memberOf(value, name);
    if (received === undefined) return [`body/${name} is missing`];
    const isFixed = ['type', 'title', 'status', 'code'].includes(name);
    if (!isFixed || withoutOrigin(received) === withoutOrigin(example[name])) return [];
    return [`body/${name} is ${JSON.stringify(received)} instead of ${JSON.stringify(example[name])}`];
  });
}

/** An address of the service without the part in which deployments differ. */
function withoutOrigin(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/^https?:\/\/[^/]+(?=\/docs#)/, '') : value;
}

/** The schema of the body of a documented response; empty if it has none. */
export function responseSchema({ operationId, status }: Expectation): Node {
  const documented = responses.find((it) => it.operationId === operationId && it.status === String(status));
  const [content = {}] = Object.values(child(documented?.response ?? {}, 'content'));
  return child(content as Node, 'schema');
}

/** Validates a value against a schema of the document. */
export function errorsOf(schema: Node, value: unknown): ErrorObject[] {
  let validate = validators.get(schema);
  if (validate === undefined) {
    validate = ajv.compile({ ...schema, components: document.components });
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

/** Returns undefined for text that is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
