/** W3C Trace Context, section 3.2.2. A later version may have further parts. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/**
 * Reads the id of the caller's trace from the header field `traceparent`.
 *
 * @returns 32 hexadecimal digits; undefined for no field, for a malformed one, and for several: Node joins those into one
 *   malformed text
 */
export function parseTraceId(field: string | string[] | undefined): string | undefined {
  if (typeof field !== 'string') return undefined;
  const [, version, traceId, more] = FORM.exec(field) ?? [];
  return version === '00' && more !== undefined ? undefined : traceId;
}
