import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A service of two packages beside Koa's types, with nothing in it. */
const FOLDER: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module", "dependencies": { "koa": "3" }, "devDependencies": { "mocha": "12" } }',
  'tsconfig.json': '{ "compilerOptions": { "module": "NodeNext", "moduleResolution": "NodeNext" } }',
  'node_modules/koa/package.json': '{ "name": "koa", "main": "index.js" }',
  'node_modules/mocha/package.json': '{ "name": "mocha", "main": "index.js" }',
  // For the import back that makes a circle.
  'src/catalog/titles.ts': "import './feed.js';",
};

/** A breach of each rule: a file, what it imports and must not, and the line where it is not a plain import. */
const BREACHES: readonly (readonly [rule: string, from: string, to: string, line?: string])[] = [
  ['upward-from-the-ground', 'src/errors.ts', 'src/platform/postgres/database.ts'],
  ['upward-from-embedded-postgres', 'src/embedded-postgres/cluster.ts', 'src/platform/postgres/database.ts'],
  ['upward-from-the-ground-floor', 'src/platform/async/with-timeout.ts', 'src/platform/postgres/database.ts'],
  ['upward-from-copies', 'src/copies/manifest.ts', 'src/catalog/feed.ts'],
  [
    'upward-from-platform',
    'src/platform/postgres/database.ts',
    'src/catalog/feed.ts',
    "import type {} from '../../catalog/feed.js';",
  ],
  ['upward-from-events', 'src/events/events.ts', 'src/keys/keys.ts'],
  ['upward-from-limits', 'src/limits/plans.ts', 'src/keys/keys.ts'],
  ['upward-from-domain', 'src/keys/keys.ts', 'src/api/getTitle.ts'],
  ['upward-from-admission', 'src/admission/admission.ts', 'src/api/getTitle.ts'],
  ['upward-from-api', 'src/api/getTitle.ts', 'src/app.ts', "export const load = () => import('../app.js');"],
  ['upward-from-http', 'src/http/listen.ts', 'src/commands/serve.ts', "export * from '../commands/serve.js';"],
  ['upward-from-pages-context', 'src/pages/parts/context.ts', 'src/pages/parts/web/addresses.ts'],
  ['upward-from-pages-web', 'src/pages/parts/web/addresses.ts', 'src/pages/parts/content/components.tsx'],
  ['upward-from-pages-content', 'src/pages/parts/content/components.tsx', 'src/pages/parts/frame/page.tsx'],
  ['upward-from-pages-frame', 'src/pages/parts/frame/page.tsx', 'src/pages/parts/forms/form.tsx'],
  ['upward-from-pages-forms', 'src/pages/parts/forms/form.tsx', 'src/pages/parts/events.tsx'],
  ['upward-from-pages-parts', 'src/pages/parts/events.tsx', 'src/pages/settings/settings.tsx'],
  ['upward-from-pages', 'src/pages/operator/operator-pages.ts', 'src/service/create-service.ts'],
  ['upward-from-site', 'src/pages/site.ts', 'src/app.ts'],
  ['pages-public-alone', 'src/pages/public/landing.tsx', 'src/pages/settings/settings.tsx'],
  ['pages-settings-alone', 'src/pages/settings/settings.tsx', 'src/pages/public/landing.tsx'],
  ['pages-operator-alone', 'src/pages/operator/operator-pages.ts', 'src/pages/settings/settings.tsx'],
  ['upward-from-app', 'src/app.ts', 'src/service/create-service.ts'],
  ['upward-from-client', 'src/client/follow.ts', 'src/commands/serve.ts'],
  ['upward-from-service', 'src/service/server-log.ts', 'src/commands/context.ts'],
  ['client-outside', 'src/client/follow.ts', 'src/catalog/feed.ts'],
  ['ground-apart', 'src/contract.ts', 'src/errors.ts'],
  ['domain-catalog-alone', 'src/catalog/titles.ts', 'src/keys/keys.ts'],
  ['domain-keys-alone', 'src/keys/keys.ts', 'src/catalog/titles.ts'],
  ['domain-developers-alone', 'src/developers/developers.ts', 'src/keys/keys.ts'],
  ['domain-accounts-alone', 'src/accounts/sessions.ts', 'src/keys/keys.ts'],
  ['domain-usage-alone', 'src/usage/usage.ts', 'src/keys/keys.ts'],
  ['domain-notices-alone', 'src/notices/outbox.ts', 'src/keys/keys.ts'],
  ['program-is-entry-point', 'src/commands/serve.ts', 'src/cli.ts'],
  ['a-level-for-each-import', 'src/service/create-service.ts', 'src/utils.ts'],
  ['a-level-for-each-file', 'src/utils.ts', 'src/errors.ts'],
  ['no-cycle', 'src/catalog/feed.ts', 'src/catalog/titles.ts'],
  ['http-only-above-api', 'src/catalog/feed.ts', 'node_modules/koa/index.js', "import type Koa from 'koa';"],
  ['http-only-above-api', 'src/keys/keys.ts', 'http', "import type { Server } from 'node:http';"],
  ['api-without-koa', 'src/api/index.ts', '@koa/router', "import type Router from '@koa/router';"],
  ['generated-through-contract', 'src/app.ts', 'generated/openapi.d.ts', "import '../generated/openapi.js';"],
  ['src-alone', 'src/commands/serve.ts', 'test/support.ts'],
  ['src-alone', 'src/commands/serve.ts', 'db/dump-schema.ts'],
  ['no-dev-package', 'src/app.ts', 'node_modules/mocha/index.js', "import 'mocha';"],
  ['no-unresolvable', 'src/app.ts', './missing.js', "import './missing.js';"],
  ['no-orphan', 'src/commands/forgotten.ts', 'src/commands/forgotten.ts', ''],
];

