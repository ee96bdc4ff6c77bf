import { createHash, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Knex } from 'knex';
import { COPY_COLUMNS, formatManifest, MANIFEST_NAME, type Manifest } from '../../src/copies/manifest.js';
import { signManifest } from '../../src/copies/signature.js';
import { fromRfc3339, toSeconds } from '../../src/platform/time/micros.js';

/** A static host of copies, whose files a test can damage. */
export interface CopyHost {
  readonly url: string;
  readonly files: Map<string, Buffer>;
  /** Statuses that paths are refused with. */
  readonly refusals: Map<string, number>;
  /** The paths of the requests, and whether each had a key. */
  readonly requests: { readonly path: string; readonly hasKey: boolean }[];
  /** Publishes the titles of a catalogue. @returns its manifest */
  publish(catalogue: { readonly url: string; readonly db: Knex }, signedBy?: KeyObject): Promise<Manifest>;
  close(): Promise<void>;
}

export async function startCopyHost(): Promise<CopyHost> {
  const files = new Map<string, Buffer>();
  const requests: CopyHost['requests'] = [];
  const refusals = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    requests.push({ path, hasKey: request.headers.authorization !== undefined });
    const file = files.get(path.slice(1));
    response.statusCode = refusals.get(path) ?? (file === undefined ? 404 : 200);
    // As hosts do with JSON.
    const isCompressed = file !== undefined && path === `/${MANIFEST_NAME}`;
    if (isCompressed) response.setHeader('content-encoding', 'gzip');
    response.end(isCompressed ? gzipSync(file) : file);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    files,
    refusals,
    requests,
    async publish(catalogue, signedBy) {
      const { manifest, text } = await copyOf(catalogue);
      const [file] = manifest.files;
      files.set(file?.name ?? '', text);
      const signed = signedBy === undefined ? manifest : signManifest(manifest, signedBy);
      files.set(MANIFEST_NAME, Buffer.from(formatManifest(signed)));
      return signed;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function copyOf({
  url,
  db,
}: {
  readonly url: string;
  readonly db: Knex;
}): Promise<{ manifest: Manifest; text: Buffer }> {
  // One statement sees one moment.
  const { rows } = await db.raw<{ rows: [{ newest: string; lines: string | null; count: number }] }>(
    `select greatest((select max(updated_at) from titles), (select beginning from catalog_feed)) as newest,
            (select count(*) from titles) as count,
            (select string_agg(row_to_json(r)::text || chr(10), '' order by svc_id collate "C") from (
               select svc_id, media_type, title, has_bundles,
                      to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as updated_at
                 from titles) r) as lines`,
  );
  const [{ newest, lines, count }] = rows;
  const micros = fromRfc3339(newest);
  const text = gzipSync(lines ?? '');
  const manifest: Manifest = {
    version: 1,
    created_at: new Date().toISOString(),
    base_url: url,
    position: toSeconds(micros),
    files: [
      {
        kind: 'titles',
        name: `titles-${micros}.ndjson.gz`,
        bytes: text.length,
        rows: count,
        sha256: createHash('sha256').update(text).digest('hex'),
        columns: COPY_COLUMNS.titles,
      },
    ],
  };
  return { manifest, text };
}
