import pino, { type DestinationStream, type Logger } from 'pino';

/**
 * Makes the service's log: one JSON document a line, times in RFC 3339.
 *
 * @param level - the least level that is written
 * @param destination - where lines go
 */
export function createLog(level: string, destination: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      // A plain object is an error that was already described.
      serializers: { err: (error: unknown) => (isPlainObject(error) ? error : describeError(error)) },
    },
    destination,
  );
}

/**
 * Describes an error by its name, message, code, stack and cause. Drivers attach connections and queries to their
 * errors, so other properties stay out.
 */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as { readonly code?: unknown };
  return {
    type: error.name,
    message: error.message,
    code: typeof code === 'string' || typeof code === 'number' ? code : undefined,
    stack: error.stack,
    cause: error.cause === undefined ? undefined : describeError(error.cause),
  };
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
