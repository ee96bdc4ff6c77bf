import type { KeyObject } from 'node:crypto';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import type { Knex } from 'knex';
import { publishCopy } from '../../../src/catalog/export/publish.js';
import type { CopyFolder } from '../../../src/copies/copy-folder.js';
import { formatManifest, MANIFEST_NAME, type Manifest } from '../../../src/copies/manifest.js';
import { listenLocally, type LocalServer } from '../../support/http/local-server.js';

/** A static host of copies, whose files a test can damage. */
export interface CopyHost extends LocalServer {
  readonly files: Map<string, Buffer>;
  /** Statuses that paths are refused with. */
  readonly refusals: Map<string, number>;
  /** The paths of the requests, the place that each asks to begin from, and whether it had a key. */
  readonly requests: { readonly path: string; readonly from: number; readonly hasKey: boolean }[];
  /** How much of a file a response has before it stops, in bytes. The manifest is whole. */
  sendsAtMost: number;
  /** Publishes a catalogue. @returns its manifest */
  publish(catalogue: { readonly url: string; readonly db: Knex }, signedBy?: KeyObject): Promise<Manifest>;
}

export async function startCopyHost(): Promise<CopyHost> {
  const files = new Map<string, Buffer>();
  const requests: CopyHost['requests'] = [];
  const refusals = new Map<string, number>();
  let time = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    const [, start] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? [];
    const from = Number(start ?? 0);
    requests.push({ path, from, hasKey: request.headers.authorization !== undefined });
    const file = files.get(path.slice(1))?.subarray(from);
    response.statusCode = refusals.get(path) ?? (file === undefined ? 404 : start === undefined ? 200 : 206);
    if (start !== undefined) response.setHeader('content-range', `bytes ${from}-/*`);
    // As hosts do with JSON.
    const isCompressed = file !== undefined && path === `/${MANIFEST_NAME}`;
    if (isCompressed) response.setHeader('content-encoding', 'gzip');
    if (isCompressed || file === undefined || file.length <= host.sendsAtMost) {
      response.end(isCompressed ? gzipSync(file) : file);
    } else {
      response.setHeader('content-length', file.length);
      response.write(file.subarray(0, host.sendsAtMost));
    }
  });
  const host: CopyHost = {
    ...(await listenLocally(server)),
    sendsAtMost: Infinity,
    files,
    refusals,
    requests,
    publish({ url, db }, signingKey) {
      const written = new Map<string, Buffer>();
      const { signal } = new AbortController();
      const folder: CopyFolder = {
        lost: signal,
        nextTime: (nowMs) => new Date((time = Math.max(nowMs, time + 1))),
        write: async (kind, pieces) => void written.set(kind, await buffer(pieces)),
        publish(manifest) {
          for (const { kind, name } of manifest.files) files.set(name, written.get(kind) ?? Buffer.alloc(0));
          files.set(MANIFEST_NAME, Buffer.from(formatManifest(manifest)));
          return Promise.resolve();
        },
        close: () => Promise.resolve(),
      };
      return publishCopy(db, { folder, baseUrl: url, signingKey, signal });
    },
  };
  return host;
}
