import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/temporary-folder.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** A small service that keeps every rule, as `make check-layers` sees that the whole one does. */
const SOUND: Record<string, string> = {
  'package.json':
    '{ "type": "module", "dependencies": { "koa": "3", "knex": "3" }, "devDependencies": { "mocha": "12" } }',
  'tsconfig.json': '{ "compilerOptions": { "module": "NodeNext", "moduleResolution": "NodeNext" } }',
  'node_modules/koa/package.json': '{ "name": "koa", "main": "index.js" }',
  'node_modules/koa/index.js': '',
  'node_modules/knex/package.json': '{ "name": "knex", "main": "index.js" }',
  'node_modules/knex/index.js': '',
  'node_modules/mocha/package.json': '{ "name": "mocha", "main": "index.js" }',
  'node_modules/mocha/index.js': '',
  'generated/openapi.d.ts': 'export interface operations {}',
  'src/errors.ts': 'export const error = 1;',
  'src/contract.ts': "export type { operations } from '../generated/openapi.js';",
  'src/config/config.ts': "import 'node:path'; import './parsers.js';",
  'src/config/parsers.ts': '',
  'src/copies/manifest.ts': "import '../errors.js';",
  'src/embedded-postgres/cluster.ts': "import '../errors.js';",
  'src/platform/postgres/database.ts':
    "import 'knex'; import '../../config/config.js'; import '../../embedded-postgres/cluster.js'; import '../async/with-timeout.js';",
  'src/platform/async/with-timeout.ts': 'export {};',
  'src/catalog/titles.ts':
    "import '../platform/postgres/database.js'; import '../copies/manifest.js'; import './feed.js';",
  'src/catalog/feed.ts': "import '../errors.js';",
  'src/developers/developers.ts': "import 'knex';",
  'src/limits/plans.ts': "import 'knex';",
  'src/events/events.ts': "import '../platform/postgres/database.js';",
  'src/keys/keys.ts': "import 'knex'; import '../events/events.js'; import '../limits/plans.js';",
  'src/accounts/sessions.ts': "import 'knex';",
  'src/usage/usage.ts': "import 'knex';",
  'src/notices/outbox.ts': "import 'knex';",
  'src/admission/admission.ts': "import '../keys/keys.js'; import '../limits/plans.js';",
  'src/api/index.ts': "import '../contract.js'; import './getTitle.js';",
  'src/api/getTitle.ts': "import '../catalog/titles.js'; import '../admission/admission.js';",
  'src/http/listen.ts': "import 'node:http';",
  'src/site/site.ts': "import '../http/listen.js';",
  'src/app.ts': "import 'koa'; import './api/index.js'; import './http/listen.js'; import './site/site.js';",
  'src/operator-pages/operator-pages.ts': "import '../site/site.js';",
  'src/follower/follow.ts': "import '../contract.js'; import '../errors.js';",
  'src/mirror/mirror.ts': "import '../follower/follow.js'; import '../copies/manifest.js';",
  'src/commands/follow.ts': "import '../follower/follow.js'; import '../mirror/mirror.js';",
  'src/commands/serve.ts': "import '../service/create-service.js';",
  'src/commands/developers.ts':
    "import '../developers/developers.js'; import '../accounts/sessions.js'; import '../usage/usage.js';",
  'src/service/create-service.ts':
    "import '../app.js'; import '../operator-pages/operator-pages.js'; import '../notices/outbox.js';",
  'src/cli.ts': "import './commands/developers.js'; import './commands/follow.js'; import './commands/serve.js';",
};

/** Files that the breaches below import. */
const BESIDE: Record<string, string> = {
  'src/utils.ts': '',
  'src/commands/forgotten.ts': '',
  'test/support.ts': '',
  'db/dump-schema.ts': '',
};

