import type { ReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { Problem } from '../../errors.js';
import type { RequestContext } from '../request/context.js';
import { serviceUnavailable } from '../response/problems.js';

/** Files that a process sends at the same time, each with a file descriptor. */
const MOST_DOWNLOADS = 32;

/** Those of one developer, so that there is room for others. */
const MOST_OF_DEVELOPER = 4;

/** Bound on one response, in milliseconds. A reader that needs longer continues with a range. */
const LONGEST_DOWNLOAD_MS = 3_600_000;

/** The files that this process is sending. */
export type Downloads = ReturnType<typeof createDownloads>;

export function createDownloads(longestMs = LONGEST_DOWNLOAD_MS) {
  /** The developer of each file that is open. */
  const running = new Map<ReadStream, number | undefined>();
  return {
    /**
     * Streams bytes of a file to a client, with a small buffer. The file is closed in any case. If it becomes shorter,
     * or the client takes too long, the connection is cut, so that the client sees that something is missing.
     *
     * @throws Problem rate_limit_exceeded, service_unavailable
     */
    async stream(
      { res, state }: Pick<RequestContext, 'res' | 'state'>,
      file: FileHandle,
      start: number,
      length: number,
    ): Promise<ReadStream> {
      const developer = state.caller?.developerId;
      const refusal = refuse([...running.values()], developer);
      if (refusal) {
        await file.close();
        throw refusal;
      }
      // The response no longer has it after its last byte.
      const { socket } = res;
      const cut = setTimeout(() => socket?.resetAndDestroy(), longestMs);
      const stream = file.createReadStream({ start, end: start + length - 1 });
      running.set(stream, developer);
      // The response may have ended already. Koa then closes the stream.
      stream.once('close', () => {
        clearTimeout(cut);
        running.delete(stream);
        if (stream.bytesRead < length && socket?.destroyed === false) socket.resetAndDestroy();
      });
      return stream;
    },
  };
}

function refuse(running: readonly (number | undefined)[], developer: number | undefined): Problem | undefined {
  if (running.filter((each) => each === developer).length >= MOST_OF_DEVELOPER) {
    return new Problem(
      'rate_limit_exceeded',
      `This server is already sending you ${MOST_OF_DEVELOPER} files. Wait until one is complete, then try again.`,
      { headers: { 'Retry-After': '10' } },
    );
  }
  if (running.length < MOST_DOWNLOADS) return undefined;
  return serviceUnavailable({ detail: 'Too many downloads are running. Try again in a few seconds.' });
}
