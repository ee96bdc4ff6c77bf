import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Manifest } from '../../src/copies/manifest.js';
import { CopyUnavailable, createCopySource } from '../../src/mirror/copy-source.js';

/** The bound of the tests, in milliseconds. */
const IDLE_MS = 200;

const MANIFEST: Manifest = {
  version: 1,
  created_at: '2026-11-20T23:40:07.000Z',
  base_url: 'http://127.0.0.1',
  position: 1795218005.123456,
  files: [
    {
      kind: 'titles',
      name: 'titles-1.ndjson.gz',
      bytes: 1_000,
      rows: 1,
      sha256: '0'.repeat(64),
      columns: ['svc_id', 'media_type', 'title', 'updated_at', 'has_bundles'],
    },
  ],
};

/** How a server stops responding. */
const STALLS: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  'before its header': () => undefined,
  'in the middle of its body': (response) => response.writeHead(200, { 'content-length': 1_000 }).write('half'),
};

describe('a copy from a server that stops responding', () => {
  for (const [when, respond] of Object.entries(STALLS)) {
    it(`a download that stalls ${when} is given up, and may be repeated`, async () => {
      const server = createServer((_request, response) => void respond(response)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const source = createCopySource({ baseUrl: url, copiesUrl: url, key: 'svc_key', idleMs: IDLE_MS });
      try {
        await assert.rejects(
          readAll(source.readTitles(MANIFEST, new AbortController().signal)),
          (error: unknown) => error instanceof CopyUnavailable && error.message.includes('no data within 0.2 s'),
        );
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });
  }
});

async function readAll(pieces: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const read: Buffer[] = [];
  for await (const piece of pieces) read.push(piece);
  return read;
}
