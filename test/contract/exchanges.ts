import { generateApiKey } from '../../src/keys/api-key.js';
import { addresses } from '../support/http/addresses.js';
import {
  child,
  codesOf,
  document,
  documentsBeside,
  operationResponses,
  type Node,
  type OperationResponse,
} from './document/document.js';

/** A place to send requests to, and a key for it. */
export interface Endpoint {
  /** `http:` or `https:`, without a slash at the end. A path is put before the contract's paths. */
  readonly url: string;
  readonly key: string;
}

/** A sound deployment, and others that answer with an error. */
export interface Target extends Endpoint {
  /** A title that its catalogue has. */
  readonly titleId: string;
  /** The name of a file of its published copies. */
  readonly copyFile: string;
  /** A key that was revoked. */
  readonly revokedKey: string;
  /** A key whose limits are used up. */
  readonly exhausted: Endpoint;
  /** An unknown key, at a deployment where too many keys from here have failed. */
  readonly guessing: Endpoint;
  /** A deployment whose database lacks what the operation reads. */
  readonly damaged: (operationId: string) => Endpoint;
  /** A deployment that has published no copy. */
  readonly empty: Endpoint;
  /** A deployment whose database cannot be reached. */
  readonly down: Endpoint;
  /** A proxy that spoils every request so that the answer has this code. */
  readonly spoiled: (code: string) => Endpoint;
}

/** One request that provokes one documented response. */
export interface Exchange {
  /** `getChanges 400 missing_since`; no two are the same. */
  readonly name: string;
  readonly operationId: string;
  readonly status: number;
  /** The error's code; undefined when the response is no error. */
  readonly code: string | undefined;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Whether `If-None-Match` has the `ETag` of an earlier answer, which is requested first. */
  readonly revalidates: boolean;
}

