import pino, { type DestinationStream, type Logger } from 'pino';

/**
 * Makes the service's log: one JSON document a line, times in RFC 3339.
 *
 * @param level - the least level that is written
 * @param destination - where lines go
 */
export function createLog(level: string, destination: DestinationStream): Logger {
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: describeError } },
    destination,
  );
}

/** What an error says, and no other property of it: drivers hang connections and queries on their errors. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  return {
    type: error.name,
    message: error.message,
    code: 'code' in error ? error.code : undefined,
    stack: error.stack,
    cause: error.cause === undefined ? undefined : describeError(error.cause),
  };
}
