import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { ROOT } from './project.js';
import { startDemoService } from '../support/catalog/demo-service.js';

/** For npm and two generators, on a busy machine. */
const TIMEOUT_MS = 120_000;

/** What the reader of a guide does with a block of code: run it, save it as a file, or compare it with what was printed. */
interface Step {
  readonly language: string;
  readonly code: string;
  /** The file that the sentence before the block names. */
  readonly file: string | undefined;
}

/** @returns the blocks of a guide, in order */
function stepsOf(markdown: string): Step[] {
  return Array.from(
    markdown.matchAll(/(?:Save this program as `([^`]+)`:\n\n)?^```(sh|ts|text)\n(.+?)^```$/gms),
    ([, file, language = '', code = '']) => ({ file, language, code }),
  );
}

/** @returns the names of the packages that a command installs, checked against those of this checkout */
async function installedBy(command: string): Promise<string[]> {
  const packages = command
    .split(' ')
    .slice(2)
    .filter((word) => !word.startsWith('--'));
  for (const name of packages) {
    const [, plain = name, major = ''] = /^(.+?)(?:@(\d+))?$/.exec(name) ?? [];
    const manifest = await readFile(join(ROOT, 'node_modules', plain, 'package.json'), 'utf8');
    assert.ok((JSON.parse(manifest) as { version: string }).version.startsWith(major), name);
  }
  return packages;
}

describe('the guide to generating an SDK', () => {
  let service: TestService;
  let key: string;

  before(async () => {
    ({ service, key } = await startDemoService());
  });

  after(() => service.stop());

  it('the commands and programs of the guide, pasted in order, print what it shows', async function () {
    this.timeout(TIMEOUT_MS);
    const { text } = await send(service.url, '/docs/guides/generate-an-sdk.md');
    const steps = stepsOf(text);
    assert.ok(text.includes(service.url) && !text.includes('127.0.0.1:8080'));
    const link = `ln -sfn '${join(ROOT, 'node_modules')}' node_modules`;
    const installed: string[] = [];
    const script = ['set -e'];
    for (const { language, code, file } of steps) {
      if (language === 'text') continue;
      if (file !== undefined) script.push(`cat > ${file} <<'END'\n${code}END`);
      else {
        for (const command of code.trim().split('\n')) {
          const isInstallation = command.startsWith('npm install ');
          if (isInstallation) installed.push(...(await installedBy(command)));
          script.push(isInstallation ? link : command);
        }
      }
      script.push("echo '=='");
    }
    assert.deepEqual(
      new Set(installed),
      new Set(['openapi-fetch', 'openapi-typescript', 'typescript@5', 'tsx', '@types/node', '@hey-api/openapi-ts']),
    );
    // As an editor checks them.
    const programs = steps.flatMap(({ file }) => file ?? []);
    script.push(`npx tsc --noEmit --strict --module nodenext --skipLibCheck ${programs.join(' ')}`);
    const folder = await temporaryFolder();
    const env = { ...process.env, KEY: key, npm_config_offline: 'true' };
    const printed = await new Promise<string>((resolve, reject) => {
      execFile('sh', ['-c', script.join('\n')], { cwd: folder, env, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
        if (error) reject(new Error(`${stdout}${stderr}`));
        else resolve(stdout);
      });
    });
    const outputs = printed.split('==\n');
    const expected = steps.flatMap(({ language, code }, index) => {
      const place = steps.slice(0, index).filter((step) => step.language !== 'text').length - 1;
      return language === 'text' ? [{ printed: outputs[place], shown: code }] : [];
    });
    assert.equal(expected.length, 2);
    for (const { printed, shown } of expected) assert.equal(printed, shown);
  });
});