/** How an exchange differs from a plain request to the operation that is answered with 200. */
interface Variant {
  /** Distinguishes it from the others of the same status. */
  readonly label?: string;
  readonly code?: string;
  readonly endpoint?: Endpoint;
  readonly method?: string;
  /** The address, in place of the usual one. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly revalidates?: boolean;
}

/** In seconds. */
const HOUR = 3_600;
const DAY = 24 * HOUR;

/** A time in the past, as `since` takes it. */
const seconds = (daysAgo: number): string => (Date.now() / 1000 - daysAgo * DAY).toFixed(6);

const JSON_CONTENT = { 'content-type': 'application/json' };

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** Malformed percent-encoding. */
const MALFORMED = '%zz';

/**
 * Plans a request for every response that the contract and the documents beside it list. A status with several codes has
 * one for each code, and a 200 has one for each way to send the key.
 */
export function planExchanges(target: Target): Exchange[] {
  return [document, ...documentsBeside]
    .flatMap((each) => operationResponses(each))
    .flatMap((response) => {
      const variants = variantsOf(response, target);
      return variants.map((variant) => exchangeOf(response, variant, target));
    });
}

function exchangeOf(response: OperationResponse, variant: Variant, target: Target): Exchange {
  const { operationId, method, status } = response;
  const endpoint = variant.endpoint ?? target;
  const isReport = operationId === 'revokeLeakedKey';
  const usualHeaders = isReport ? JSON_CONTENT : bearer(endpoint.key);
  const label = variant.label ?? variant.code;
  return {
    name: [operationId, status, label].filter((part) => part !== undefined).join(' '),
    operationId,
    status: Number(status),
    code: variant.code,
    method: variant.method ?? method,
    url: `${endpoint.url}${variant.path ?? usualPath(response, target)}`,
    headers: variant.headers ?? usualHeaders,
    body: variant.body ?? (isReport ? JSON.stringify({ key: generateApiKey().key }) : undefined),
    revalidates: variant.revalidates ?? false,
  };
}

/** The address that is answered with 200. */
function usualPath({ operationId, path }: OperationResponse, { titleId, copyFile }: Target, daysAgo = 29): string {
  const ofContract = addresses({ title_id: titleId, since: seconds(daysAgo) });
  return ofContract[operationId] ?? path.replace('{name}', copyFile);
}

function variantsOf(response: OperationResponse, target: Target): Variant[] {
  const { operationId, path: template, status } = response;
  const path = usualPath(response, target);
  const isReport = operationId === 'revokeLeakedKey';
  const [code] = codesOf(response.response);
  const single = (variant: Variant): Variant[] => [{ ...variant, ...(code !== undefined && { code }) }];
  switch (status) {
    case '200':
      return isReport
        ? [{ label: 'key' }, { label: 'matches', body: JSON.stringify([{ token: generateApiKey().key }]) }]
        : successes(operationId, path, target.key);
    case '206':
      return [{ headers: { ...bearer(target.key), range: 'bytes=1-2' } }];
    case '304':
      // An empty page from weeks ago is never the same twice: its next_since follows the clock.
      return [{ path: usualPath(response, target, HOUR / DAY), revalidates: true }];
    case '400':
      return [...badRequests(operationId, template, path), spoiled('malformed_request', target)];
    case '401':
      return [
        { code: 'missing_api_key', headers: {} },
        { code: 'invalid_api_key', headers: bearer(target.revokedKey) },
      ];
    case '404':
      return operationId === 'getManifest'
        ? single({ endpoint: target.empty })
        : single({ path: withId(template, template.includes('{name}') ? 'no.ndjson.gz' : 'nothing-has-this-id') });
    case '405':
      return single({ method: isReport ? 'PUT' : 'POST' });
    case '413':
      return isReport ? largeReports(code) : [spoiled(String(code), target)];
    case '408':
    case '431':
      return [spoiled(String(code), target)];
    case '415':
      return single({ headers: { 'content-type': 'text/plain' } });
    case '416':
      return single({ headers: { ...bearer(target.key), range: 'bytes=999999999-' } });
    case '429':
      return isReport
        ? single({ endpoint: target.guessing })
        : [...single({ endpoint: target.exhausted }), ...single({ endpoint: target.guessing, label: 'failures' })];
    case '500':
      return single({ endpoint: target.damaged(operationId) });
    case '503':
      return single({ endpoint: target.down });
    default:
      throw new Error(`no request provokes ${operationId} ${status}`);
  }
}

function largeReports(code: string | undefined): Variant[] {
  const contents = { bytes: { key: 'x'.repeat(70_000) }, matches: Array.from({ length: 301 }, () => ({ token: '' })) };
  return Object.entries(contents).map(([label, content]) => ({
    label,
    body: JSON.stringify(content),
    ...(code !== undefined && { code }),
  }));
}

/** A request that is answered before its operation is looked up. */
function spoiled(code: string, target: Target): Variant {
  return { code, endpoint: target.spoiled(code) };
}

function successes(operationId: string, path: string, key: string): Variant[] {
  const schemes = child(child(document, 'components'), 'securitySchemes');
  const requests = [
    ...Object.keys(schemes).map((label) => ({ label, ...sentBy(child(schemes, label), path, key) })),
    // No scheme, so that no generated client puts a key into addresses.
    { label: 'api_key', ...sentBy({ in: 'query', name: 'api_key' }, path, key) },
  ];
  const emptyPage = { label: 'empty page', path: `${path.split('?')[0] ?? ''}?since=${seconds(0)}` };
  return operationId === 'getChanges' ? [...requests, emptyPage] : requests;
}

/** How a request sends the key by a security scheme. */
function sentBy({ type, in: place, name }: Node, path: string, key: string): Variant {
  if (type === 'http') return { headers: bearer(key) };
  if (place === 'header') return { headers: { [String(name)]: key } };
  return { headers: {}, path: `${path}${path.includes('?') ? '&' : '?'}${String(name)}=${encodeURIComponent(key)}` };
}

function badRequests(operationId: string, template: string, path: string): Variant[] {
  const code = 'invalid_parameter';
  if (operationId === 'revokeLeakedKey') return [{ code, body: '{}' }];
  if (template.startsWith('/copies/')) return [];
  if (operationId === 'getChanges') {
    return [
      { code: 'missing_since', path: template },
      { code: 'invalid_since', path: `${template}?since=${Date.now()}` },
      { code: 'since_out_of_window', path: `${template}?since=${seconds(31)}` },
      { code, path: `${path}&x=${MALFORMED}` },
    ];
  }
  if (!template.includes('{')) return [{ code, path: `${path}?x=${MALFORMED}` }];
  return [
    { code, path: withId(template, 'no.id.has.dots') },
    { code, label: 'malformed path', path: withId(template, MALFORMED) },
  ];
}

/** @param id - in place of each parameter of the path */
function withId(template: string, id: string): string {
  return template.replace(/\{\w+\}/g, id);
}
