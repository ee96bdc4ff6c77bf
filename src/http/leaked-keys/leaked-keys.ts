import { hash } from 'node:crypto';
import { LONGEST_CHANGE_MS } from '../../admission/change-callers.js';
import { Problem } from '../../errors.js';
import { methodNotAllowed, serviceUnavailable } from '../response/problems.js';
import { KEY_START, parseKey } from '../../keys/api-key.js';
import { clientAddress } from '../request/client-address.js';
import { boundConcurrency, type ConcurrencyLimits } from '../request/concurrency.js';
import { rejectBody, readContent } from '../request/content.js';
import type { FailurePolicy } from '../../limits/failed-attempts.js';
import type { Middleware, RequestContext } from '../request/context.js';
import { deadline, type DeadlineParts } from '../request/deadline.js';
import { tooManyFailures } from '../response/rate-limit-fields.js';
import { acceptReport, type InTurn, type ReportParts } from './report.js';
import { isObject, parseJson } from '../../platform/text/json.js';

/** Where keys that were found are reported: by programs, and by people with a form. */
export const LEAKED_KEY_PATH = '/revoke-leaked-key';

/** The most content of a report, in bytes: some 250 matches of a scanner. */
const MAX_CONTENT = 64 * 1024;

/** The most matches of a report. */
const MAX_MATCHES = 300;

/** Texts from one address that are not keys of the service: as many as one report can have. */
export const REPORT_POLICY: FailurePolicy = { limit: MAX_MATCHES, windowSeconds: 60 };

const REPORT_LIMITS: ConcurrencyLimits = { running: 2, waiting: 100, perAddress: 25 };

export interface LeakedKeyParts extends ReportParts, DeadlineParts {
  /** Number of trusted proxies in front of the service. */
  readonly trustedProxies: number;
  /** Whether there are pages for people, which have a form at the same path. */
  readonly hasPages: boolean;
}

/** A text reported as a key, and the scanner's name for this kind of key. */
interface Match {
  readonly token: string;
  readonly type: string;
}

/**
 * Revokes the keys that programs report as JSON: one key, `{"key": "…"}`, or the matches of GitHub's secret scanning,
 * `[{"token": "…", "type": "…"}]`. GitHub signs its reports. Neither the signature nor the origin of a request is
 * checked: possession of a key is enough to revoke it. openapi-leaked-keys.yaml in this folder describes the call.
 *
 * The form for people is a page of the site.
 */
export function revokeLeakedKeys(parts: LeakedKeyParts): Middleware {
  const withDeadline = deadline(parts.requestTimeoutMs + LONGEST_CHANGE_MS);
  const bounded = boundConcurrency(REPORT_LIMITS, parts.trustedProxies);

  return async (ctx, next) => {
    if (ctx.state.target.path !== LEAKED_KEY_PATH || (parts.hasPages && isForPeople(ctx))) return next();
    if (ctx.method !== 'POST') {
      return rejectBody(ctx, () => Promise.reject(methodNotAllowed(parts.hasPages ? 'GET, HEAD, POST' : 'POST')));
    }
    if (ctx.is('json') !== 'json') {
      throw new Problem('unsupported_media_type', 'Send the key as JSON, with Content-Type: application/json.', {
        headers: { Connection: 'close' },
      });
    }
    const content = parse(await readContent(ctx, MAX_CONTENT));
    const address = clientAddress(ctx.req, parts.trustedProxies);
    const inTurn: InTurn = async (act) => {
      let result: Awaited<ReturnType<typeof act>> | undefined;
      await bounded(ctx, async () => {
        result = await act();
      });
      return result ?? Promise.reject(serviceUnavailable({}));
    };
    await withDeadline(ctx, () => answer(ctx, parts, content, address, inTurn));
  };
}

async function answer(
  ctx: RequestContext,
  parts: ReportParts,
  content: string | readonly Match[],
  address: string,
  inTurn: InTurn,
): Promise<void> {
  const matches = typeof content === 'string' ? [{ token: content, type: '' }] : content;
  const wellFormed = matches.flatMap(({ token, type }) => {
    const parsed = parseKey(token.trim());
    return parsed.form === 'key' ? [{ token, type, keyHash: parsed.hash }] : [];
  });
  const hashes = new Set(wellFormed.map(({ keyHash }) => keyHash));
  const report = await acceptReport(parts, [...hashes], address, inTurn, matches.length - wellFormed.length);
  if (report.kind === 'over_limit') throw tooManyFailures(report.state, 'Wait');
  ctx.status = 200;
  ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
  ctx.body = JSON.stringify(
    typeof content === 'string'
      ? { revoked: report.found.size > 0 }
      : wellFormed.map(({ token, type, keyHash }) => ({
          token_hash: hash('sha256', token),
          token_type: type,
          label: report.found.has(keyHash) ? 'true_positive' : 'false_positive',
        })),
  );
}

/** @throws Problem invalid_parameter, content_too_large */
function parse(text: string): string | readonly Match[] {
  const content = parseJson(text);
  if (Array.isArray(content) && content.length > MAX_MATCHES) {
    const detail = `A report must not have more than ${MAX_MATCHES} matches. Send several requests.`;
    throw new Problem('content_too_large', detail);
  }
  if (Array.isArray(content) && content.every(isMatch)) {
    return content.map(({ token, type }) => ({ token, type: typeof type === 'string' ? type : '' }));
  }
  if (isObject(content) && typeof content.key === 'string') return content.key;
  throw new Problem(
    'invalid_parameter',
    `Send a JSON object with the whole key, {"key": "${KEY_START}…"}, or an array of matches, [{"token": "${KEY_START}…"}].`,
  );
}

function isMatch(value: unknown): value is { readonly token: string; readonly type?: unknown } {
  return isObject(value) && typeof value.token === 'string';
}

/** Whether a request is for the page: it gets the page, or sends its form from a browser, which adds the origin. */
function isForPeople(ctx: RequestContext): boolean {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return true;
  return (
    ctx.method === 'POST' &&
    ctx.is('urlencoded') === 'urlencoded' &&
    (ctx.get('Sec-Fetch-Site') || ctx.get('Origin')) !== ''
  );
}
