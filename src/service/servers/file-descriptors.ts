import { readFileSync } from 'node:fs';
import type { Config } from '../../config/settings.js';
import { OperatorError } from '../../errors.js';

/**
 * Descriptors that a server needs besides its pools: about 20 itself and for Redis, up to 32 for `/metrics`, and up to
 * 32 for published copies.
 */
const RESERVED = 96;

/** A connection that the pool gave up may still be open when another one takes its place. */
const DESCRIPTORS_OF_POOLED_CONNECTION = 2;

/** With fewer client connections a server is of no use. */
const FEWEST_CONNECTIONS = 16;

/**
 * Computes how many client connections a server may have, so that it can still open files and connections to PostgreSQL
 * and Redis when many clients are connected.
 *
 * @param openFiles - how many files the process may open
 * @throws OperatorError when too few are left for clients
 */
export function connectionsWithin(
  { databasePoolSize, databaseReadUrl }: Pick<Config, 'databasePoolSize' | 'databaseReadUrl'>,
  openFiles = openFileLimit(),
): number {
  const pooled = databasePoolSize * (databaseReadUrl === undefined ? 1 : 2);
  const own = RESERVED + pooled * DESCRIPTORS_OF_POOLED_CONNECTION;
  if (openFiles < own + FEWEST_CONNECTIONS) {
    throw new OperatorError(
      `This process may open ${openFiles} files and needs ${own} itself, which leaves too few for clients.`,
      { advice: `Raise the limit to ${own} plus one for each connection, such as ulimit -n ${own + 1_000}.` },
    );
  }
  return openFiles - own;
}

/** @returns the limit on open files, which Node.js raises as far as possible; Infinity on systems other than Linux */
function openFileLimit(): number {
  try {
    const [, limit = Infinity] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return Number(limit);
  } catch {
    return Infinity;
  }
}
