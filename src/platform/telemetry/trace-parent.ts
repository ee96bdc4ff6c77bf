/** The caller's part of a trace, as W3C Trace Context carries it. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: the caller's span. */
  readonly spanId: string;
  /** Whether the caller records the trace. */
  readonly isSampled: boolean;
}

/** W3C Trace Context, section 3.2.2. A later version may have further parts. */
const FORM = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads the header field `traceparent`.
 *
 * @returns undefined for none, for a malformed one, and for several: Node joins those into one malformed text
 */
export function parseTraceParent(field: string | string[] | undefined): TraceParent | undefined {
  if (typeof field !== 'string') return undefined;
  const [, version, traceId, spanId, flags, more] = FORM.exec(field) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1 };
}
