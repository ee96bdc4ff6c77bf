import type { Command } from 'commander';
import type { Readable } from 'node:stream';
import { findKeyPrefix, isKeyPrefix, KEY_START, parseKey, PREFIX_IN_WORDS, type KeyHash } from '../../keys/api-key.js';
import { readLine } from '../../platform/text/read-line.js';

/** The argument of {@link prefixOf}, for a command's help. */
export const PREFIX_HELP = `prefix of the key, as "catalog keys list" shows it: ${PREFIX_IN_WORDS}`;

/** A prefix for examples. */
export const EXAMPLE_PREFIX = `${KEY_START}1a2B3c4D`;

/** @returns the prefix of a key. A whole key ends the command with code 2, and is not repeated. */
export function prefixOf(argument: string, command: Command): string {
  if (isKeyPrefix(argument)) return argument;
  const prefix = findKeyPrefix(argument);
  // Commander repeats an argument that a parser rejects.
  return command.error(
    prefix === undefined
      ? `error: the prefix of a key is ${PREFIX_IN_WORDS}; "catalog keys list" shows it`
      : `error: use only the prefix, ${prefix}: other users of this machine can see command-line arguments`,
  );
}

/** @returns a prefix, or for `-` a prefix or a whole key from standard input, which no other user can read. */
export async function prefixOrKeyOf(
  argument: string,
  stdin: Readable,
  command: Command,
): Promise<string | { readonly hash: KeyHash }> {
  if (argument !== '-') return prefixOf(argument, command);
  const line = await readLine(stdin);
  if (isKeyPrefix(line)) return line;
  const parsed = parseKey(line);
  return parsed.form === 'key'
    ? { hash: parsed.hash }
    : command.error(
        'error: standard input has neither the prefix of a key nor a whole key. Check that you copied all of it.',
      );
}