/** A breach of each rule: the file, the line added to it, and the target that must be reported. */
const BREACHES: readonly (readonly [rule: string, file: string, line: string, to: string])[] = [
  [
    'upward-from-the-ground',
    'src/errors.ts',
    "import './platform/postgres/database.js';",
    'src/platform/postgres/database.ts',
  ],
  [
    'upward-from-embedded-postgres',
    'src/embedded-postgres/cluster.ts',
    "import '../platform/postgres/database.js';",
    'src/platform/postgres/database.ts',
  ],
  [
    'upward-from-the-ground-floor',
    'src/platform/async/with-timeout.ts',
    "import '../postgres/database.js';",
    'src/platform/postgres/database.ts',
  ],
  ['upward-from-copies', 'src/copies/manifest.ts', "import '../catalog/feed.js';", 'src/catalog/feed.ts'],
  [
    'upward-from-platform',
    'src/platform/postgres/database.ts',
    "import type {} from '../../catalog/feed.js';",
    'src/catalog/feed.ts',
  ],
  ['upward-from-events', 'src/events/events.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['upward-from-limits', 'src/limits/plans.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['upward-from-domain', 'src/keys/keys.ts', "import '../api/getTitle.js';", 'src/api/getTitle.ts'],
  ['upward-from-admission', 'src/admission/admission.ts', "import '../api/getTitle.js';", 'src/api/getTitle.ts'],
  ['upward-from-api', 'src/api/getTitle.ts', "export const load = () => import('../app.js');", 'src/app.ts'],
  ['upward-from-http', 'src/http/listen.ts', "export * from '../commands/serve.js';", 'src/commands/serve.ts'],
  ['upward-from-site', 'src/site/site.ts', "import '../app.js';", 'src/app.ts'],
  [
    'upward-from-site',
    'src/site/site.ts',
    "import '../operator-pages/operator-pages.js';",
    'src/operator-pages/operator-pages.ts',
  ],
  [
    'upward-from-operator-pages',
    'src/operator-pages/operator-pages.ts',
    "import '../service/create-service.js';",
    'src/service/create-service.ts',
  ],
  ['upward-from-app', 'src/app.ts', "import './service/create-service.js';", 'src/service/create-service.ts'],
  ['upward-from-follower', 'src/follower/follow.ts', "import '../commands/serve.js';", 'src/commands/serve.ts'],
  ['upward-from-mirror', 'src/mirror/mirror.ts', "import '../commands/serve.js';", 'src/commands/serve.ts'],
  ['follower-outside', 'src/follower/follow.ts', "import '../catalog/feed.js';", 'src/catalog/feed.ts'],
  ['ground-apart', 'src/contract.ts', "import './errors.js';", 'src/errors.ts'],
  ['domain-catalog-alone', 'src/catalog/titles.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['domain-keys-alone', 'src/keys/keys.ts', "import '../catalog/titles.js';", 'src/catalog/titles.ts'],
  ['domain-developers-alone', 'src/developers/developers.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['domain-accounts-alone', 'src/accounts/sessions.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['domain-usage-alone', 'src/usage/usage.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['domain-notices-alone', 'src/notices/outbox.ts', "import '../keys/keys.js';", 'src/keys/keys.ts'],
  ['program-is-entry-point', 'src/commands/serve.ts', "import '../cli.js';", 'src/cli.ts'],
  ['a-level-for-each-import', 'src/service/create-service.ts', "import '../utils.js';", 'src/utils.ts'],
  ['a-level-for-each-file', 'src/utils.ts', "import './errors.js';", 'src/errors.ts'],
  ['no-cycle', 'src/catalog/feed.ts', "import './titles.js';", 'src/catalog/titles.ts'],
  ['http-only-above-api', 'src/catalog/feed.ts', "import type Koa from 'koa';", 'node_modules/koa/index.js'],
  ['http-only-above-api', 'src/keys/keys.ts', "import type { Server } from 'node:http';", 'http'],
  ['api-without-koa', 'src/api/index.ts', "import type Router from '@koa/router';", '@koa/router'],
  ['generated-through-contract', 'src/app.ts', "import '../generated/openapi.js';", 'generated/openapi.d.ts'],
  ['src-alone', 'src/commands/serve.ts', "import '../../test/support.js';", 'test/support.ts'],
  ['src-alone', 'src/commands/serve.ts', "import '../../db/dump-schema.js';", 'db/dump-schema.ts'],
  ['no-dev-package', 'src/app.ts', "import 'mocha';", 'node_modules/mocha/index.js'],
  ['no-unresolvable', 'src/app.ts', "import './missing.js';", './missing.js'],
  ['no-orphan', 'src/commands/forgotten.ts', '', 'src/commands/forgotten.ts'],
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
    const files: Record<string, string> = { ...SOUND, ...BESIDE };
    for (const [, file, line] of BREACHES) files[file] = `${files[file] ?? ''}\n${line}`;
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    const { violations, ruleSetUsed } = await cruise(folder);
    const found = new Set(violations.map(asLine));
    const planted = BREACHES.map(([name, from, , to]) => asLine({ rule: { name }, from, to }));
    assert.deepEqual(
      planted.filter((breach) => !found.has(breach)),
      [],
    );
    const tried = new Set(BREACHES.map(([rule]) => rule));
    const untried = ruleSetUsed.forbidden.map(({ name }) => name).filter((name) => !tried.has(name));
    assert.deepEqual(untried, [], 'rules without a breach in this test');
  });
});

function asLine({ rule, from, to }: Violation): string {
  return `${rule.name}: ${from} → ${to}`;
}
