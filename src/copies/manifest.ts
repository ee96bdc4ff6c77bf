import { OperatorError } from '../errors.js';
import { printable } from '../platform/text/plain-text.js';
import { isObject, parseJson } from '../platform/text/json.js';

/** The kinds of rows that are published. */
export const COPY_KINDS = ['titles', 'people', 'collections'] as const;

export type CopyKind = (typeof COPY_KINDS)[number];

/** The columns of each kind, which are the members of its rows. Titles have the fields of the feed. */
export const COPY_COLUMNS: Readonly<Record<CopyKind, readonly string[]>> = {
  titles: ['svc_id', 'media_type', 'title', 'updated_at', 'has_bundles'],
  people: ['svc_id', 'name'],
  collections: ['svc_id', 'name'],
};

/** A file of a published copy. It never changes under its name. */
export interface CopyFile {
  readonly kind: CopyKind;
  readonly name: string;
  /** The size of the compressed file. */
  readonly bytes: number;
  readonly rows: number;
  /** The SHA-256 of the compressed file, in hexadecimal. */
  readonly sha256: string;
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
  readonly files: readonly CopyFile[];
  /** An Ed25519 signature of all other members, in base64. */
  readonly signature?: string;
}

/** The name of the newest manifest, beside the files that it names. */
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
  const { version, created_at, base_url, position, files, signature } = document;
  if (version !== 1) {
    throw new OperatorError(
      `The manifest has version ${printable(String(version), 20)}, and this program reads version 1.`,
      { advice: 'Upgrade this program.' },
    );
  }
  requireThat(isTime(created_at), 'created_at is not a time in UTC');
  requireThat(isText(base_url) && /^https?:$/.test(protocolOf(base_url)), 'base_url is not a URL');
  requireThat(isPosition(position), 'position is not a number of seconds');
  requireThat(signature === undefined || isText(signature), 'signature is not a string');
  if (!Array.isArray(files)) throw invalid('files is not an array');
  files.forEach((file: unknown, place) => requireFile(file, `files[${place}]`));
  const kinds = (files as CopyFile[]).map(({ kind }) => kind);
  requireThat(new Set(kinds).size === kinds.length, 'files has more than one of a kind');
  return document as unknown as Manifest;
}

/** @throws CopyUnusable if the copy has no file of this kind */
export function fileOf(manifest: Manifest, kind: CopyKind): CopyFile {
  const file = manifest.files.find((each) => each.kind === kind);
  if (file === undefined) throw new CopyUnusable(`The published copy has no file of ${kind}.`);
  return file;
}

/** Writes a manifest as the text of its file. */
export function formatManifest(manifest: Manifest): string {
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

function requireFile(file: unknown, place: string): void {
  if (!isObject(file)) throw invalid(`${place} is not an object`);
  const { kind, name, bytes, rows, sha256, columns } = file;
  requireThat(
    COPY_KINDS.some((known) => known === kind),
    `${place}.kind is not one of ${COPY_KINDS.join(', ')}`,
  );
  requireThat(isText(name) && isCopyFileName(name), `${place}.name is not the name of an .ndjson.gz file`);
  requireThat(isCount(bytes) && bytes !== 0, `${place}.bytes is not the size of a compressed file`);
  requireThat(isCount(rows), `${place}.rows is not a row count`);
  requireThat(isText(sha256) && /^[0-9a-f]{64}$/.test(sha256), `${place}.sha256 is not a SHA-256 in hexadecimal`);
  const wanted = COPY_COLUMNS[kind as CopyKind];
  requireThat(
    Array.isArray(columns) && wanted.every((column) => columns.includes(column)),
    `${place}.columns lacks one of ${wanted.join(', ')}`,
  );
}

function requireThat(isMet: boolean, problem: string): asserts isMet {
  if (!isMet) throw invalid(problem);
}

function invalid(problem: string): CopyUnusable {
  return new CopyUnusable(`The manifest is not valid: ${problem}.`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTime(value: unknown): boolean {
  return (
    isText(value) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/.test(value) && !Number.isNaN(Date.parse(value))
  );
}

/** Up to the year 2286. */
function isPosition(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value < 1e10;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : '';
}