interface Violation {
  readonly rule: { readonly name: string };
  readonly from: string;
  readonly to: string;
}

interface Cruise {
  readonly violations: readonly Violation[];
  readonly ruleSetUsed: { readonly forbidden: readonly { readonly name: string }[] };
}

/** The rules over the src of a folder. `make check-layers` applies them to the service's. */
async function cruise(folder: string): Promise<Cruise> {
  const config = join(root, '.config/dependency-cruiser.cjs');
  const program = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const stdout = await new Promise<string>((resolve, reject) => {
    const args = [program, '--config', config, '--output-type', 'json', 'src'];
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      // With violations, the exit code is their number.
      if (error !== null && !stdout.startsWith('{')) reject(new Error(stderr, { cause: error }));
      else resolve(stdout);
    });
  });
  return (JSON.parse(stdout) as { summary: Cruise }).summary;
}

describe('the layering rules', () => {
  it('a breach of each layering rule is found', async () => {
    const folder = await temporaryFolder();
    const files: Record<string, string> = { ...FOLDER };
    for (const [, from, to, line = importOf(from, to)] of BREACHES) {
      files[from] = `${files[from] ?? ''}\n${line}`;
      if (/^(?:src|test|db|generated|node_modules)\//.test(to)) files[to] ??= '';
    }
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const { violations, ruleSetUsed } = await cruise(folder);
    const found = new Set(violations.map(asLine));
    const planted = BREACHES.map(([name, from, to]) => asLine({ rule: { name }, from, to }));
    assert.deepEqual(
      planted.filter((breach) => !found.has(breach)),
      [],
    );
    const tried = new Set(BREACHES.map(([rule]) => rule));
    const untried = ruleSetUsed.forbidden.map(({ name }) => name).filter((name) => !tried.has(name));
    assert.deepEqual(untried, [], 'rules without a breach in this test');
  });
});

/** An import of a file, by its path from the one that imports it. */
function importOf(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to).replace(/\.tsx?$/, '.js');
  return `import '${path.startsWith('.') ? path : `./${path}`}';`;
}

function asLine({ rule, from, to }: Violation): string {
  return `${rule.name}: ${from} → ${to}`;
}
