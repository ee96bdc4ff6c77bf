import { OperatorError } from '../errors.js';
import { printable } from '../platform/text/plain-text.js';
import { isObject, parseJson } from '../platform/text/json.js';

/** A file of a published copy. It never changes under its name. */
export interface CopyFile {
  /** The kind of its rows: titles, people or collections. Later versions may add kinds. */
  readonly kind: string;
  readonly name: string;
  /** The size of the compressed file. */
  readonly bytes: number;
  /** The size after decoding. */
  readonly decoded_bytes: number;
  readonly rows: number;
  /** The SHA-256 of the compressed file, in hexadecimal. */
  readonly sha256: string;
  /** The members of its rows. */
  readonly columns: readonly string[];
}

/**
 * Describes a published copy of the catalogue: files of one moment, and the position from which a mirror that begins
 * with them follows the feed.
 */
export interface Manifest {
  readonly version: 1;
  /** RFC 3339, UTC. */
  readonly created_at: string;
  /** The service that the copy is of: the URL before `/api/v1`. */
  readonly base_url: string;
  /** The `since` to follow the feed from, in seconds with six decimals. */
  readonly position: number;
  /** The identity of the feed that the position is of, as in `Feed-Id`. Absent when unknown. */
  readonly feed_id?: string;
  /** The copy has whatever was committed with a stamp up to this, in seconds with six decimals. Absent when unknown. */
  readonly complete_until?: number;
  readonly files: readonly CopyFile[];
  /** An Ed25519 signature of all other members, in base64. */
  readonly signature?: string;
}

/** The name of the newest manifest, in the folder of the files that it names. */
export const MANIFEST_NAME = 'manifest.json';

/** The largest manifest that a reader needs to accept, in bytes. */
export const MAX_MANIFEST_BYTES = 64 * 1024;

/** A copy cannot be used until the operator of the service publishes another. */
export class CopyUnusable extends OperatorError {
  constructor(message: string, extras: ConstructorParameters<typeof OperatorError>[1] = {}) {
    super(message, { advice: 'Ask the operator of the service to publish a new one.', ...extras });
  }
}

/** Matches the names of files: they are in the manifest's own folder, and never hidden. */
const FILE_NAME = /^[a-z0-9][a-z0-9._-]{0,120}\.ndjson\.gz$/;

/** @returns whether a manifest can name this file */
export function isCopyFileName(name: string): boolean {
  return FILE_NAME.test(name);
}

/**
 * Parses a manifest. Members that this version lacks are kept, because a signature covers them.
 *
 * @throws CopyUnusable, or OperatorError for a manifest of a later version
 */
export function parseManifest(text: string): Manifest {
  const document = parseJson(text);
  if (document === undefined) throw invalid('it is not JSON');
  if (!isObject(document)) throw invalid('it is not an object');
  const { version, files } = document;
  if (version !== 1) {
    throw new OperatorError(
      `The manifest has version ${printable(String(version), 20)}, and this program reads version 1.`,
      { advice: 'Upgrade this program.' },
    );
  }
  requireMembers(document, MEMBERS, 'it');
  if (!Array.isArray(files)) throw invalid('files is not an array');
  for (const [place, file] of files.entries()) requireMembers(file, FILE_MEMBERS, `files[${place}]`);
  const kinds = (files as CopyFile[]).map(({ kind }) => kind);
  if (new Set(kinds).size < kinds.length) throw invalid('files has more than one of a kind');
  return document as unknown as Manifest;
}

/** @throws CopyUnusable if the copy has no file of this kind */
export function fileOf(manifest: Manifest, kind: string): CopyFile {
  const file = manifest.files.find((each) => each.kind === kind);
  if (file === undefined) throw new CopyUnusable(`The published copy has no file of ${kind}.`);
  return file;
}

/** Writes a manifest as the text of its file. */
export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

type Checks<Name extends string> = Readonly<Record<Name, (value: unknown) => boolean>>;

/** Up to the year 2286. */
const isPosition = (value: unknown): boolean => typeof value === 'number' && value > 0 && value < 1e10;

const MEMBERS: Checks<'created_at' | 'base_url' | 'position' | 'feed_id' | 'complete_until' | 'signature'> = {
  created_at: (value) =>
    isText(value) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/.test(value) && !Number.isNaN(Date.parse(value)),
  base_url: (value) => isText(value) && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
  position: isPosition,
  feed_id: (value) => value === undefined || (isText(value) && /^[\x21-\x7e]{1,64}$/.test(value)),
  complete_until: (value) => value === undefined || isPosition(value),
  signature: (value) => value === undefined || isText(value),
};

const FILE_MEMBERS: Checks<keyof CopyFile> = {
  kind: isText,
  name: (value) => isText(value) && isCopyFileName(value),
  bytes: (value) => isCount(value) && value !== 0,
  decoded_bytes: isCount,
  rows: isCount,
  sha256: (value) => isText(value) && /^[0-9a-f]{64}$/.test(value),
  columns: (value) => Array.isArray(value) && value.every(isText),
};

function requireMembers<Name extends string>(of: unknown, checks: Checks<Name>, place: string): void {
  if (!isObject(of)) throw invalid(`${place} is not an object`);
  for (const name of Object.keys(checks) as Name[]) {
    if (!checks[name](of[name])) throw invalid(`${place} has no valid ${name}`);
  }
}

function invalid(problem: string): CopyUnusable {
  return new CopyUnusable(`The manifest is not valid: ${problem}.`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
