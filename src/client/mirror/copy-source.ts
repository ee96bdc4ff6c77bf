import { createHash, type KeyObject } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import {
  CopyUnusable,
  fileOf,
  MANIFEST_NAME,
  MAX_MANIFEST_BYTES,
  parseManifest,
  type Manifest,
} from '../../copies/manifest.js';
import { requireSignature } from '../../copies/signature.js';
import { OperatorError } from '../../errors.js';
import { authorize, failureOf, unreachable } from '../client.js';
import { parseRetryAfter, Retries, retrying, TemporaryFailure, type RetryOptions } from '../retry.js';
import { printable } from '../../platform/text/plain-text.js';

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

/** The part of a file that an earlier run has downloaded. */
export interface PartialFile {
  /** Reads it in its order. */
  read(): AsyncIterable<Buffer>;
  /** Adds a piece. @param end - the place after it, in bytes */
  add(end: number, piece: Buffer): Promise<void>;
}

/** There is no such file. */
class FileMissing extends TemporaryFailure {}

const DEFAULT_IDLE_MS = 30_000;

/** Published copies of one service. */
export class CopySource {
  /** Where they are, without a slash at the end. */
  readonly url: string;
  readonly #options: CopySourceOptions;
  /** Whether the service itself has them. */
  readonly #isOwn: boolean;
  readonly #headers: Readonly<Record<string, string>>;

  /** Whether only signed copies are accepted. */
  readonly requiresSignature: boolean;

  /** @throws OperatorError when the key cannot be a key */
  constructor(options: CopySourceOptions) {
    this.url = options.copiesUrl;
    this.requiresSignature = options.publicKey !== undefined;
    this.#options = options;
    this.#isOwn = new URL(options.copiesUrl).origin === new URL(options.baseUrl).origin;
    this.#headers = this.#isOwn ? { ...authorize(options.key) } : {};
  }

