import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Manifest } from '../../../../src/copies/manifest.js';
import { CopySource } from '../../../../src/client/mirror/copy-source.js';
import { sampleManifest } from '../../../copies/sample-manifest.js';
import { listenLocally } from '../../../support/http/local-server.js';

/** Bound on the wait for a server that stalls, in milliseconds. */
const IDLE_MS = 200;

const RETRY_POLICY = { firstMs: 1, longestMs: 5, giveUpAfterMs: 8 };

const FILE = randomBytes(100_000);

const MANIFEST: Manifest = {
  ...sampleManifest(),
  files: sampleManifest().files.map((file) => ({
    ...file,
    bytes: FILE.length,
    sha256: createHash('sha256').update(FILE).digest('hex'),
  })),
};

/** How a server stops responding. */
const STALLS: readonly ((response: ServerResponse) => unknown)[] = [
  () => undefined,
  (response) => response.writeHead(200, { 'content-length': 1_000 }).write('half'),
];

/** After so many bytes a server cuts each response: more often than failures in a row would be waited for. */
const CUT = 2_000;

/** Servers that cut each response. */
const CUTTING: Readonly<Record<string, (from: number, response: ServerResponse) => void>> = {
  'from the next byte, as asked': (from, response) => {
    const range = from === 0 ? {} : { 'content-range': `bytes ${from}-${FILE.length - 1}/${FILE.length}` };
    response.writeHead(from === 0 ? 200 : 206, { 'content-length': FILE.length - from, ...range });
    response.write(FILE.subarray(from, from + CUT), () => response.destroy());
  },
  'after an end that seems to be in order': (from, response) => {
    response.writeHead(200, { connection: 'close' }).end(FILE.subarray(0, from + CUT));
  },
  // Each response reaches further than the last one.
  'from the beginning, whatever was asked': (from, response) => {
    response.writeHead(200, { 'content-length': FILE.length });
    response.write(FILE.subarray(0, from + CUT), () => response.destroy());
  },
};

describe('the download of a copy', () => {
  async function download(
    respond: (request: IncomingMessage, response: ServerResponse) => unknown,
    idleMs?: number,
    read: (piece: Buffer) => unknown = () => undefined,
  ): Promise<Buffer> {
    const { url, stop } = await listenLocally(createServer((request, response) => void respond(request, response)));
    const source = new CopySource({
      baseUrl: url,
      copiesUrl: url,
      key: 'svc_key',
      ...(idleMs === undefined ? {} : { idleMs }),
    });
    const pieces: Buffer[] = [];
    try {
      for await (const piece of source.downloadTitles(MANIFEST, {
        retryPolicy: RETRY_POLICY,
        signal: new AbortController().signal,
      })) {
        await read(piece);
        pieces.push(piece);
      }
    } finally {
      await stop();
    }
    return Buffer.concat(pieces);
  }

  it('a download of a copy is repeated, and given up, if the server stalls before its header or in the body', async () => {
    for (const respond of STALLS) {
      let requests = 0;
      await assert.rejects(
        download((_request, response) => {
          requests += 1;
          respond(response);
        }, IDLE_MS),
        /^OperatorError: Cannot download http:.*titles-1795474200123456\.ndjson\.gz: no data within 0\.2 s\. Gave up/,
      );
      assert.ok(requests > 1);
    }
  });

  it('a reader that takes longer over a piece than the server may be silent, such as a slow database, ends no download', async () => {
    let [requests, pieces] = [0, 0];
    const received = await download(
      (_request, response) => {
        requests += 1;
        response.writeHead(200, { 'content-length': FILE.length });
        response.write(FILE.subarray(0, CUT), () => response.end(FILE.subarray(CUT)));
      },
      IDLE_MS,
      () => (pieces++ === 0 ? delay(2 * IDLE_MS) : undefined),
    );
    assert.ok(received.equals(FILE));
    assert.equal(requests, 1);
  });

  it('a copy that is sent with a Content-Encoding is refused', async () => {
    await assert.rejects(
      download((_request, response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(FILE))),
      {
        message: /titles-1795474200123456\.ndjson\.gz has a Content-Encoding\.$/,
        advice: 'Configure its server to send files unmodified.',
      },
    );
  });

  it('a download of a copy continues where it was cut, and is complete however the server sends the rest', async () => {
    for (const [how, respond] of Object.entries(CUTTING)) {
      const ranges: string[] = [];
      const received = await download((request, response) => {
        const { range = '', 'accept-encoding': coding } = request.headers;
        assert.equal(coding, 'identity');
        ranges.push(range);
        respond(Number(/\d+/.exec(range)?.[0] ?? 0), response);
      });
      assert.ok(received.equals(FILE), how);
      assert.deepEqual(ranges.slice(0, 2), ['', `bytes=${CUT}-`]);
    }
  });

  /** Parts that a server sends in place of the one from a place, by their `Content-Range`. */
  const OTHER_PARTS: Readonly<Record<string, (from: number) => readonly [range: string | undefined, part: Buffer]>> = {
    'an earlier one': (from) => [`bytes ${from - 100}-${FILE.length - 1}/${FILE.length}`, FILE.subarray(from - 100)],
    'a later one': (from) => [`bytes ${from + 100}-${FILE.length - 1}/${FILE.length}`, FILE.subarray(from + 100)],
    'one whose place begins alike': (from) => [
      `bytes ${from}0-${FILE.length - 1}/${FILE.length}`,
      FILE.subarray(from * 10),
    ],
    'one from the beginning': () => [`bytes 0-${FILE.length - 1}/${FILE.length}`, FILE],
    'one without its place': (from) => [undefined, FILE.subarray(from + 100)],
    'several at once': () => [undefined, FILE.subarray(0, 500)],
  };

  for (const [what, answer] of Object.entries(OTHER_PARTS)) {
    it(`a download of a copy joins only what belongs together if a server sends another part, ${what}`, async () => {
      let requests = 0;
      const received = await download((request, response) => {
        const from = Number(/\d+/.exec(request.headers.range ?? '')?.[0] ?? 0);
        requests += 1;
        const [range, part] =
          requests === 2 ? answer(from) : [`bytes ${from}-${FILE.length - 1}/${FILE.length}`, FILE.subarray(from)];
        response.writeHead(from === 0 ? 200 : 206, {
          'content-length': part.length,
          ...(from > 0 && range !== undefined && { 'content-range': range }),
        });
        if (from === 0) response.write(FILE.subarray(0, CUT), () => response.destroy());
        else response.end(part);
      });
      assert.ok(received.equals(FILE));
      assert.ok(requests <= 3, String(requests));
    });
  }
});
