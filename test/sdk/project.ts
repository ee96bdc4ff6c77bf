import assert from 'node:assert/strict';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execute, type Ended } from '../support/programs/execute.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** The folder of this package's package.json. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The TypeScript project of a developer who has followed the guide to generating an SDK. */
export interface ConsumerProject {
  readonly folder: string;
  /** The programs that the guide shows. */
  readonly programs: readonly string[];
  /** The packages that the guide installs. */
  readonly packages: readonly string[];
  /** What the guide says that its programs print, beside what they have printed. */
  readonly outputs: readonly { readonly shown: string; readonly printed: string | undefined }[];
}

/** What the reader of a guide does with a block of code: run it, save it as a file, or compare it with the output. */
interface Step {
  readonly language: string;
  readonly code: string;
  /** The file that the sentence before the block names. */
  readonly file: string | undefined;
}

/** Pastes the commands and programs of the guide in order. The packages and programs are those of this checkout. */
export async function followGuide({ url, publicUrl }: TestService, key: string): Promise<ConsumerProject> {
  const { text } = await send(url, '/docs/guides/generate-an-sdk.md');
  assert.ok(text.includes(publicUrl) && !text.includes('127.0.0.1:8080'));
  const steps = stepsOf(text);
  const parent = await temporaryFolder();
  await symlink(join(ROOT, 'node_modules'), join(parent, 'node_modules'));
  const packages: string[] = [];
  const script = ['set -e'];
  for (const { language, code, file } of steps) {
    if (language === 'text') continue;
    if (file !== undefined) script.push(`cat > ${file} <<'END'\n${code}END`);
    else {
      for (const command of code.trim().split('\n')) {
        if (command.startsWith('npm install ')) packages.push(...(await installedBy(command)));
        // Without npx, which takes longer to start than the program.
        else script.push(command.replace(/^npx (?:@[^/]+\/)?/, '../node_modules/.bin/'));
      }
    }
    script.push("echo '=='");
  }
  const { code, stdout, stderr } = await execute('sh', ['-c', script.join('\n')], parent, {
    ...process.env,
    CATALOG_API_KEY: key,
    npm_config_offline: 'true',
  });
  assert.equal(code, 0, `${stdout}${stderr}`);
  const printed = stdout.split('==\n');
  const outputs = steps.flatMap(({ language, code: shown }, index) => {
    const place = steps.slice(0, index).filter((step) => step.language !== 'text').length - 1;
    return language === 'text' ? [{ shown, printed: printed[place] }] : [];
  });
  return {
    folder: join(parent, 'catalog-client'),
    programs: steps.flatMap(({ file }) => file ?? []),
    packages,
    outputs,
  };
}

/**
 * Compiles these files and what they import, with the options of the guide, to JavaScript beside them; resolves in any
 * case.
 */
export async function compile({ folder }: ConsumerProject, files: readonly string[]): Promise<Ended> {
  const compilerOptions = { sourceMap: false, declaration: false, declarationMap: false };
  await writeFile(
    join(folder, 'tsconfig.programs.json'),
    JSON.stringify({ extends: './tsconfig.json', compilerOptions, files }),
  );
  return execute(
    join(ROOT, 'node_modules/.bin/tsc'),
    ['--pretty', 'false', '--project', 'tsconfig.programs.json'],
    folder,
  );
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