  /**
   * Downloads the manifest of the newest copy and checks whose it is.
   *
   * @returns undefined when no copy is published
   * @throws CopyUnusable, or OperatorError when a retry cannot help or the retry policy gives up
   */
  async fetchManifest(retry: RetryOptions): Promise<Manifest | undefined> {
    const { baseUrl, publicKey } = this.#options;
    const content = await retrying(retry, () =>
      buffer(this.#download(MANIFEST_NAME, 0, MAX_MANIFEST_BYTES, retry.signal)).catch((error: unknown) => {
        if (error instanceof FileMissing) return undefined;
        throw error;
      }),
    );
    if (content === undefined) return undefined;
    const manifest = parseManifest(content.toString());
    if (manifest.base_url !== baseUrl) {
      const message = `The copy at ${this.url}/ belongs to ${printable(manifest.base_url)}, not to ${baseUrl}.`;
      throw new OperatorError(message, { advice: 'Use the copies of the service that you mirror.' });
    }
    if (publicKey !== undefined) requireSignature(manifest, publicKey);
    return manifest;
  }

  /**
   * Downloads the compressed file of titles, and continues where a download was cut. The end is reached only if size
   * and hash are those of the manifest, so the reader must not use the rows before.
   *
   * @param kept - the downloads of an earlier run, and where further ones are kept
   * @throws as fetchManifest() does; TemporaryFailure when the file is gone, so that a newer manifest names another
   */
  async *downloadTitles(manifest: Manifest, retry: RetryOptions, kept?: PartialFile): AsyncGenerator<Buffer> {
    const { name, bytes, sha256 } = fileOf(manifest, 'titles');
    const hash = createHash('sha256');
    const retries = new Retries(retry);
    let size = 0;
    for await (const piece of kept?.read() ?? []) {
      size += piece.length;
      hash.update(piece);
      yield piece;
    }
    while (size < bytes) {
      const before = size;
      try {
        for await (const piece of this.#download(name, size, bytes, retry.signal)) {
          size += piece.length;
          hash.update(piece);
          retries.reset();
          await kept?.add(size, piece);
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
  }

  /**
   * Downloads a file from a place on. Each wait for the next bytes has a bound; the time that the reader takes does not
   * count.
   *
   * @param limit - the largest size of the file, in bytes
   */
  async *#download(name: string, from: number, limit: number, signal: AbortSignal): AsyncGenerator<Buffer> {
    const { idleMs = DEFAULT_IDLE_MS } = this.#options;
    const url = `${this.url}/${name}`;
    const exchange = new AbortController();
    const end = (): void => exchange.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    const startWait = (): NodeJS.Timeout =>
      setTimeout(() => exchange.abort(new Error(`no data within ${idleMs / 1000} s`)), idleMs);
    let wait = startWait();
    try {
      signal.throwIfAborted();
      const response = await fetch(url, {
        headers: {
          ...this.#headers,
          // The files are compressed themselves. With a range, fetch() requests that automatically.
          ...(from > 0 ? { Range: `bytes=${from}-` } : { 'Accept-Encoding': 'identity' }),
        },
        signal: exchange.signal,
        // Only a redirect without a key may leave the host.
        redirect: this.#isOwn ? 'manual' : 'follow',
      });
      // Nothing follows.
      if (response.status === 416 && from > 0) return;
      if (!response.ok || response.body === null) throw await this.#failureOf(url, response);
      // Which fetch() has decoded, as is right only for the manifest.
      if (name !== MANIFEST_NAME && (response.headers.get('Content-Encoding') ?? 'identity') !== 'identity') {
        throw new CopyUnusable(`${url} has a Content-Encoding.`, {
          advice: 'Configure its server to send files unmodified.',
        });
      }
      // A server may ignore the range and send the whole file, or send another part.
      const [, start] = /^bytes (\d+)-/.exec(response.headers.get('Content-Range') ?? '') ?? [];
      let place = response.status === 206 ? Number(start) : 0;
      if (!(place <= from)) throw new TemporaryFailure(`The server of ${url} sent another part of it than requested.`);
      for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
        clearTimeout(wait);
        const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).subarray(Math.max(0, from - place));
        place += bytes.length;
        if (place > limit) throw damaged(name, `it is larger than ${limit} bytes`);
        if (piece.length > 0) yield piece;
        wait = startWait();
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error instanceof OperatorError ? error : unreachable(`Cannot download ${url}`, error);
    } finally {
      clearTimeout(wait);
      signal.removeEventListener('abort', end);
      exchange.abort();
    }
  }

  async #failureOf(url: string, response: Response): Promise<OperatorError> {
    const { status, headers } = response;
    if (status === 404) {
      return new FileMissing(`${url} is not available.`, { advice: 'If a newer copy was just published, try again.' });
    }
    if (this.#isOwn) return failureOf(response);
    const message = `Cannot download ${url}: the server responded with ${status}.`;
    return status >= 500 || status === 429
      ? new TemporaryFailure(message, { retryAfterMs: parseRetryAfter(headers.get('Retry-After'), Date.now()) })
      : new OperatorError(message, { advice: 'Check --copies, and that the files are publicly readable.' });
  }
}

/** @returns the manifest of the newest copy @throws as fetchManifest() does; OperatorError when no copy is published */
export async function requireManifest(source: CopySource, retry: RetryOptions): Promise<Manifest> {
  const manifest = await source.fetchManifest(retry);
  if (manifest !== undefined) return manifest;
  throw new OperatorError(`No copy is published at ${source.url}/.`, {
    advice:
      'If copies are elsewhere, set --copies to their URL; otherwise ask the operator of the service to publish them.',
  });
}

/** @returns the error of a file whose content differs from the published one @param how - a clause */
export function damaged(name: string, how: string): CopyUnusable {
  return new CopyUnusable(`The file ${name} of the published copy is damaged: ${how}.`);
}
