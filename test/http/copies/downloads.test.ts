import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open, readdir, readlink, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, get as httpGet, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { join } from 'node:path';
import { formatManifest } from '../../../src/copies/manifest.js';
import { createDownloads } from '../../../src/http/copies/downloads.js';
import { eventually } from '../../support/eventually.js';
import { assertProblem } from '../../support/problem.js';
import { send, type Reply } from '../../support/request.js';
import type { TestService } from '../../support/service.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { testWorld } from '../../support/world.js';
import { sampleManifest } from '../../copies/sample-manifest.js';

const STALLED_TIMEOUT_MS = 500;

/** More than the system buffers for a client that does not read, in bytes. */
const LARGE = 32 * 1024 * 1024;

describe('downloads of published copies', () => {
  const world = testWorld();
  let folder: string;
  let service: TestService;

  before(async () => {
    folder = await temporaryFolder();
    service = await world.startService({ settings: { COPIES_DIR: folder, SITE: 'off' } });
  });

  /** Publishes a large file. @returns its name */
  async function publish(): Promise<string> {
    const manifest = sampleManifest();
    const files = manifest.files.map((file) => ({ ...file, bytes: LARGE }));
    const name = files[0]?.name ?? '';
    await rm(join(folder, name), { force: true });
    await (await open(join(folder, name), 'w')).close();
    // Of nothing but zeros, without a place on the disk.
    await truncate(join(folder, name), LARGE);
    await writeFile(join(folder, 'manifest.json'), formatManifest({ ...manifest, files }));
    return name;
  }

  function get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return send(service.url, `/copies/${path}`, { headers: { authorization: `Bearer ${service.key}`, ...headers } });
  }

  it('a file that disappears while it is read is still sent whole, and one that is cut short ends the connection', async () => {
    const large = await publish();
    const path = join(folder, large);
    const begun = (): Promise<Response> =>
      fetch(`${service.url}/copies/${large}`, { headers: { authorization: `Bearer ${service.key}` } });
    const whole = await begun();
    await rm(path);
    assert.equal((await whole.arrayBuffer()).byteLength, LARGE);
    await publish();
    const cut = await begun();
    await truncate(path, 1024);
    await assert.rejects(cut.arrayBuffer(), /terminated/);
    assertProblem(await get(large), 'not_found', { detail: /is no longer published/ });
  });

  it('a reader that stops reading is cut off, memory stays flat, and no file stays open', async () => {
    const large = await publish();
    const impatient = await world.startService({
      settings: { COPIES_DIR: folder, SITE: 'off' },
      serverLimits: { stalledTimeoutMs: STALLED_TIMEOUT_MS },
    });
    const memory = process.memoryUsage().arrayBuffers;
    const socket = connect(Number(new URL(impatient.url).port), '127.0.0.1');
    socket.write(`GET /copies/${large} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
    socket.once('readable', () => undefined);
    const closed = new Promise((resolve) => socket.once('close', resolve).once('error', () => undefined));
    await eventually('the response has begun', () => socket.readableLength > 0);
    assert.ok(process.memoryUsage().arrayBuffers - memory < LARGE / 2);
    await eventually('the server has cut the connection', () =>
      // The log has a line for a request once its connection is closed.
      impatient.logged.some((line) => line.includes('"aborted":true')),
    );
    socket.resume();
    await closed;
    assert.deepEqual(await openFiles(large), []);
  });

  it('a server sends a developer four files at the same time, and 32 in all', async () => {
    const large = await publish();
    const developers = await Promise.all(
      Array.from({ length: 9 }, async () => ({ authorization: `Bearer ${(await world.newKey()).key}` })),
    );
    const [first = {}] = developers;
    const last = developers.pop() ?? {};
    const responses = await Promise.all(developers.flatMap((headers) => [1, 2, 3, 4].map(() => begin(large, headers))));
    assertProblem(await get(large, first), 'rate_limit_exceeded', {
      detail: /^This server is already sending you 4 files/,
      headers: { 'retry-after': '10', 'repr-digest': undefined },
    });
    assertProblem(await get(large, last), 'service_unavailable', {
      detail: /Too many downloads are running/,
      headers: { 'retry-after': '2' },
    });
    assert.equal((await get('manifest.json', last)).status, 200);
    for (const response of responses) response.destroy();
    await eventually('the files are free again', async () => {
      const ranges = [first, last].map((headers) => get(large, { ...headers, range: 'bytes=0-9' }));
      return (await Promise.all(ranges)).every(({ status }) => status === 206);
    });
  });

  it('clients that leave at once leave no file open and no place taken', async () => {
    const large = await publish();
    const { port } = new URL(service.url);
    for (let client = 0; client < 20; client++) {
      const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(`GET /copies/${large} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
      // At another moment of the answer each time.
      for (let turn = 0; turn < client; turn++) await setImmediate();
      socket.resetAndDestroy();
    }
    await eventually('every file is closed', async () => (await openFiles(large)).length === 0);
    await eventually('the place is free', async () => (await get(large, { range: 'bytes=0-9' })).status === 206);
  });

  /** @returns the descriptors of this process that have a file of this name; none where the system lists none */
  async function openFiles(name: string): Promise<string[]> {
    if (!existsSync('/proc/self/fd')) return [];
    const links = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''));
    return (await Promise.all(links)).filter((path) => path.includes(name));
  }

  /** Starts to download a file and does not read it. */
  async function begin(name: string, headers: Record<string, string>): Promise<IncomingMessage> {
    const request = httpGet(`${service.url}/copies/${name}`, { headers, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    return response;
  }

  it('a response that takes longer than its bound is cut', async () => {
    const path = join(folder, await publish());
    const downloads = createDownloads(100);
    const server = createServer((_request, res) => {
      void open(path)
        .then((handle) => downloads.stream({ res, state: { caller: undefined } } as never, handle, 0, LARGE))
        .then((stream) => pipeline(stream, res.setHeader('Content-Length', LARGE)))
        .catch(() => undefined);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/`);
    const reader = response.body?.getReader();
    await reader?.read();
    // A reader that does not read on sees the end once it does.
    await new Promise((resolve) => server.close(resolve));
    await assert.rejects(async () => {
      for (;;) if ((await reader?.read())?.done !== false) return;
    });
  });
});
