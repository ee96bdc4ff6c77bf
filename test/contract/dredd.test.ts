import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { operations } from '../../src/api/index.js';
import { readGuide, ROOT } from '../support/guides.js';
import { execute } from '../support/programs/execute.js';
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
    await writeFile(`${folder}/hooks.cjs`, code('js'));
    // As the guide to SDKs leaves it. Dredd silently ignores hooks that it cannot load.
    await writeFile(`${folder}/package.json`, '{"type":"module"}');
    const commands = code('sh')
      .replaceAll('http://127.0.0.1:8080', url)
      .replace(/npx --yes dredd@\S+/, () => `"${DREDD}"`);
    const { stdout, stderr } = await execute('sh', ['-ec', commands], folder, { ...process.env, CATALOG_API_KEY: key });
    return stdout + stderr;
  }

  it('Dredd finds that the operations of a running server conform, except for those whose header fields or body drift', async () => {
    const drifts: Alter[] = [
      ({ headers: { ratelimit: _, ...headers }, ...response }) => ({ ...response, headers }),
      (response) => ({ ...response, body: response.body.replace('"data":', '"items":') }),
    ];
    // Each operation is requested once. The contract arrives unchanged.
    const proxy = await startProxy(service.url, (response, mark, request) => {
      const drift = request.url?.startsWith('/api/v1/') ? drifts.pop() : undefined;
      return drift ? drift(response, mark, request) : response;
    });
    try {
      assert.match(await runDredd(proxy.url), new RegExp(` ${COUNT - 2} passing, 2 failing, 0 errors, `));
    } finally {
      await proxy.stop();
    }
  });
});
