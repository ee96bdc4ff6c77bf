import { createHash, type KeyObject } from 'node:crypto';
import { fileOf, MANIFEST_NAME, MAX_MANIFEST_BYTES, parseManifest, type Manifest } from '../../copies/manifest.js';
import { requireSignature } from '../../copies/signature.js';
import { OperatorError, withAdvice } from '../../errors.js';
import { authorize, failureOf, unreachable } from '../client.js';
import { parseRetryAfter, Retries, retrying, TemporaryFailure, type RetryOptions } from '../retry.js';
import { printable } from '../../platform/text/plain-text.js';
import { parseJson } from '../../platform/text/json.js';

export interface CopySourceOptions {
  /** The followed service, as parseBaseUrl() returns it. */
  readonly baseUrl: string;
  /** Where the copies are, without a slash at its end. */
  readonly copiesUrl: string;
  /** Sent to the service itself only, never to another host. */
  readonly key: string;
  /** The key that must have signed the manifest; undefined for no check. */
  readonly publicKey?: KeyObject | undefined;
  /** Bound on the wait for the next bytes, in milliseconds. */
  readonly idleMs?: number;
}

/** There is no such file. */
class FileMissing extends TemporaryFailure {}

/** A copy cannot be used until the operator of the service publishes another. */
export class CopyUnusable extends OperatorError {}

/** Published copies of one service. */
export interface CopySource {
  /** Where they are, without a slash at the end. */
  readonly url: string;
  /**
   * Reads the manifest of the newest copy and checks whose it is.
   *
   * @returns undefined when no copy is published
   * @throws CopyUnusable, or OperatorError when a retry cannot help or the retry policy gives up
   */
  readManifest(retry: RetryOptions): Promise<Manifest | undefined>;
  /**
   * Reads the compressed file of titles, and continues where a download was cut. The end is reached only if size and hash
   * are those of the manifest, so the reader must not use the rows before.
   *
   * @throws as readManifest() does; TemporaryFailure when the file is gone, so that a newer manifest names another
   */
  readTitles(manifest: Manifest, retry: RetryOptions): AsyncGenerator<Buffer>;
}

const DEFAULT_IDLE_MS = 30_000;

