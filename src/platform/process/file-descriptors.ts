import { OperatorError } from '../../errors.js';

/**
 * Descriptors that a server process reserves for itself. It uses about 20, besides its pools and its connections to
 * Redis; `/metrics` takes up to 32.
 */
const RESERVED = 96;

/** A connection that the pool gave up may still be open when another one takes its place. */
const DESCRIPTORS_OF_POOLED_CONNECTION = 2;

/** With fewer client connections a server is of no use. */
const FEWEST_CONNECTIONS = 16;

/** @returns how many files a process may open, from its diagnostic report; Infinity for any number */
export function openFilesIn(report: object): number {
  const { userLimits } = report as { userLimits?: { open_files?: { soft: unknown } } };
  const limit = userLimits?.open_files?.soft;
  return typeof limit === 'number' ? limit : Infinity;
}

/**
 * How many client connections a server may have. The server can then always open what it needs itself: files, and
 * connections to PostgreSQL and to Redis.
 *
 * @param openFiles - how many files the process may open; Infinity for any number
 * @param pooled - how many connections to databases it may have
 * @throws OperatorError when there are none left for clients
 */
export function connectionsWithin(openFiles: number, pooled: number): number {
  const own = RESERVED + pooled * DESCRIPTORS_OF_POOLED_CONNECTION;
  if (openFiles < own + FEWEST_CONNECTIONS) {
    throw new OperatorError(
      `This process may have ${openFiles} files open and needs ${own} itself, which leaves too few for clients: ` +
        `raise the limit to ${own} and one for each connection, such as ulimit -n ${own + 1_000}.`,
    );
  }
  return openFiles - own;
}
