/**
 * Every error that a client can see: its HTTP status and its fixed title. Codes are part of the contract: they are
 * never renamed and never reused. A retired code stays listed here with a remark.
 */
// oxfmt-ignore
export const ERROR_CODES = {
  malformed_request:       { status: 400, title: 'Request malformed' },
  invalid_parameter:       { status: 400, title: 'Parameter invalid' },
  missing_since:           { status: 400, title: 'Parameter since missing' },
  invalid_since:           { status: 400, title: 'Parameter since invalid' },
  since_out_of_window:     { status: 400, title: 'Parameter since too old' },
  missing_api_key:         { status: 401, title: 'API key missing' },
  invalid_api_key:         { status: 401, title: 'API key invalid' },
  not_found:               { status: 404, title: 'No such path' },
  title_not_found:         { status: 404, title: 'No such title' },
  method_not_allowed:      { status: 405, title: 'Method not allowed' },
  request_timeout:         { status: 408, title: 'Request timed out' },
  content_too_large:       { status: 413, title: 'Content too large' },
  unsupported_media_type:  { status: 415, title: 'Media type not supported' },
  range_not_satisfiable:   { status: 416, title: 'Range not satisfiable' },
  rate_limit_exceeded:     { status: 429, title: 'Rate limit exceeded' },
  header_fields_too_large: { status: 431, title: 'Header fields too large' },
  internal_error:          { status: 500, title: 'Internal error' },
  service_unavailable:     { status: 503, title: 'Service unavailable' },
} as const satisfies Record<string, { readonly status: number; readonly title: string }>;

export type ErrorCode = keyof typeof ERROR_CODES;

/**
 * The type of the problems of a code (RFC 9457, section 3.1.1): its entry in the reference. Where the pages are off, it
 * still identifies the type, and nothing answers there.
 *
 * @param publicUrl - the origin of the service
 */
export const problemType = (code: ErrorCode, publicUrl: string): string => `${publicUrl}/docs#error-${code}`;

interface ProblemExtras {
  /** Extra members of the problem document (RFC 9457, section 3.2), such as `oldest_since`. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Response headers of this problem, such as `Retry-After`, in addition to the common ones. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The problem type, if it is not {@link problemType} of the code. */
  readonly type?: string;
  /** The cause, only for the log. */
  readonly cause?: unknown;
}

/**
 * An error that a client may see, with its own status. Any other thrown value becomes a fixed `internal_error`. The
 * detail is public: it never repeats the client's text, which might contain a key.
 */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: number;
  readonly title: string;
  readonly type: string | undefined;
  readonly members: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    extras: ProblemExtras = {},
  ) {
    super(`${code}: ${detail}`, { cause: extras.cause });
    this.status = ERROR_CODES[code].status;
    this.title = ERROR_CODES[code].title;
    this.type = extras.type;
    this.members = extras.members ?? {};
    this.headers = extras.headers ?? {};
  }
}

interface OperatorErrorExtras {
  /** Advice for the command line, in sentences. It names a command as `catalog …`. */
  readonly advice?: string | undefined;
  /** `not_found`: the named thing does not exist; a page answers with 404. */
  readonly kind?: 'not_found' | undefined;
  /** The cause, only for the log. */
  readonly cause?: unknown;
}

/**
 * A mistake of the operator, such as a bad setting or an unreadable file, in whole sentences. The command line prints
 * only the message and the advice; a page prints the message and suggests a next step itself.
 */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
  readonly advice: string | undefined;
  readonly kind: 'not_found' | undefined;

  constructor(message: string, { advice, kind, cause }: OperatorErrorExtras = {}) {
    super(message, { cause });
    this.advice = advice;
    this.kind = kind;
  }
}

/** Options or arguments of a command that do not fit together. */
export class UsageError extends OperatorError {}

/** @returns an error as the command line prints it */
export function withAdvice({ message, advice }: Pick<OperatorError, 'message' | 'advice'>): string {
  return advice === undefined ? message : `${message} ${advice}`;
}

/** The error of a command that names an unknown developer or plan. Quotes strings but not numbers. */
export function notFoundError(what: 'developer' | 'plan', id: number | string): OperatorError {
  const advice = `"catalog ${what}s list" shows them all.`;
  return new OperatorError(`There is no ${what} ${JSON.stringify(id)}.`, { advice, kind: 'not_found' });
}
