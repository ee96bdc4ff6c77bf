import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '../../errors.js';
import { chooseRequestId } from '../request/prepare-request.js';
import { problemDocument, PROBLEM_MEDIA_TYPE } from '../response/problems.js';
import { newestResponse, owesContent } from './pipelining.js';

/** A message that is not a valid request, and the problem it was answered with: for the log. */
export interface Rejection {
  readonly requestId: string;
  readonly problem: Problem;
}

/** Connections that are being closed. Node reports each further chunk of a malformed message. */
const closing = new WeakSet<Duplex>();

/**
 * Answers a message that is not a valid request with a problem document, and closes the connection.
 *
 * @param error - from Node's parser or its timeouts
 * @param origin - of the service; undefined for a server whose errors have no reference
 * @returns undefined when the connection is closed without an answer
 */
export function rejectConnection(error: NodeJS.ErrnoException, socket: Duplex, origin?: string): Rejection | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return undefined;
  }
  if (closing.has(socket)) return undefined;
  closing.add(socket);
  const close = (): void => void socket.end(() => socket.destroy());
  const newest = newestResponse(socket);
  if (newest) {
    // Earlier requests still wait for answers: the client would take this one for one of theirs. Node does not report
    // that content will never arrive while the socket is open.
    if (!newest.req.complete) newest.req.emit('aborted');
    newest.once('close', close);
    return undefined;
  }
  if (owesContent(socket)) {
    // The request was answered without waiting for its content, which never arrived.
    close();
    return undefined;
  }
  const problem = connectionProblem(error.code);
  const requestId = chooseRequestId(undefined);
  const body = problemDocument(problem, requestId, origin);
  socket.end(
    [
      `HTTP/1.1 ${String(problem.status)} ${STATUS_CODES[problem.status] ?? ''}`,
      `Content-Type: ${PROBLEM_MEDIA_TYPE}`,
      `Content-Length: ${String(Buffer.byteLength(body))}`,
      'Cache-Control: no-store',
      `X-Request-Id: ${requestId}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
    () => socket.destroy(),
  );
  return { requestId, problem };
}

function connectionProblem(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Problem('header_fields_too_large', 'The request line and header fields exceed 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('request_timeout', 'The request did not arrive in time. Send it again on a new connection.');
    default:
      return new Problem('malformed_request', 'This is not a well-formed HTTP/1.1 request.');
  }
}
