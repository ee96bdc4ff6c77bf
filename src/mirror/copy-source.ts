import { createHash, type KeyObject } from 'node:crypto';
import { Readable } from 'node:stream';
import { fileOf, MANIFEST_NAME, MAX_MANIFEST_BYTES, parseManifest, type Manifest } from '../copies/manifest.js';
import { requireSignature } from '../copies/signature.js';
import { OperatorError } from '../errors.js';
import { authorize, failureOf, parseJson, unreachable, type Failure } from '../follower/client.js';

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

/** A copy cannot be read now. A later attempt may succeed. */
export class CopyUnavailable extends OperatorError {
  constructor(
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

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
   * Reads the compressed file of titles. Its end is reached only if size and hash are those of the manifest, so the
   * reader must not use the rows before.
   *
   * @throws CopyUnavailable, CopyUnusable, or OperatorError when a retry cannot help
   */
  readTitles(manifest: Manifest, signal: AbortSignal): AsyncGenerator<Buffer>;
}

const DEFAULT_IDLE_MS = 30_000;

/** @throws OperatorError when the key cannot be a key */
export function createCopySource(options: CopySourceOptions): CopySource {
  const { baseUrl, copiesUrl, publicKey, idleMs = DEFAULT_IDLE_MS } = options;
  const isOwn = new URL(copiesUrl).origin === new URL(baseUrl).origin;
  const headers = isOwn ? authorize(options.key) : {};

  /** Gets a file piece by piece. @returns undefined if there is no such file */
  async function open(name: string, signal: AbortSignal): Promise<AsyncGenerator<Buffer> | undefined> {
    const exchange = new AbortController();
    const end = (): void => exchange.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    let timer: NodeJS.Timeout | undefined;
    const wait: Wait = {
      begin: () => {
        timer = setTimeout(() => exchange.abort(new Error(`no data within ${idleMs / 1000} s`)), idleMs);
      },
      end: () => clearTimeout(timer),
    };
    const close = (): void => {
      wait.end();
      signal.removeEventListener('abort', end);
      exchange.abort();
    };
    wait.begin();
    try {
      signal.throwIfAborted();
      const response = await fetch(`${copiesUrl}/${name}`, {
        headers,
        signal: exchange.signal,
        // Only a redirect without a key may leave the host.
        redirect: isOwn ? 'manual' : 'follow',
      });
      if (response.status === 200 && response.body !== null) {
        const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
        return pieces(body as AsyncIterable<Buffer>, wait, close, signal);
      }
      const text = await response.text();
      close();
      if (response.status === 404) return undefined;
      throw temporary(failureOf(response, parseJson(text)));
    } catch (error) {
      close();
      signal.throwIfAborted();
      throw error instanceof OperatorError ? error : temporary(unreachable(error));
    }
  }

  return {
    async readManifest(signal) {
      const text = await open(MANIFEST_NAME, signal).then(readManifestText);
      if (text === undefined) return undefined;
      const manifest = usable(() => parseManifest(text));
      if (manifest.base_url !== baseUrl) {
        throw new OperatorError(
          `The copy at ${copiesUrl}/ is of ${manifest.base_url}, not of ${baseUrl}. Use the copies of the service that you follow.`,
        );
      }
      if (publicKey !== undefined) usable(() => requireSignature(manifest, publicKey));
      return manifest;
    },

    async *readTitles(manifest, signal) {
      const { name, bytes, sha256 } = fileOf(manifest, 'titles');
      const file = await open(name, signal);
      if (file === undefined) throw new CopyUnavailable(`The file ${name} of the published copy does not exist.`);
      const hash = createHash('sha256');
      let size = 0;
      for await (const piece of file) {
        size += piece.length;
        if (size > bytes) throw damaged(name, 'it is larger than the manifest says');
        hash.update(piece);
        yield piece;
      }
      if (size < bytes) throw damaged(name, `it ends after ${size} of ${bytes} bytes`);
      if (hash.digest('hex') !== sha256) throw damaged(name, 'its SHA-256 is not that of the manifest');
    },
  };
}

/** A bounded wait for the next bytes. */
interface Wait {
  begin(): void;
  end(): void;
}

/** Yields a body. Each wait for the next bytes has a bound; the time that the reader takes does not count. */
async function* pieces(
  body: AsyncIterable<Buffer>,
  wait: Wait,
  close: () => void,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    for await (const piece of body) {
      wait.end();
      yield piece;
      wait.begin();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw temporary(unreachable(error));
  } finally {
    close();
  }
}

async function readManifestText(body: AsyncGenerator<Buffer> | undefined): Promise<string | undefined> {
  if (body === undefined) return undefined;
  const read: Buffer[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.length;
    if (size > MAX_MANIFEST_BYTES) throw new CopyUnusable('The manifest is not valid: it is too large.');
    read.push(piece);
  }
  return Buffer.concat(read).toString();
}

/** Turns the error of a check into that of a copy which another may replace. */
function usable<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw new CopyUnusable((error as Error).message);
  }
}

function temporary({ reason, retryAfterMs }: Failure): CopyUnavailable {
  return new CopyUnavailable(`${reason}.`, retryAfterMs);
}

function damaged(name: string, how: string): CopyUnusable {
  return new CopyUnusable(`The file ${name} of the published copy is damaged: ${how}.`);
}
