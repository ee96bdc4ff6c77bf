import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The header fields of a response as Node takes them: names and values by turns. */
type Fields = string[];

/** What answers are written to: Node's response, or one by Koa. */
export interface Response {
  writeHead(status: number, fields?: Fields): Response;
  end(body?: string | Buffer): unknown;
}

const VARY = 'Authorization, X-API-Key';

/** For what the service compresses when asked; here nobody asks. */
export const VARY_BY_CODING = `${VARY}, Accept-Encoding`;

/** The end of a page of changes that another one follows. */
const NEXT_PAGE = /"has_more":true,"next_since":([\d.]+)}}$/;

const MAX_META_LENGTH = 64;

/** As the package `etag` cuts it: SHA-1 in base64 without its padding. */
const TAG_LENGTH = 27;

/** Answers 200, or 304 when the client has that very body. */
export function answerFresh(
  request: IncomingMessage,
  response: Response,
  requestId: string,
  limits: Fields,
  text: string,
  vary = VARY,
): void {
  // Encoded once, for the tag, the length and the socket.
  const body = Buffer.from(text);
  const { length } = body;
  const tag = `"${length.toString(16)}-${hash('sha1', body, 'base64').slice(0, TAG_LENGTH)}"`;
  const fields = [
    'X-Request-Id',
    requestId,
    'Vary',
    vary,
    ...limits,
    'Cache-Control',
    'private, no-cache',
    'ETag',
    tag,
  ];
  if (request.headers['if-none-match'] === tag) {
    response.writeHead(304, fields);
    response.end();
    return;
  }
  fields.push('Content-Type', 'application/json', 'Content-Length', String(length));
  const next = NEXT_PAGE.exec(text.slice(-MAX_META_LENGTH))?.[1];
  if (next !== undefined) fields.push('Link', `<?since=${next}>; rel="next"`);
  response.writeHead(200, fields);
  response.end(body);
}

/** Answers 200 with what no cache may keep. */
export function answerPrivate(response: Response, requestId: string, limits: Fields, body: string): void {
  response.writeHead(200, [
    'X-Request-Id',
    requestId,
    'Vary',
    VARY,
    ...limits,
    'Content-Type',
    'application/json',
    'Cache-Control',
    'no-store',
    'Content-Length',
    String(Buffer.byteLength(body)),
  ]);
  response.end(body);
}

/** A problem, with the fields and members that not every problem has. */
interface Problem {
  readonly status: number;
  readonly title: string;
  readonly code: string;
  readonly detail: string;
  readonly type?: string;
  /** JSON that follows `request_id`, with a comma before it. */
  readonly members?: string;
  readonly fields?: Fields;
}

/** Answers with a problem document. All its texts are ours and need no escaping. */
export function answerProblem(
  response: Response,
  requestId: string,
  { status, title, code, detail, type = 'about:blank', members = '', fields = [] }: Problem,
): void {
  const body =
    `{"type":"${type}","title":"${title}","status":${status},"detail":${JSON.stringify(detail)},` +
    `"code":"${code}","request_id":"${requestId}"${members}}`;
  response.writeHead(status, [
    'X-Request-Id',
    requestId,
    'Vary',
    VARY,
    ...fields,
    'Cache-Control',
    'no-store',
    'Content-Type',
    'application/problem+json',
    'Content-Length',
    String(Buffer.byteLength(body)),
  ]);
  response.end(body);
}
