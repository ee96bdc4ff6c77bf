import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { operations } from '../../src/api/index.js';
import { readGuide, ROOT } from '../support/guides.js';
import { startProxy, type Alter } from '../support/proxies/altering-proxy.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startDemoService } from '../support/catalog/demo-service.js';

const DREDD = fileURLToPath(new URL('node_modules/.bin/dredd', ROOT));
const COUNT = Object.keys(operations).length;

describe('Dredd with the hooks and commands of the guide', () => {
  let service: TestService;
  let key: string;

  before(async () => {
    ({ service, key } = await startDemoService());
  });

  after(() => service.stop());

  /** Follows the guide against a server. @returns what Dredd prints, whether or not it succeeds */
  async function runDredd(url: string): Promise<string> {
    const guide = await readGuide('contract-tests');
    const code = (language: string): string =>
      new RegExp(`\`\`\`${language}\\n([\\s\\S]+?)\`\`\``).exec(guide)?.[1] ?? assert.fail(language);
    const folder = await temporaryFolder();
    await writeFile(`${folder}/hooks.js`, code('js'));
    const commands = code('sh')
      .replaceAll('http://127.0.0.1:8080', url)
      .replace(/npx dredd@\S+/, DREDD);
    return new Promise((resolve) => {
      execFile('sh', ['-ec', commands], { cwd: folder, env: { ...process.env, API_KEY: key } }, (_error, stdout) =>
        resolve(stdout),
      );
    });
  }

  it('Dredd finds that every operation of a running server conforms to the contract', async () => {
    assert.match(await runDredd(service.url), new RegExp(` ${COUNT} passing, 0 failing, 0 errors, `));
  });

  it('Dredd finds a drift of any kind: of the status, the media type, a header field or the body', async () => {
    const drifts: Alter[] = [
      (response) => ({ ...response, status: 202 }),
      (response) => ({ ...response, headers: { ...response.headers, 'content-type': 'text/plain' } }),
      ({ headers: { ratelimit: _, ...headers }, ...response }) => ({ ...response, headers }),
      (response) => ({ ...response, body: response.body.replace('"data":', '"items":') }),
    ];
    assert.ok(drifts.length <= COUNT);
    let next = 0;
    // Each operation is requested once, and drifts in another way. The contract arrives unchanged.
    const proxy = await startProxy(service.url, (response, mark, request) =>
      request.url?.startsWith('/api/v1/')
        ? (drifts[next++ % drifts.length] ?? assert.fail())(response, mark, request)
        : response,
    );
    try {
      assert.match(await runDredd(proxy.url), new RegExp(` 0 passing, ${COUNT} failing, 0 errors, `));
    } finally {
      await proxy.stop();
    }
  });
});
