import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { open, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { createDownloads } from '../../src/http/copies/downloads.js';
import { temporaryFolder } from '../support/temporary-folder.js';

describe('downloads of published copies', () => {
  it('a response that takes longer than its bound is cut', async () => {
    const file = join(await temporaryFolder(), 'file');
    const length = 32 * 1024 * 1024;
    await writeFile(file, Buffer.alloc(length));
    const downloads = createDownloads(100);
    const server = createServer((_request, res) => {
      void open(file)
        .then((handle) => downloads.stream({ res, state: { caller: undefined } } as never, handle, 0, length))
        .then((stream) => stream.pipe(res.setHeader('Content-Length', length)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/`);
    const reader = response.body?.getReader();
    await reader?.read();
    const started = performance.now();
    // A reader that does not read on sees the end once it does.
    await new Promise((resolve) => server.close(resolve));
    assert.ok(performance.now() - started < 10_000);
    await assert.rejects(async () => {
      for (;;) if ((await reader?.read())?.done !== false) return;
    });
  });
});
