import { readFile } from 'node:fs/promises';
import { InvalidArgumentError, type Command } from 'commander';
import type { KeyObject } from 'node:crypto';
import { parsePublicKey } from '../../copies/signature.js';
import { OperatorError, UsageError } from '../../errors.js';
import { parseBaseUrl, type ClientOptions } from '../../client/client.js';
import { CopySource } from '../../client/mirror/copy-source.js';
import type { StoreOptions } from '../../client/mirror/options.js';
import {
  INSUFFICIENT_PRIVILEGE,
  isDatabaseUnavailable,
  LOCK_NOT_AVAILABLE,
  sqlState,
} from '../../platform/postgres/errors.js';
import { readPostgresUrl } from '../../config/parsers.js';
import { CLIENT_KEY_NOTE, requireClientKey } from '../arguments.js';
import type { CommandContext } from '../context.js';

/** The options of each command about a mirror. */
export interface MirrorFlags {
  readonly from?: string;
  readonly into?: string;
  readonly copies?: string;
  readonly publicKey?: string;
  readonly schema: string;
}

/** What the commands about a mirror work with. */
interface MirrorParts {
  readonly client: ClientOptions;
  readonly source: CopySource;
  readonly store: StoreOptions;
}

/** Classes of SQLSTATEs, and one of them (PostgreSQL, appendix A). The mirror's own constraints hold. */
const CONSTRAINT = '23';
const FOREIGN_KEY_VIOLATION = '23503';
const INSUFFICIENT_RESOURCES = '53';

/** The longest name in PostgreSQL, in bytes. It would cut a longer one. */
const LONGEST_NAME = 63;

/** What to say about the options of {@link addMirrorOptions}. */
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
      .option(
        '--public-key <file>',
        'accept only copies whose signature matches this Ed25519 public key (PEM or base64)',
      )
  );
}

/** @throws UsageError, OperatorError, ConfigError */
export async function readMirrorOptions(flags: MirrorFlags, context: CommandContext): Promise<MirrorParts> {
  if (flags.from === undefined) throw new UsageError('Name the service to mirror with --from.');
  const baseUrl = parseBaseUrl(flags.from, '--from');
  const databaseUrl = databaseUrlOf(flags.into) ?? context.config().mirrorDatabaseUrl;
  if (databaseUrl === undefined)
    throw new UsageError('Name the database of the mirror: set MIRROR_DATABASE_URL, or use --into.');
  const key = requireClientKey(context);
  const copiesUrl = flags.copies === undefined ? `${baseUrl}/copies` : parseBaseUrl(flags.copies, '--copies');
  const publicKey = flags.publicKey === undefined ? undefined : await readPublicKey(flags.publicKey);
  return {
    client: { baseUrl, key },
    source: new CopySource({ baseUrl, copiesUrl, key, publicKey }),
    store: { databaseUrl, schema: flags.schema },
  };
}

/** Runs work on the mirror's database. Its errors name the settings of the mirror, not those of a service. */
export async function withStoreErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const [what, advice] = meaningOf(error) ?? [];
    throw what === undefined
      ? error
      : new OperatorError(`${what}: ${(error as Error).message}.`, { advice, cause: error });
  }
}

/** @returns what an error of the mirror's database means, as a clause, and what to do; undefined for any other error */
function meaningOf(error: unknown): readonly [what: string, advice?: string] | undefined {
  const state = sqlState(error);
  if (state === FOREIGN_KEY_VIOLATION) {
    const advice = 'Let it follow deletions, for example with "on delete cascade", or drop it.';
    return ["A foreign key in the mirror's database rejected a change", advice];
  }
  if (state.startsWith(CONSTRAINT)) {
    const advice = 'Drop it: a mirror holds whatever the service has.';
    return ["A constraint in the mirror's database rejected a change", advice];
  }
  if (state === INSUFFICIENT_PRIVILEGE) {
    const advice = 'Grant it to the role, or choose an empty schema that the role owns with --schema.';
    return ["The role lacks a privilege in the mirror's database", advice];
  }
  if (state === LOCK_NOT_AVAILABLE) {
    return ["Another session holds a lock in the mirror's database", 'Try again when it is done.'];
  }
  if (state.startsWith(INSUFFICIENT_RESOURCES)) return ["The mirror's database is out of resources"];
  return isDatabaseUnavailable(error)
    ? ["The mirror's database cannot be reached", 'Check MIRROR_DATABASE_URL, or --into.']
    : undefined;
}

/** @throws UsageError, which does not repeat the URL */
function databaseUrlOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = readPostgresUrl(text);
  if (url === undefined) {
    throw new UsageError('--into must be a URL such as postgres://user@host:5432/database.');
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
