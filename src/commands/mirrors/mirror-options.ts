import { readFile } from 'node:fs/promises';
import { InvalidArgumentError, type Command } from 'commander';
import type { KeyObject } from 'node:crypto';
import { parsePublicKey } from '../../copies/signature.js';
import { OperatorError, UsageError } from '../../errors.js';
import { createClient, createTitleCounter, parseBaseUrl, type ClientOptions } from '../../client/client.js';
import { CopySource } from '../../client/mirror/copy-source.js';
import { isDatabaseUnavailable, sqlState } from '../../platform/postgres/errors.js';
import { ENCODE, readPostgresUrl } from '../../config/parsers.js';
import { CLIENT_KEY_NOTE, requireClientKey } from '../arguments.js';
import type { CommandContext } from '../context.js';

/** The options of each command about a mirror. */
export interface MirrorFlags {
  readonly from?: string;
  readonly into?: string;
  readonly copies?: string;
  readonly publicKey?: string;
  readonly allowRemovals?: boolean;
  readonly schema: string;
}

/** Messages and advice for errors of the mirror's database, by SQLSTATE (PostgreSQL, appendix A). */
const MEANINGS: readonly (readonly [states: RegExp, meaning: string, advice?: string])[] = [
  [
    /^23503/,
    "A foreign key in the mirror's database rejected a change",
    'Let it follow deletions, for example with "on delete cascade", or drop it.',
  ],
  // The mirror's own constraints hold.
  [
    /^23/,
    "A constraint in the mirror's database rejected a change",
    'Drop it: a mirror must accept every row that the service sends.',
  ],
  [
    /^42501/,
    "The role lacks a privilege in the mirror's database",
    'Grant it to the role, or choose an empty schema that the role owns with --schema.',
  ],
  [/^55P03/, "Another session holds a lock in the mirror's database", 'Try again when it is done.'],
  [/^53/, "The mirror's database is out of resources"],
];

/** The longest name in PostgreSQL, in bytes. It would cut a longer one. */
const LONGEST_NAME = 63;

/** Notes about the options of {@link addMirrorOptions}. */
export const CONNECTION_NOTES = `${CLIENT_KEY_NOTE}

Set MIRROR_DATABASE_URL to the URL of your database, or MIRROR_DATABASE_URL_FILE to a file that contains it. --into also
takes the URL, without a password, because every user of the machine can read the arguments of a program; then set
PGPASSWORD to the password.`;

export function addMirrorOptions(command: Command): Command {
  return (
    command
      // Not required: commander would require it of the parent of a subcommand as well.
      .option('--from <url>', 'service to mirror: the URL before /api/v1')
      .option('--into <url>', 'database of the mirror, postgres://user@host/database; by default MIRROR_DATABASE_URL')
      .option('--schema <name>', "schema of the mirror's tables", schemaName, 'catalog_mirror')
      .option('--copies <url>', 'URL of the published copies; by default /copies/ on the service')
      .option('--public-key <file>', 'load only copies whose signature matches this Ed25519 public key (PEM or base64)')
      .option('--allow-removals', 'remove rows that a copy lacks even if they are more than a tenth of the mirror')
  );
}

/** @returns the settings and clients of the commands about a mirror @throws UsageError, OperatorError, ConfigError */
export async function parseMirrorFlags(flags: MirrorFlags, context: CommandContext) {
  if (flags.from === undefined) throw new UsageError('Name the service to mirror with --from.');
  const client: ClientOptions = { baseUrl: parseBaseUrl(flags.from, '--from'), key: requireClientKey(context) };
  const { baseUrl } = client;
  const databaseUrl = databaseUrlOf(flags.into) ?? context.config().mirrorDatabaseUrl;
  if (databaseUrl === undefined)
    throw new UsageError('Name the database of the mirror: set MIRROR_DATABASE_URL, or use --into.');
  const copiesUrl = flags.copies === undefined ? `${baseUrl}/copies` : parseBaseUrl(flags.copies, '--copies');
  const publicKey = flags.publicKey === undefined ? undefined : await readPublicKey(flags.publicKey);
  return {
    baseUrl,
    fetchPage: createClient(client),
    countTitles: createTitleCounter(client),
    source: new CopySource({ ...client, copiesUrl, publicKey }),
    databaseUrl,
    schema: flags.schema,
    allowRemovals: flags.allowRemovals ?? false,
  };
}

/** Runs work on the mirror's database. Its errors name the settings of the mirror, not those of a service. */
export async function withStoreErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message, syscall } = error as NodeJS.ErrnoException;
    const [, meaning, advice] = MEANINGS.find(([states]) => states.test(sqlState(error))) ?? [];
    if (meaning !== undefined) throw new OperatorError(`${meaning}: ${message}.`, { advice, cause: error });
    // "open": a file that the URL names cannot be read.
    if (syscall !== 'open' && !isDatabaseUnavailable(error)) throw error;
    throw new OperatorError(`The mirror's database cannot be reached: ${message}.`, {
      advice: 'Check MIRROR_DATABASE_URL, or --into.',
      cause: error,
    });
  }
}

/** @throws UsageError, which does not repeat the URL */
function databaseUrlOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = readPostgresUrl(text);
  if (url === undefined) {
    throw new UsageError(`--into must be a URL such as postgres://user@host:5432/database; ${ENCODE}.`);
  }
  if (url.password !== '' || url.searchParams.has('password')) {
    throw new UsageError(
      '--into must not have a password: every user of this machine can read the arguments of a program.',
      {
        advice: 'Change that password, then set MIRROR_DATABASE_URL to the whole URL, or PGPASSWORD to the password.',
      },
    );
  }
  return text;
}

async function readPublicKey(file: string): Promise<KeyObject> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new OperatorError(`Cannot read the public key ${file}: ${(error as Error).message}.`, { cause: error });
  });
  return parsePublicKey(text);
}

function schemaName(value: string): string {
  const length = Buffer.byteLength(value);
  if (length > 0 && length <= LONGEST_NAME) return value;
  throw new InvalidArgumentError(`Use 1 to ${LONGEST_NAME} bytes.`);
}
