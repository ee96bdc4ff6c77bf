import { createHash, type KeyObject } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fileOf, MANIFEST_NAME, MAX_MANIFEST_BYTES, parseManifest, type Manifest } from '../copies/manifest.js';
import { requireSignature } from '../copies/signature.js';
import { OperatorError } from '../errors.js';
import { authorize, failureOf, parseJson, unreachable, type Failure } from '../follower/client.js';
import { DEFAULT_PATIENCE, parseRetryAfter, waitAfterFailure, type Patience } from '../follower/retry.js';

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
  /** How long to wait before a download that was cut is continued. */
  readonly patience?: Patience;
}

/** A copy cannot be read now. A later attempt may succeed. */
export class CopyUnavailable extends OperatorError {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/** There is no such file. */
class FileMissing extends CopyUnavailable {}

/** A copy cannot be used until the operator of the service publishes another. */
export class CopyUnusable extends OperatorError {}

/** Published copies of one service. */
export interface CopySource {
  /**
   * Reads the manifest of the newest copy and checks whose it is.
   *
   * @returns undefined when no copy is published
   * @throws CopyUnavailable, CopyUnusable, or OperatorError when a retry cannot help
   */
  readManifest(signal: AbortSignal): Promise<Manifest | undefined>;
  /**
   * Reads the compressed file of titles, and continues where a download was cut. The end is reached only if size and hash
   * are those of the manifest, so the reader must not use the rows before.
   *
   * @throws CopyUnavailable, CopyUnusable, or OperatorError when a retry cannot help
   */
  readTitles(manifest: Manifest, signal: AbortSignal): AsyncGenerator<Buffer>;
}

const DEFAULT_IDLE_MS = 30_000;

/** How often in a row a download is continued without receiving a byte. */
const MOST_RESUMES = 5;

/** @throws OperatorError when the key cannot be a key */
export function createCopySource(options: CopySourceOptions): CopySource {
  const { baseUrl, copiesUrl, publicKey, idleMs = DEFAULT_IDLE_MS, patience = DEFAULT_PATIENCE } = options;
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
        headers: from > 0 ? { ...headers, Range: `bytes=${from}-` } : headers,
        signal: exchange.signal,
        // Only a redirect without a key may leave the host.
        redirect: isOwn ? 'manual' : 'follow',
      });
      if (response.status === 404) throw new FileMissing(`There is no ${copiesUrl}/${name}.`);
      // Nothing follows.
      if (response.status === 416 && from > 0) return;
      if (!response.ok || response.body === null) throw await failed(name, response);
      // fetch() decodes it, which is right for the manifest alone: the files are compressed themselves.
      if (name !== MANIFEST_NAME && response.headers.has('Content-Encoding')) {
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
      throw error instanceof OperatorError ? error : unavailable(unreachable(error));
    } finally {
      clearTimeout(wait);
      signal.removeEventListener('abort', end);
      exchange.abort();
    }
  }

  async function failed(name: string, response: Response): Promise<CopyUnavailable> {
    if (isOwn) return unavailable(failureOf(response, parseJson(await response.text())));
    const { status } = response;
    const reason = `${copiesUrl}/${name} cannot be read: the server responded with ${status}`;
    if (status >= 500 || status === 429) {
      return unavailable({ reason, retryAfterMs: parseRetryAfter(response.headers.get('Retry-After'), Date.now()) });
    }
    throw new OperatorError(`${reason}. Check --copies, and that the files are publicly readable.`);
  }

  return {
    async readManifest(signal) {
      const pieces: Buffer[] = [];
      let size = 0;
      try {
        for await (const piece of read(MANIFEST_NAME, 0, signal)) {
          size += piece.length;
          if (size > MAX_MANIFEST_BYTES) throw new CopyUnusable('The manifest is not valid: it is too large.');
          pieces.push(piece);
        }
      } catch (error) {
        if (error instanceof FileMissing) return undefined;
        throw error;
      }
      const manifest = usable(() => parseManifest(Buffer.concat(pieces).toString()));
      if (manifest.base_url !== baseUrl) {
        throw new OperatorError(
          `The copy at ${copiesUrl}/ belongs to ${manifest.base_url}, not to ${baseUrl}. Use the copies of the service that you mirror.`,
        );
      }
      if (publicKey !== undefined) usable(() => requireSignature(manifest, publicKey));
      return manifest;
    },

    async *readTitles(manifest, signal) {
      const { name, bytes, sha256 } = fileOf(manifest, 'titles');
      const hash = createHash('sha256');
      let size = 0;
      for (let cuts = 0; size < bytes;) {
        const before = size;
        try {
          for await (const piece of read(name, size, signal)) {
            size += piece.length;
            if (size > bytes) throw damaged(name, 'it is larger than the manifest says');
            hash.update(piece);
            cuts = 0;
            yield piece;
          }
          // A proxy may cut a response so that it seems to end normally.
          if (size === before) break;
        } catch (error) {
          cuts += 1;
          const isCut = error instanceof CopyUnavailable && size > 0 && cuts <= MOST_RESUMES;
          if (!isCut) throw error;
          await delay(waitAfterFailure(cuts, error.retryAfterMs, patience, Math.random()), undefined, { signal });
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
    throw new CopyUnusable((error as Error).message);
  }
}

/** @returns the error of a failure that may be temporary */
export function unavailable({ reason, retryAfterMs }: Omit<Failure, 'kind'>): CopyUnavailable {
  return new CopyUnavailable(`${reason}.`, retryAfterMs);
}

function damaged(name: string, how: string): CopyUnusable {
  return new CopyUnusable(`The file ${name} of the published copy is damaged: ${how}.`);
}
