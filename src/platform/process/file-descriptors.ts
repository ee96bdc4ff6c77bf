import { OperatorError } from '../../errors.js';

/**
 * Descriptors that a server process keeps for itself: it has some 20 of its own, besides those of its pools and its
 * connections to Redis, and `/metrics` takes up to 32.
 */
const RESERVED = 96;

/** A connection that is given up may still be open when another one takes its place. */
const DESCRIPTORS_OF_POOLED_CONNECTION = 2;

/** With fewer connections of clients a server is of no use. */
const FEWEST_CONNECTIONS = 16;

/** @returns how many files a process may have open, as its diagnostic report says; Infinity for any number */
export function openFilesIn(report: object): number {
  const { userLimits } = report as { userLimits?: { open_files?: { soft: unknown } } };
  const limit = userLimits?.open_files?.soft;
  return typeof limit === 'number' ? limit : Infinity;
}

/**
 * How many connections of clients a server may have, so that it can always open what it needs itself: connections to
 * PostgreSQL and to Redis, files.
 *
 * @param openFiles - how many files the process may have open; Infinity for any number
 * @param pooled - connections to databases that it may have
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
