import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programsOf } from '../../../../src/pages/parts/content/samples.js';
import { execute, type Ended } from '../../../support/programs/execute.js';
import { skipWithout } from '../../../support/programs/skip.js';
import { send } from '../../../support/request.js';
import type { TestService } from '../../../support/service.js';
import { temporaryFolder } from '../../../support/temporary-folder.js';
import { startDemoService } from '../../../support/catalog/demo-service.js';

/** The languages of the samples, each with a command that succeeds where it is installed. */
const LANGUAGES: Readonly<Record<string, readonly [program: string, ...args: string[]]>> = {
  curl: ['curl', '--version'],
  JavaScript: ['node', '--version'],
  Python: ['python3', '--version'],
  Go: ['go', 'version'],
  PHP: ['php', '--version'],
  Java: ['java', '--version'],
};

/** Java translates each program when it starts, in half the time without optimizing its own compiler. */
const QUICK_JAVA = { JDK_JAVA_OPTIONS: '-XX:TieredStopAtLevel=1' };

/** @param key - undefined for an environment without `CATALOG_API_KEY` */
function run([program, ...args]: readonly [string, ...string[]], cwd: string, key?: string): Promise<Ended> {
  const { CATALOG_API_KEY: _, ...rest } = process.env;
  return execute(program, args, cwd, { ...rest, ...QUICK_JAVA, ...(key !== undefined && { CATALOG_API_KEY: key }) });
}

/** @returns the names of all members of a JSON value */
function namesIn(json: unknown): string[] {
  if (Array.isArray(json)) return json.slice(0, 1).flatMap(namesIn);
  if (typeof json !== 'object' || json === null) return [];
  return Object.entries(json).flatMap(([name, value]) => [name, ...namesIn(value)]);
}

describe('the samples of the pages', () => {
  let service: TestService;
  let key: string;
  /** The addresses that the reference calls, one for each operation. */
  let targets: readonly string[];

  before(async () => {
    ({ service, key } = await startDemoService());
    const { text } = await send(service.url, '/docs');
    targets = Array.from(text.matchAll(/ data-url="([^"]+)"/g), ([, url = '']) => url.replaceAll('&amp;', '&'));
  });

  after(() => service.stop());

  it('the call that the reference shows of each operation finds the operation', async () => {
    const { json } = await send(service.url, '/openapi.json');
    assert.equal(targets.length, Object.keys((json as { paths: object }).paths).length);
    for (const target of targets) {
      const { status, json } = await send(service.url, target.replace(service.publicUrl, ''), {
        headers: { 'x-api-key': key },
      });
      assert.ok(status === 200 || (json as { code: string }).code === 'title_not_found', target);
    }
  });

  for (const [language, check] of Object.entries(LANGUAGES)) {
    it(`the sample in ${language} prints the response, and fails with the status and the detail of an error`, async function () {
      if (spawnSync(check[0], check.slice(1)).status !== 0) skipWithout(language, this);
      const { caption, code } =
        programsOf(`${service.publicUrl}/api/v1/stats`).find(({ label }) => label === language) ?? assert.fail();
      const command: [string, ...string[]] =
        language === 'curl' ? ['sh', 'call.sh'] : [check[0], ...caption.split(' ').slice(3)];
      const folder = await temporaryFolder();
      await writeFile(join(folder, command.at(-1) ?? ''), code);

      const good = await run(command, folder, key);
      assert.equal(good.code, 0, good.stderr);
      const names = namesIn((await send(service.url, '/api/v1/stats', { headers: { 'x-api-key': key } })).json);
      assert.notDeepEqual(names, []);
      for (const name of names) assert.ok(good.stdout.includes(name), `${name} in ${good.stdout}`);

      const ended = await run(command, folder);
      const { detail } = (await send(service.url, '/api/v1/stats')).json as { detail: string };
      assert.notEqual(ended.code, 0, `${language} succeeded without a key`);
      const printed = language === 'curl' ? ended.stdout : ended.stderr;
      // curl and Java print the body unchanged.
      const isNamed = printed.includes(detail) || printed.includes(JSON.stringify(detail));
      assert.ok(printed.includes('401') && isNamed, printed);
      assert.ok(language === 'curl' || ended.stdout === '', ended.stdout);
    });
  }
});
