import assert from 'node:assert/strict';
import { GUIDES } from '../../../src/site/guides/guide-files.js';
import { assertHeaders } from '../../support/problem.js';
import { send, type Reply } from '../../support/request.js';
import { startService, type TestService } from '../../support/service.js';
import { FILES } from '../pages.js';

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  md: 'text/markdown; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  ico: 'image/x-icon',
};

const PUBLIC_URL = 'https://catalog.example';

describe('the files of the site', () => {
  let service: TestService;

  before(async () => (service = await startService({ settings: { PUBLIC_URL } })));
  after(() => service.stop());

  const get = (path: string, headers: Record<string, string> = {}): Promise<Reply> =>
    send(service.url, path, { headers });

  it('every file has the media type of its name and an entity tag', async () => {
    assert.deepEqual(FILES.filter((path) => !path.endsWith('.md')).sort(), [
      '/favicon.ico',
      '/llms.txt',
      '/robots.txt',
    ]);
    for (const path of FILES) {
      const reply = await get(path);
      assert.equal(reply.status, 200, path);
      assertHeaders(reply, {
        'content-type': MEDIA_TYPES[/\w+$/.exec(path)?.[0] ?? ''],
        'cache-control': path === '/favicon.ico' ? 'public, max-age=86400' : 'no-cache',
        'x-content-type-options': 'nosniff',
      });
      assert.equal((await get(path, { 'if-none-match': reply.headers.etag ?? '' })).status, 304, path);
    }
  });

  it('each guide is served as Markdown with its title, and its page names that address', async () => {
    for (const { name, title, isForCallers } of GUIDES) {
      const path = `/docs/guides/${name}`;
      const { text } = await get(`${path}.md`);
      assert.ok(text.startsWith(`# ${title}\n\n`), name);
      if (isForCallers) assert.ok(!text.includes('127.0.0.1:8080'), name);
      const page = (await get(path, { accept: 'text/html' })).text;
      assert.ok(page.includes(`<link rel="alternate" type="text/markdown" href="${path}.md"/>`), name);
    }
    const { text } = await get('/docs/guides/generate-an-sdk.md');
    assert.ok(text.includes(`npx openapi-typescript ${PUBLIC_URL}/openapi.yaml -o catalog.d.ts\n`));
  });

  it('/llms.txt has a title, a summary and sections that list every guide under the public URL', async () => {
    const { text } = await get('/llms.txt');
    assert.match(text, /^# Catalog Lookup Service\n\n> .+\n\n.+\n\n## API\n\n- \[/);
    assert.deepEqual(
      Array.from(text.matchAll(/^## (.+)$/gm), ([, section]) => section),
      ['API', 'Guides', 'Optional'],
    );
    for (const line of text.split('\n').filter((each) => each.startsWith('- '))) {
      assert.match(line, /^- \[[^\]]+\]\(https:\/\/catalog\.example\/[^)]*\): .+\.$/);
    }
    for (const { name, title, description } of GUIDES) {
      assert.ok(text.includes(`- [${title}](${PUBLIC_URL}/docs/guides/${name}.md): ${description}\n`), name);
    }
  });

  it('/robots.txt keeps crawlers out of the settings and sign-in, and /favicon.ico is an icon of 32 by 32 pixels', async () => {
    const { text } = await get('/robots.txt');
    assert.equal(text, 'User-agent: *\nDisallow: /settings\nDisallow: /sign-in\nDisallow: /sign-up\nAllow: /\n');
    const { bytes } = await get('/favicon.ico');
    assert.deepEqual([...bytes.subarray(0, 8)], [0, 0, 1, 0, 1, 0, 32, 32]);
    assert.equal(bytes.readUInt32LE(14), bytes.length - 22);
  });
});
