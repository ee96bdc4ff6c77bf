import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { connectTo } from '../support/database.js';
import { startLoad } from '../support/deployments/load.js';
import { eventually } from '../support/eventually.js';
import { Visitor } from '../support/http/visitor.js';
import { createEmptyDatabase } from '../support/postgres.js';
import { runProgram, startServer, type ServerProcess } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { skipWithout } from '../support/programs/skip.js';
import { startRedis } from '../support/redis/redis.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { send, type Reply } from '../support/request.js';
import { settingsPages } from '../pages/pages.js';
import { buildLastRelease, type LastRelease } from './last-release.js';

const KEY = /svc_\w{8}_\w{38}/;

/** The role that its servers connect as. */
const ROLE = 'last_release_server';

// The promise: an upgrade needs one migration, and the version before still runs on the new schema.
describe('the version before this one', () => {
  let release: LastRelease;
  let db: Knex;
  /** Of commands, which connect as the owner; and of servers. */
  let environment: Readonly<Record<string, string>>;
  let serving: Readonly<Record<string, string>>;
  let server: ServerProcess;
  let key: string;
  let closers: (() => unknown)[] = [];

  before(async function () {
    const built = await buildLastRelease();
    release = typeof built === 'string' ? skipWithout(built, this) : built;
    const redis = await startRedis();
    closers.unshift(() => redis.stop());
    const database = await createEmptyDatabase();
    closers.unshift(() => database.drop());
    db = connectTo(database.url);
    closers.unshift(() => db.destroy());
    environment = { DATABASE_URL: database.url, REDIS_URL: redis.url, SITE: 'on' };
    const url = new URL(database.url);
    url.username = url.password = ROLE;
    serving = { ...environment, DATABASE_URL: url.href };

    await runBefore('migrate');
    await db.raw(`create role ${ROLE} login password '${ROLE}' in role catalog_server`);
    closers.unshift(() => db.raw(`drop role ${ROLE}`));
    await db('plans').update({ requests_per_minute: 2_000_000_000, requests_per_day: 2_000_000_000 });
    await db.raw("insert into titles (svc_id, media_type, title) values ('blade-runner', 'movie', 'Blade Runner')");
    key = keyIn(await runBefore('keys', 'create', '--demo'));
    server = await start(release.program);
  });

  after(async () => {
    for (const close of closers) await close();
    closers = [];
  });

  async function start(program?: readonly string[]): Promise<ServerProcess> {
    const started = await startServer(serving, [], program === undefined ? {} : { program });
    closers.unshift(() => started.stop('SIGKILL'));
    return started;
  }

  /** Runs a command of the version before. @returns what it prints */
  async function runBefore(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runProgram(args, environment, '', { program: release.program });
    assert.equal(code, 0, stderr);
    return stdout;
  }

  /** Runs a command of this version. */
  async function runNow(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(args, environment);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  const keyIn = (text: string): string => KEY.exec(text)?.[0] ?? assert.fail(text);

  /** Repeats a request until it is not too late for the bounds of that version, which a busy machine soon exceeds. */
  function inTime(request: () => Promise<Reply>): Promise<Reply> {
    return eventually('the answer is in time', async () => {
      const reply = await request();
      return reply.status !== 503 && reply;
    });
  }

  function call(url: string, path: string, as = key): Promise<Reply> {
    return inTime(() => send(url, path, { headers: { 'x-api-key': as } }));
  }

  async function statusOf(as: string, { url } = server): Promise<number> {
    return (await call(url, '/api/v1/me', as)).status;
  }

  /** Calls every operation of its contract. */
  async function callTheApi(): Promise<void> {
    const contract = JSON.parse(await readFile(join(release.folder, 'generated/openapi.json'), 'utf8')) as {
      paths: Record<string, unknown>;
    };
    const paths = Object.keys(contract.paths).filter((path) => path.startsWith('/api/'));
    assert.ok(paths.length >= 4);
    for (const path of paths) {
      const target = `${path.replace('{title_id}', 'blade-runner')}?since=${Math.floor(Date.now() / 1000) - 60}`;
      const { status, text } = await call(server.url, target);
      assert.equal(status, 200, `${target}: ${text}`);
    }
  }

  /** Signs in as the demo developer, opens every page, and creates, rolls and revokes keys. */
  async function useThePages(): Promise<void> {
    const visitor = new Visitor(server.url);
    const link = await runBefore('developers', 'sign-in-link', '1');
    const token = /\/sign-in\/link\/([\w-]+)/.exec(link)?.[1] ?? assert.fail(link);
    assert.equal((await visitor.post('/sign-in/link', { token })).status, 303);
    const send = async (path: string, fields: Record<string, string>): Promise<string> => {
      const form = /name="form" value="([0-9a-f]{64})"/.exec((await visitor.get(path)).text)?.[1] ?? '';
      const { status, text } = await visitor.post(path, { form, ...fields });
      assert.ok(status < 400, `${path}: ${status} ${/<h1>.*?<\/h1>/.exec(text)?.[0] ?? ''}`);
      return text;
    };
    const created = keyIn(await send('/settings/keys/new', { lifetime: '90' }));
    const rolled = keyIn(await send(`/settings/keys/${created.slice(0, 12)}/roll`, { overlap: 'now' }));
    assert.deepEqual([await statusOf(created), await statusOf(rolled)], [401, 200]);
    for (const page of settingsPages(rolled.slice(0, 12))) {
      // It answers 404 for pages that came with this version.
      const { status, text } = await inTime(() => visitor.get(page));
      assert.ok(status < 500, `${page}: ${status} ${text}`);
    }
    for (const page of ['/', '/docs', '/settings']) {
      assert.equal((await inTime(() => visitor.get(page))).status, 200, page);
    }
    await send(`/settings/keys/${rolled.slice(0, 12)}/revoke`, {});
    assert.equal(await statusOf(rolled), 401);
  }

  it('its servers answer every request while this version migrates their database', async () => {
    const load = startLoad(server.url, key, 2);
    await eventually('the load flows', () => load.statuses.length > 20);
    const { applied } = JSON.parse(await runNow('migrate', '--json')) as { applied: string[] };
    const soFar = load.statuses.length;
    await eventually('the load flows on', () => load.statuses.length > soFar + 20);
    await load.stop();
    assert.deepEqual(
      load.statuses.filter((status) => status !== 200 && status !== 503),
      [],
    );
    console.log(
      `      ${release.name} served ${load.statuses.length} requests during ${applied.join(', ') || 'a migration without changes'}`,
    );
  });

  it('its API and its pages work on the schema of this version', async () => {
    await callTheApi();
    await useThePages();
  });

  it('while servers are replaced, commands and servers of both versions accept the keys of the other, and a revocation by either applies to both', async () => {
    const next = await startServer({ ...serving, DATABASE_URL: environment.DATABASE_URL ?? '' });
    closers.unshift(() => next.stop('SIGKILL'));
    const ours = keyIn(await runNow('keys', 'create', '--developer', '1', '--plan', 'free'));
    const theirs = keyIn(await runBefore('keys', 'create', '--developer', '1', '--plan', 'free'));
    for (const each of [ours, theirs]) {
      assert.deepEqual([await statusOf(each), await statusOf(each, next)], [200, 200]);
    }
    await runNow('keys', 'revoke', theirs.slice(0, 12));
    await runBefore('keys', 'revoke', ours.slice(0, 12));
    for (const each of [ours, theirs]) {
      assert.deepEqual([await statusOf(each), await statusOf(each, next)], [401, 401]);
    }
    assert.equal((await server.stop()).code, 0);
    assert.equal((await next.stop()).code, 0);
  });

  it('its mirror loads copies that this version has published, and the other way round', async () => {
    const folder = await temporaryFolder();
    const host = await startServer({ ...serving, COPIES_DIR: folder });
    closers.unshift(() => host.stop('SIGKILL'));
    const publish = ['export', '--publish', folder, '--base-url', host.url];
    const mirror = ['mirror', '--from', host.url, '--once', '--schema'];
    environment = { ...environment, CATALOG_API_KEY: key, MIRROR_DATABASE_URL: environment.DATABASE_URL ?? '' };
    const titles = (schema: string) => db.withSchema(schema).from('titles').pluck<string[]>('svc_id');
    await runBefore(...publish);
    await runNow(...mirror, 'mirror_now');
    await db('people').insert({ svc_id: 'p', name: 'Makes the next copy differ' });
    await runNow(...publish);
    await runBefore(...mirror, 'mirror_before');
    assert.deepEqual([await titles('mirror_now'), await titles('mirror_before')], [['blade-runner'], ['blade-runner']]);
  });

  it('after a roll-back its servers start on a newer schema and serve, but it refuses to migrate', async () => {
    // This version may have added no migration.
    await db('migrations').insert({ name: 'of-a-newer-version.sql' });
    server = await start(release.program);
    await callTheApi();
    const { code, stderr } = await runProgram(['migrate'], environment, '', { program: release.program });
    assert.equal(code, 1);
    assert.match(stderr, /migrations that this version of the service lacks: .+Run a newer version/);
  });
});
