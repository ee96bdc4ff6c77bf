import { hash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import parseRange from 'range-parser';
import { CopiesUnavailable, type PublishedFolder } from '../../copies/published.js';
import { isCopyFileName, MANIFEST_NAME, type CopyFile } from '../../copies/manifest.js';
import { Problem } from '../../errors.js';
import { authenticate, type AuthenticationParts } from '../request/authenticate.js';
import type { Middleware, RequestContext } from '../request/context.js';
import { deadline, type DeadlineParts } from '../request/deadline.js';
import { methodNotAllowed, serviceUnavailable } from '../response/problems.js';
import { clientHas, Representation } from '../response/representation.js';
import { createDownloads, type Downloads } from './downloads.js';

/** Where the published copies are. Everything below needs a key, whether it exists or not. */
const COPIES_PATH = '/copies/';

/** Only for the caller, since a shared cache must not serve callers without a key. It never changes under its name. */
const FILE_CACHE = 'private, max-age=31536000, immutable';

export interface CopiesParts extends AuthenticationParts, DeadlineParts {
  /** The published copies. */
  readonly copies: PublishedFolder;
}

/** A part of a file, with the places of its first and last byte. */
interface Part {
  readonly start: number;
  readonly end: number;
}

/**
 * Serves published copies to callers with a key: the manifest, and the files of the copies that are kept. Each request
 * is charged like one of the API, whatever the size of the file. openapi-copies.yaml in this folder describes the
 * calls.
 *
 * @returns a middleware that throws the problems of {@link authenticate}, and Problem not_found, method_not_allowed and
 *   range_not_satisfiable
 */
export function serveCopies(parts: CopiesParts): Middleware {
  const withDeadline = deadline(parts.requestTimeoutMs);
  const authenticated = authenticate(parts);
  const downloads = createDownloads();
  return (ctx, next) => {
    if (!ctx.state.target.path.startsWith(COPIES_PATH)) return next();
    return withDeadline(ctx, () => authenticated(ctx, () => answer(ctx, parts.copies, downloads)));
  };
}

async function answer(ctx: RequestContext, copies: PublishedFolder, downloads: Downloads): Promise<void> {
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed();
  const name = ctx.state.target.path.slice(COPIES_PATH.length);
  if (name !== MANIFEST_NAME && !isCopyFileName(name)) throw notFound('This path does not exist.');
  const published = await copies.read().catch((error: unknown) => {
    if (!(error instanceof CopiesUnavailable)) throw error;
    throw serviceUnavailable({ detail: 'Published copies cannot be read at the moment. Try again in a few seconds.' });
  });
  if (ctx.state.timedOut) return;
  if (published === undefined) throw notFound('No copy is published at the moment.');
  if (name === MANIFEST_NAME) return sendManifest(ctx, published.text);
  const file = published.files.get(name);
  if (file === undefined) throw gone();
  await sendFile(ctx, join(copies.path, name), file, downloads);
}

async function sendManifest(ctx: RequestContext, text: string): Promise<void> {
  await new Representation(text, 'application/json').send(ctx, 'private, no-cache', false);
  ctx.set('Repr-Digest', reprDigest(hash('sha256', text, 'hex')));
}

async function sendFile(ctx: RequestContext, path: string, file: CopyFile, downloads: Downloads): Promise<void> {
  const tag = `"${file.sha256}"`;
  const isKnown = clientHas(ctx.req, tag);
  const part = isKnown ? undefined : requestedPart(ctx, file.bytes, tag);
  const { start, end } = part ?? { start: 0, end: file.bytes - 1 };
  const length = end - start + 1;
  const handle = isKnown ? undefined : await openFile(path, file.bytes);
  const isHead = ctx.method === 'HEAD';
  // Before any field is set: a problem must not carry the fields of this answer.
  const content = handle && !isHead ? await downloads.stream(ctx, handle, start, length) : await handle?.close();
  ctx.status = isKnown ? 304 : part ? 206 : 200;
  ctx.set({
    'Accept-Ranges': 'bytes',
    'Cache-Control': FILE_CACHE,
    ETag: tag,
    'Repr-Digest': reprDigest(file.sha256),
  });
  if (isKnown) return;
  if (part) ctx.set('Content-Range', `bytes ${start}-${end}/${file.bytes}`);
  ctx.set({ 'Content-Type': 'application/gzip', 'Content-Length': String(length) });
  if (content) ctx.body = content;
}

/**
 * @returns the requested part; undefined for the whole file, which also answers a request for several parts or for a
 *   part of an earlier file (RFC 9110, section 13.1.5)
 * @throws Problem range_not_satisfiable
 */
function requestedPart({ req, method }: RequestContext, bytes: number, tag: string): Part | undefined {
  const { range, 'if-range': condition = tag } = req.headers;
  if (range === undefined || method !== 'GET' || condition !== tag) return undefined;
  const [, suffix = 0] = /^bytes=-(\d+)$/i.exec(range) ?? [];
  // A longer suffix is the whole file (RFC 9110, section 14.1.2). The parser takes it for unsatisfiable.
  if (Number(suffix) > bytes) return { start: 0, end: bytes - 1 };
  const parts = parseRange(bytes, range);
  if (parts === -1) {
    throw new Problem('range_not_satisfiable', `The file has ${bytes} bytes, and the range is not within them.`, {
      headers: { 'Content-Range': `bytes */${bytes}` },
    });
  }
  // RFC 9110, section 14.2: a server may ignore a range.
  return parts === -2 || parts.type.toLowerCase() !== 'bytes' || parts.length > 1 ? undefined : parts[0];
}

/** @throws Problem not_found also for a link, and for a file that is not the one of the manifest */
async function openFile(path: string, bytes: number): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw gone();
    throw error;
  }
  const stats = await handle.stat();
  if (stats.isFile() && stats.size === bytes) return handle;
  await handle.close();
  throw gone();
}

/** RFC 9530. */
function reprDigest(sha256: string): string {
  return `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`;
}

function notFound(detail: string): Problem {
  return new Problem('not_found', detail);
}

function gone(): Problem {
  return notFound('This file is not published, or is no longer published. Read /copies/manifest.json again.');
}
