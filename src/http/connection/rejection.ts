import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '../../errors.js';
import { chooseRequestId } from '../request/request-id.js';
import { problemDocument, PROBLEM_MEDIA_TYPE } from '../response/problems.js';
import { lastResponse } from './turns.js';

/** A message that is no valid request, and its answer: for the log. */
export interface Rejection {
  readonly requestId: string;
  readonly problem: Problem;
}

/** The last request of a connection that announced content. */
const lastWithContent = new WeakMap<Duplex, IncomingMessage>();

/** Connections that are being closed. Node reports each further chunk of a malformed message. */
const closing = new WeakSet<Duplex>();

/** Remembers a request that announces content. Where the content never comes, its connection fails after the answer. */
export function noteContent(request: IncomingMessage): void {
  const { headers, socket } = request;
  const hasContent = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  if (hasContent) lastWithContent.set(socket, request);
}

/**
 * Answers a message that is no valid request with a problem document, and closes the connection.
 *
 * @returns undefined when the connection is closed without an answer
 */
export function rejectConnection(error: NodeJS.ErrnoException, socket: Duplex): Rejection | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return undefined;
  }
  if (closing.has(socket)) return undefined;
  closing.add(socket);
  const close = (): void => void socket.end(() => socket.destroy());
  // Earlier requests of the connection are being answered: the client would take this answer for one of theirs.
  const last = lastResponse(socket);
  if (last) {
    // Whatever still waits for the content of the request waits in vain. Node does not say so while the socket is open.
    const request = lastWithContent.get(socket);
    if (request?.complete === false) request.emit('aborted');
    last.once('close', close);
    return undefined;
  }
  // A request whose content did not arrive has its answer.
  if (lastWithContent.get(socket)?.complete === false) {
    close();
    return undefined;
  }
  const problem = connectionProblem(error.code);
  const requestId = chooseRequestId(undefined);
  const body = problemDocument(problem, requestId);
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
      return new Problem(
        'header_fields_too_large',
        'The request line and the header fields together may take at most 16 KiB.',
      );
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem('request_timeout', 'The request did not arrive in time. Send it again on a new connection.');
    default:
      return new Problem('malformed_request', 'This is not a well-formed HTTP/1.1 request.');
  }
}