/** @throws OperatorError when the key cannot be a key */
export function createCopySource(options: CopySourceOptions): CopySource {
  const { baseUrl, copiesUrl, publicKey, idleMs = DEFAULT_IDLE_MS } = options;
  const isOwn = new URL(copiesUrl).origin === new URL(baseUrl).origin;
  const headers = isOwn ? authorize(options.key) : {};

  /** Reads a file from a place on. Each wait for the next bytes has a bound; the time that the reader takes does not count. */
  async function* read(name: string, from: number, signal: AbortSignal): AsyncGenerator<Buffer> {
    const exchange = new AbortController();
    const end = (): void => exchange.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    const startWait = (): NodeJS.Timeout =>
      setTimeout(() => exchange.abort(new Error(`no data within ${idleMs / 1000} s`)), idleMs);
    let wait = startWait();
    try {
      signal.throwIfAborted();
      const response = await fetch(`${copiesUrl}/${name}`, {
        headers: {
          ...headers,
          // The files are compressed themselves. With a range, fetch() asks for that by itself.
          ...(from > 0 ? { Range: `bytes=${from}-` } : { 'Accept-Encoding': 'identity' }),
        },
        signal: exchange.signal,
        // Only a redirect without a key may leave the host.
        redirect: isOwn ? 'manual' : 'follow',
      });
      if (response.status === 404)
        throw new FileMissing(`${copiesUrl}/${name} is not available. If a newer copy was just published, try again`);
      // Nothing follows.
      if (response.status === 416 && from > 0) return;
      if (!response.ok || response.body === null) throw await failureOfDownload(name, response);
      // Which fetch() has decoded, as is right for the manifest alone.
      if (name !== MANIFEST_NAME && (response.headers.get('Content-Encoding') ?? 'identity') !== 'identity') {
        throw new CopyUnusable(
          `${copiesUrl}/${name} has a Content-Encoding. Configure its server to send files unmodified.`,
        );
      }
      // A server may ignore the range and send the whole file.
      const isRest = response.headers.get('Content-Range')?.startsWith(`bytes ${from}-`);
      let skipped = response.status === 206 && isRest ? from : 0;
      for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(wait);
        const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).subarray(from - skipped);
        skipped += bytes.length - piece.length;
        if (piece.length > 0) yield piece;
        wait = startWait();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof OperatorError ? error : unreachable(`Cannot download ${copiesUrl}/${name}`, error);
    } finally {
      clearTimeout(wait);
      signal.removeEventListener('abort', end);
      exchange.abort();
    }
  }

  async function failureOfDownload(name: string, response: Response): Promise<OperatorError> {
    if (isOwn) return failureOf(response, parseJson(await response.text()));
    const { status } = response;
    const reason = `Cannot download ${copiesUrl}/${name}: the server responded with ${status}`;
    if (status >= 500 || status === 429) {
      return new TemporaryFailure(reason, parseRetryAfter(response.headers.get('Retry-After'), Date.now()));
    }
    return new OperatorError(`${reason}. Check --copies, and that the files are publicly readable.`);
  }

  async function readManifestText(signal: AbortSignal): Promise<string> {
    const pieces: Buffer[] = [];
    let size = 0;
    for await (const piece of read(MANIFEST_NAME, 0, signal)) {
      size += piece.length;
      if (size > MAX_MANIFEST_BYTES) throw new CopyUnusable('The manifest is not valid: it is too large.');
      pieces.push(piece);
    }
    return Buffer.concat(pieces).toString();
  }

  return {
    url: copiesUrl,

    async readManifest(retry) {
      const text = await retrying(retry, () =>
        readManifestText(retry.signal).catch((error: unknown) => {
          if (error instanceof FileMissing) return undefined;
          throw error;
        }),
      );
      if (text === undefined) return undefined;
      const manifest = usable(() => parseManifest(text));
      if (manifest.base_url !== baseUrl) {
        throw new OperatorError(
          `The copy at ${copiesUrl}/ belongs to ${printable(manifest.base_url)}, not to ${baseUrl}. Use the copies of the service that you mirror.`,
        );
      }
      if (publicKey !== undefined) usable(() => requireSignature(manifest, publicKey));
      return manifest;
    },

    async *readTitles(manifest, retry) {
      const { name, bytes, sha256 } = fileOf(manifest, 'titles');
      const hash = createHash('sha256');
      const retries = new Retries(retry);
      let size = 0;
      while (size < bytes) {
        const before = size;
        try {
          for await (const piece of read(name, size, retry.signal)) {
            size += piece.length;
            if (size > bytes) throw damaged(name, 'it is larger than the manifest says');
            hash.update(piece);
            retries.reset();
            yield piece;
          }
          // A proxy may cut a response so that it seems to end normally.
          if (size === before) break;
        } catch (error) {
          if (!(error instanceof TemporaryFailure) || error instanceof FileMissing) throw error;
          await retries.wait(error);
        }
      }
      if (size < bytes) throw damaged(name, `it ends after ${size} of ${bytes} bytes`);
      if (hash.digest('hex') !== sha256) throw damaged(name, 'its SHA-256 is not that of the manifest');
    },
  };
}

/** Runs a check whose failure makes this copy unusable. @throws CopyUnusable */
function usable<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw new CopyUnusable(withAdvice(error as OperatorError));
  }
}

/** @returns the manifest of the newest copy @throws as readManifest() does; OperatorError when no copy is published */
export async function requireManifest(source: CopySource, retry: RetryOptions): Promise<Manifest> {
  const manifest = await source.readManifest(retry);
  if (manifest !== undefined) return manifest;
  throw new OperatorError(
    `No copy is published at ${source.url}/. If copies are elsewhere, set --copies to their URL; otherwise ask the operator ` +
      'of the service to publish them.',
  );
}

/** @returns the error of a file whose content is not what was published @param how - a clause */
export function damaged(name: string, how: string): CopyUnusable {
  return new CopyUnusable(
    `The file ${name} of the published copy is damaged: ${how}. Ask the operator of the service to publish a new one.`,
  );
}
