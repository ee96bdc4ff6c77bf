import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareDemo } from '../../src/commands/server/demo.js';
import { execute } from '../support/programs/execute.js';
import { startService } from '../support/service.js';
import { child, document, type Node } from '../contract/document/document.js';
import { ROOT } from './project.js';

// Makes clients with OpenAPI Generator and looks for errors in what came out, as far as the machine has the languages.
// The argument is its jar. The exit code is 1 when a client could not be made or is not sound.

/** A program that finds errors in files of a language: its arguments come before the files. */
type Checker = readonly [program: string, ...args: string[]];

interface Language {
  readonly extension: string;
  readonly checker?: Checker;
  /** Whether the checker takes one file at a time. */
  readonly oneByOne?: boolean;
}

// Without Go: this version of the generator makes no models for it.
const LANGUAGES: Readonly<Record<string, Language>> = {
  python: { extension: '.py', checker: ['python3', '-m', 'py_compile'] },
  php: { extension: '.php', checker: ['php', '-l'], oneByOne: true },
  ruby: { extension: '.rb', checker: ['ruby', '-c'], oneByOne: true },
  // Without the libraries that the client uses: its syntax alone.
  java: { extension: '.java', checker: ['javac', '-proc:none', '-XDshould-stop.ifNoError=PARSE', '-d', '.'] },
  'csharp-netcore': { extension: '.cs' },
};

/** Reads a page and a title with the client for Python, and provokes an error with a code. */
const PYTHON_PROGRAM = `
import os, time, openapi_client
from openapi_client.api.catalogue_api import CatalogueApi
configuration = openapi_client.Configuration(host=os.environ['BASE_URL'])
configuration.access_token = os.environ['API_KEY']
api = CatalogueApi(openapi_client.ApiClient(configuration))
# Nearly the whole window: the demo catalogue has changed over 29 days.
page = api.get_changes(time.time() - 30 * 86400 + 3600)
assert len(page.data) == 200 and page.meta.has_more
assert api.get_title(page.data[0].svc_id).data.updated_at == page.data[0].updated_at
try:
    api.get_changes(1)
    raise SystemExit('no error')
except openapi_client.ApiException as error:
    assert error.status == 400 and 'since_out_of_window' in error.body
`;

/** @returns what a program printed, if it failed */
async function run([program, ...args]: Checker, cwd: string, env = process.env): Promise<string | undefined> {
  const { code, stdout, stderr } = await execute(program, args, cwd, env);
  return code === 0 ? undefined : `${program} ended with ${String(code)}: ${stdout}${stderr}`;
}

/** The schemas that a client has a type of its own for: objects, and the enumerations with a name. */
const MODELS = Object.entries(child(child(document, 'components'), 'schemas') as Readonly<Record<string, Node>>)
  .filter(([, schema]) => schema.type === 'object' || schema.allOf !== undefined || schema.enum !== undefined)
  .map(([name]) => name);

/** @returns the schemas that no file of a client is named after; undefined for none */
function lacking(files: readonly string[]): string | undefined {
  const names = files.map((file) => file.toLowerCase().replaceAll('_', ''));
  const missing = MODELS.filter((name) => !names.some((each) => each.includes(name.toLowerCase())));
  return missing.length === 0 ? undefined : `no models: ${missing.join(', ')}`;
}

const isThere = async (program: string): Promise<boolean> =>
  (await run(['sh', '-c', `command -v ${program}`], '.')) === undefined;

function report(what: string, fault: string | undefined): void {
  console.log(`${fault === undefined ? 'ok  ' : 'fail'} ${what}${fault === undefined ? '' : `\n${fault}`}`);
  if (fault !== undefined) process.exitCode = 1;
}

async function check(folder: string, jar: string): Promise<void> {
  for (const [language, { extension, checker, oneByOne = false }] of Object.entries(LANGUAGES)) {
    const output = join(folder, language);
    const options = ['-i', join(ROOT, 'openapi.yaml'), '-g', language, '-o', output];
    report(`${language}: generated`, await run(['java', '-jar', jar, 'generate', ...options], folder));
    const files = (await readdir(output, { recursive: true })).filter((file) => file.endsWith(extension));
    report(`${language}: a model for each schema`, lacking(files));
    if (checker && (await isThere(checker[0]))) {
      const faults: (string | undefined)[] = [];
      for (const some of oneByOne ? files.map((file) => [file]) : [files]) {
        faults.push(await run([...checker, ...some], output));
      }
      report(
        `${language}: ${files.length} files`,
        faults.find((fault) => fault !== undefined),
      );
    } else {
      console.log(`skip ${language}: nothing here checks its ${files.length} files`);
    }
  }
  if ((await run(['python3', '-c', 'import dateutil, urllib3'], folder)) !== undefined) {
    console.log('skip python: dateutil and urllib3, which its client needs, are not here');
    return;
  }
  const service = await startService();
  try {
    await prepareDemo(service.db, ROOT);
    await writeFile(join(folder, 'python/program.py'), PYTHON_PROGRAM);
    const env = { ...process.env, BASE_URL: service.url, API_KEY: service.key };
    report('python: reads the running service', await run(['python3', 'program.py'], join(folder, 'python'), env));
  } finally {
    await service.stop();
  }
}

const jar = resolve(process.argv[2] ?? '');
const folder = await mkdtemp(fileURLToPath(new URL('../../.cache/openapi-generator-', import.meta.url)));
try {
  await check(folder, jar);
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit();
