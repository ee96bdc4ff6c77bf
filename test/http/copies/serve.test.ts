import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { fileOf, parseManifest, type Manifest } from '../../../src/copies/manifest.js';
import { assertHeaders, assertProblem } from '../../support/problem.js';
import { runCommand } from '../../support/programs/command.js';
import { send, type Reply, type RequestOptions } from '../../support/request.js';
import type { TestService } from '../../support/service.js';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';

const DOCUMENT = JSON.parse(
  readFileSync(new URL('../../../generated/openapi-copies.json', import.meta.url), 'utf8'),
) as {
  components: { schemas: Record<string, object> };
};

describe('published copies over HTTP', () => {
  const world = testWorld();
  let folder: string;
  let service: TestService;
  let manifest: Manifest;
  let name: string;
  let content: Buffer;

  before(async () => {
    folder = await temporaryFolder();
    service = await world.startService({ settings: { COPIES_DIR: folder, SITE: 'off' } });
    await addTitles(world.db, 50);
    await publish();
  });

  async function publish(): Promise<void> {
    const args = ['export', '--publish', folder, '--base-url', 'https://catalog.example.com'];
    const { code, stderr } = await runCommand(args, { DATABASE_URL: world.url });
    assert.equal(code, 0, stderr);
    manifest = parseManifest(await readFile(join(folder, 'manifest.json'), 'utf8'));
    ({ name } = fileOf(manifest, 'titles'));
    content = await readFile(join(folder, name));
  }

  function get(path: string, headers: Record<string, string> = {}, options: RequestOptions = {}): Promise<Reply> {
    return send(service.url, `/copies/${path}`, {
      headers: { authorization: `Bearer ${service.key}`, ...headers },
      ...options,
    });
  }

  it('the manifest is served unchanged, to be revalidated, with its digest, and so is every file that it names', async () => {
    const text = await readFile(join(folder, 'manifest.json'), 'utf8');
    const reply = await get('manifest.json', { 'accept-encoding': 'gzip' });
    assert.deepEqual([reply.status, reply.text], [200, text]);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'cache-control': 'private, no-cache',
      'repr-digest': `sha-256=:${hash('sha256', text, 'base64')}:`,
      vary: 'Authorization, X-API-Key',
      'content-encoding': undefined,
    });
    const again = await get('manifest.json', { 'if-none-match': reply.headers.etag ?? '' });
    assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', reply.headers.etag]);
    for (const { name, sha256 } of manifest.files) assert.equal(hash('sha256', (await get(name)).bytes), sha256);
  });

  it('a file is served whole with its digest, may be kept for ever, and its HEAD has the same fields', async () => {
    const { sha256, bytes } = fileOf(manifest, 'titles');
    const expected = {
      'content-type': 'application/gzip',
      'content-length': String(bytes),
      'cache-control': 'private, max-age=31536000, immutable',
      'repr-digest': `sha-256=:${hash('sha256', content, 'base64')}:`,
      'accept-ranges': 'bytes',
      etag: `"${sha256}"`,
      vary: 'Authorization, X-API-Key',
      'content-encoding': undefined,
    };
    const reply = await get(name);
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.bytes, content);
    assertHeaders(reply, expected);
    const head = await get(name, {}, { method: 'HEAD' });
    assert.deepEqual([head.status, head.bytes.length], [200, 0]);
    assertHeaders(head, expected);
    const known = await get(name, { 'if-none-match': `"other", W/"${sha256}"`, range: 'bytes=0-1' });
    assert.deepEqual([known.status, known.bytes.length], [304, 0]);
    assertHeaders(known, { etag: expected.etag, 'cache-control': expected['cache-control'] });
  });

  it('a range continues a download, and is the whole file if the reader has a part of another file', async () => {
    const size = content.length;
    const tag = `"${fileOf(manifest, 'titles').sha256}"`;
    for (const [range, start, end] of [
      ['bytes=0-9', 0, 9],
      ['BYTES=0-9', 0, 9],
      ['bytes=10-', 10, size - 1],
      ['bytes=-5', size - 5, size - 1],
      [`bytes=1-${size + 100}`, 1, size - 1],
      [`bytes=-${size + 100}`, 0, size - 1],
    ] as const) {
      for (const condition of [{}, { 'if-range': tag }]) {
        const reply = await get(name, { range, ...condition });
        assert.equal(reply.status, 206, range);
        assert.deepEqual(reply.bytes, content.subarray(start, end + 1));
        assertHeaders(reply, { 'content-range': `bytes ${start}-${end}/${size}`, etag: tag });
        assert.ok(reply.headers['repr-digest']?.includes(hash('sha256', content, 'base64')));
      }
    }
    for (const headers of [
      { range: 'bytes=0-9', 'if-range': '"other"' },
      { range: 'bytes=0-9', 'if-range': `W/${tag}` },
      { range: 'bytes=0-9', 'if-range': 'Wed, 21 Oct 2026 07:28:00 GMT' },
      { range: 'bytes=0-1,4-5' },
      { range: 'lines=0-9' },
      { range: 'nonsense' },
    ]) {
      const reply = await get(name, headers);
      assert.deepEqual([reply.status, reply.bytes.length, reply.headers['content-range']], [200, size, undefined]);
    }
    for (const range of [`bytes=${size}-`, 'bytes=5-2', 'bytes=-0']) {
      assertProblem(await get(name, { range }), 'range_not_satisfiable', {
        detail: `The file has ${size} bytes, and the range is not within them.`,
        headers: { 'content-range': `bytes */${size}`, 'repr-digest': undefined },
      });
    }
  });

  it('only callers with a key get an answer, whether a file exists or not, and only to GET and HEAD', async () => {
    for (const path of ['manifest.json', name, 'nothing', '']) {
      const reply = await send(service.url, `/copies/${path}`);
      assertProblem(reply, 'missing_api_key', { headers: { 'www-authenticate': 'Bearer realm="catalog"' } });
      const unknown = await get(path, { authorization: 'Bearer svc_unknown' });
      assert.equal((unknown.json as { code: string }).code, 'invalid_api_key');
    }
    for (const method of ['PUT', 'DELETE', 'OPTIONS']) {
      assertProblem(await get(name, {}, { method }), 'method_not_allowed', { headers: { allow: 'GET, HEAD' } });
    }
    assert.equal(
      (await send(service.url, '/copies/manifest.json', { headers: { 'x-api-key': service.key } })).status,
      200,
    );
  });

  it('each request is charged once, whatever the size of the file, and refused when the plan is used up', async () => {
    await world
      .db('plans')
      .insert({ id: 'small', name: 'Small', requests_per_minute: 3, requests_per_day: 100, commercial_use: false });
    const { key } = await world.newKey({ planId: 'small' });
    const headers = { authorization: `Bearer ${key}` };
    const left = [];
    for (const [path, range] of [
      ['manifest.json', ''],
      [name, ''],
      [name, 'bytes=0-1'],
    ] as const) {
      const reply = await get(path, { ...headers, ...(range && { range }) });
      left.push(/"minute";r=(\d+)/.exec(String(reply.headers.ratelimit))?.[1]);
    }
    assert.deepEqual(left, ['2', '1', '0']);
    assert.equal((await get(name, headers)).status, 429);
  });

  it('nothing but the manifest and its files is served from the folder', async () => {
    const outside = join(await temporaryFolder(), 'secret');
    await writeFile(outside, 'secret');
    const { bytes } = fileOf(manifest, 'people');
    await writeFile(join(folder, 'unnamed.ndjson.gz'), 'secret');
    await writeFile(join(folder, '.hidden'), 'secret');
    const record = `manifest-${Date.parse(manifest.created_at)}.json`;
    for (const path of [
      ...['', 'nothing', '.hidden', 'unnamed.ndjson.gz', record, `./${name}`, `../copies/${name}`, `%2e%2e%2f${name}`],
      ...['..%2f..%2fetc%2fpasswd', '../../../../etc/passwd', `${name}%00`, `${name}/`, name.toUpperCase(), '%zz'],
    ]) {
      assertProblem(await get(path), 'not_found', {});
    }
    // A link in place of a file, of the right size.
    const people = join(folder, fileOf(manifest, 'people').name);
    await writeFile(outside, Buffer.alloc(bytes));
    await rename(people, `${people}.away`);
    await symlink(outside, people);
    assertProblem(await get(fileOf(manifest, 'people').name), 'not_found', {
      detail: /Read \/copies\/manifest\.json again/,
    });
    await rename(`${people}.away`, people);
  });

  it('files of the copies before stay available until they are removed', async () => {
    const before = name;
    const text = content;
    await addTitles(world.db, 1, 'later');
    await publish();
    assert.notEqual(name, before);
    assert.deepEqual((await get(before)).bytes, text);
    await rm(join(folder, before));
    assertProblem(await get(before), 'not_found', { detail: /is no longer published/ });
  });

  it('a damaged manifest is an internal error, one of an earlier copy costs only its files, and without one there are no copies', async () => {
    await writeFile(join(folder, 'manifest.json'), '{');
    assertProblem(await get('manifest.json'), 'internal_error', {});
    assert.ok(service.logged.some((line) => line.includes('manifest.json is damaged')));
    await rm(join(folder, 'manifest.json'));
    assertProblem(await get('manifest.json'), 'not_found', { detail: 'No copy is published at the moment.' });
    await publish();
    const earlier = `manifest-${Date.parse(manifest.created_at) - 1}.json`;
    await writeFile(join(folder, earlier), '{');
    for (const path of ['manifest.json', name]) assert.equal((await get(path)).status, 200);
    await publish();
    assert.ok(!(await readdir(folder)).includes(earlier));
  });

  it('a folder on a disk that hangs is temporarily unavailable, and the API still answers', async () => {
    const hanging = await temporaryFolder();
    const pipe = join(hanging, 'manifest.json');
    execFileSync('mkfifo', [pipe]);
    const other = await world.startService({ settings: { COPIES_DIR: hanging, SITE: 'off' } });
    const headers = { authorization: `Bearer ${other.key}` };
    try {
      const replies = await Promise.all(
        Array.from({ length: 6 }, () => send(other.url, '/copies/manifest.json', { headers })),
      );
      for (const reply of replies) {
        assertProblem(reply, 'service_unavailable', { detail: /Published copies cannot be read at the moment/ });
      }
      // Compression takes a thread of the process.
      const page = await send(other.url, `/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 3_600}`, {
        headers: { ...headers, 'accept-encoding': 'gzip' },
      });
      assert.deepEqual([page.status, page.headers['content-encoding']], [200, 'gzip']);
    } finally {
      // Ends the look.
      await writeFile(pipe, '{}');
    }
  });

  it('a server without COPIES_DIR has neither the path nor its description', async () => {
    const other = await world.startService({ settings: { SITE: 'off' } });
    const headers = { authorization: `Bearer ${other.key}` };
    assertProblem(await send(other.url, '/copies/manifest.json', { headers }), 'not_found', {});
    assert.equal((await send(other.url, '/openapi-copies.json')).status, 404);
  });

  it('the description has the schema of the manifest that is published', () => {
    const ajv = new Ajv({ strict: false });
    addFormats.default(ajv);
    const isValid = ajv
      .addSchema({ ...DOCUMENT, $id: 'copies' })
      .compile({ $ref: 'copies#/components/schemas/Manifest' });
    assert.ok(isValid(manifest), JSON.stringify(isValid.errors));
    const { Manifest: whole, CopyFile: file } = DOCUMENT.components.schemas as Record<string, { required: string[] }>;
    const { signature: _none, complete_until: _unknown, feed_id: _unnamed, ...unsigned } = manifest;
    assert.deepEqual(whole?.required.toSorted(), Object.keys(unsigned).sort());
    assert.deepEqual(file?.required.toSorted(), Object.keys(manifest.files[0] ?? {}).sort());
  });
});
