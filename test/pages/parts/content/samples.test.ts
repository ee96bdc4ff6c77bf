import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

/** A sample as a page shows it. */
interface Sample {
  /** The command that runs it; its last word is the name of its file. */
  readonly command: readonly [program: string, ...args: string[]];
  readonly code: string;
}

/** For a compiler that starts with an empty cache, on a busy machine. */
const TIMEOUT_MS = 240_000;

/** Java translates each program when it starts, in half the time without optimizing its own compiler. */
const QUICK_JAVA = { JDK_JAVA_OPTIONS: '-XX:TieredStopAtLevel=1' };

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param key - undefined for an environment without `KEY` */
function run([program, ...args]: readonly [string, ...string[]], cwd: string, key?: string): Promise<Ended> {
  const { KEY: _, ...rest } = process.env;
  const env = { ...rest, ...QUICK_JAVA, ...(key !== undefined && { KEY: key }) };
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr });
    });
  });
}

/** @returns the text of an element */
function textOf(html: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&lt;': '<',
    '&gt;': '>',
    '&quot;': '"',
    '&#x27;': "'",
    '&amp;': '&',
  };
  return html.replaceAll(/<[^>]+>/g, '').replaceAll(/&(?:lt|gt|quot|#x27|amp);/g, (entity) => entities[entity] ?? '');
}

/** @returns the samples of a page, by the name of their group and by their language */
function samplesOf(html: string): Map<string, Map<string, Sample>> {
  const groups = [...html.matchAll(/<fieldset class="tabs" data-remember="language">(.+?)<\/fieldset>/gs)];
  return new Map(
    groups.map(([, group = '']) => {
      const inputs = Array.from(group.matchAll(/<input [^>]*name="([^"]+)" value="([^"]+)"/g));
      const figures = group.matchAll(/<figcaption><span>([^<]+)<\/span>.+?<code>(.+?)<\/code>/gs);
      const samples = Array.from(figures, ([, caption = '', code = '']): Sample => {
        const [program = 'sh', ...args] =
          caption === 'Run in a shell' ? ['sh', 'call.sh'] : caption.split(' ').slice(2);
        return { command: [program, ...args], code: textOf(code) };
      });
      return [
        inputs[0]?.[1] ?? '',
        new Map(inputs.map(([, , language = ''], index) => [language, samples[index] ?? assert.fail()])),
      ];
    }),
  );
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
  let reference: Map<string, Map<string, Sample>>;
  let operations: Record<string, { readonly get: { readonly operationId: string } }>;

  before(async () => {
    ({ service, key } = await startDemoService());
    reference = samplesOf((await send(service.url, '/docs')).text);
    ({ paths: operations } = (await send(service.url, '/openapi.json')).json as { paths: typeof operations });
  });

  after(() => service.stop());

  it('the reference has a sample of every operation in every language, and the landing page of the first call', async () => {
    const languages = Object.keys(LANGUAGES);
    for (const { get } of Object.values(operations)) {
      const samples = reference.get(`sample-${get.operationId}`) ?? assert.fail(get.operationId);
      assert.deepEqual([...samples.keys()], languages);
    }
    const [first] = samplesOf((await send(service.url, '/')).text).values();
    assert.deepEqual(first, reference.get('sample-getStats'));
  });

  for (const [language, check] of Object.entries(LANGUAGES)) {
    it(`each sample in ${language} prints the response, and fails with the status and the detail of an error`, async function () {
      if (spawnSync(check[0], check.slice(1)).status !== 0) skipWithout(language, this);
      const programs = new Set<string>();
      for (const [path, { get }] of Object.entries(operations)) {
        const { command, code } =
          reference.get(`sample-${get.operationId}`)?.get(language) ?? assert.fail(get.operationId);
        const [, target = ''] = new RegExp(`${service.publicUrl}([^"'\`\\s]+)`).exec(code) ?? [];
        const [, id] = /^\/api\/v1\/titles\/([^/?]+)/.exec(target) ?? [];
        const titles = service.db('titles');
        if (id !== undefined) {
          await titles.insert({ svc_id: id, media_type: 'movie', title: 'Sample' }).onConflict().ignore();
        }
        // A program that differs from another one by its URL alone does the same.
        const program = code.replace(`${service.publicUrl}${target}`, '');
        if (programs.has(program)) {
          assert.equal((await send(service.url, target, { headers: { 'x-api-key': key } })).status, 200, target);
          continue;
        }
        programs.add(program);
        const folder = await temporaryFolder();
        await writeFile(join(folder, command.at(-1) ?? ''), code);

        const good = await run(command, folder, key);
        assert.equal(good.code, 0, good.stderr);
        const since = Math.floor(Date.now() / 1000) - 3600;
        const url = path.includes('changes') ? `${path}?since=${since}` : path.replace('{title_id}', id ?? '');
        const { json } = await send(service.url, url, { headers: { 'x-api-key': key } });
        const names = namesIn(json);
        assert.notDeepEqual(names, [], url);
        for (const name of names) assert.ok(good.stdout.includes(name), `${name} in ${good.stdout}`);

        // What follows the call is the same for every operation.
        if (get.operationId !== 'getStats') continue;
        const ended = await run(command, folder);
        const { detail } = (await send(service.url, url)).json as { detail: string };
        assert.ok(ended.code > 0, `${language} succeeded without a key`);
        const printed = language === 'curl' ? ended.stdout : ended.stderr;
        // curl and Java print the body as it is.
        const isNamed = printed.includes(detail) || printed.includes(JSON.stringify(detail));
        assert.ok(printed.includes('401') && isNamed, printed);
        assert.ok(language === 'curl' || ended.stdout === '', ended.stdout);
      }
    });
  }
});
