import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { assertProblem } from '../support/problem.js';
import { runProgram, startServer, type Outcome } from '../support/program.js';
import { Visitor } from '../support/http/visitor.js';
import { send } from '../support/request.js';
import { serverProcesses } from '../support/programs/server-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** Within this, in milliseconds, every request is answered. */
const REQUEST_BOUND_MS = 1_000;

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

/** What the first start shows: the key, and the calls to paste. */
function readWelcome(stdout: string): { key: string; calls: { url: string; authorization: string }[] } {
  const calls = [...stdout.matchAll(/^ {2}curl -H 'Authorization: (.+)' '(.+)'$/gm)].map(([, authorization, url]) => ({
    authorization: authorization ?? '',
    url: url ?? '',
  }));
  return { key: KEY.exec(stdout)?.[0] ?? assert.fail(`no key in ${stdout}`), calls };
}

function bearer(key: string): { headers: { authorization: string } } {
  return { headers: { authorization: `Bearer ${key}` } };
}

describe('the program on its embedded PostgreSQL', () => {
  let environment: { DATA_DIR: string; SITE: string };
  let key: string;

  before(async () => {
    environment = { DATA_DIR: await temporaryFolder(), SITE: 'on' };
  });

  function catalog(...args: string[]): Promise<Outcome> {
    return runProgram(args, environment);
  }

  it('starts from nothing with a demo, and prints calls that work', async () => {
    const server = await startServer(environment, ['--migrate', '--demo']);
    const welcome = await eventually('the welcome', () =>
      server.output.stdout.includes('/titles/') ? readWelcome(server.output.stdout) : undefined,
    );
    ({ key } = welcome);
    assert.equal(welcome.calls.length, 3);
    const replies = await Promise.all(
      welcome.calls.map(({ url, authorization }) => {
        const { origin, pathname, search } = new URL(url);
        assert.equal(origin, server.url);
        return send(origin, pathname + search, { headers: { authorization } });
      }),
    );
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200],
    );
    const [stats, changes, title] = replies.map(({ json }) => (json as { data: unknown }).data);
    assert.deepEqual(stats, {
      titles: 360,
      movies: 240,
      series: 120,
      available_in_library: 221,
      people: 220,
      svc_collections: 31,
    });
    assert.equal((changes as unknown[]).length, 200);
    assert.equal((title as { title: string }).title, 'Blade Runner');

    const { code, stderr } = await server.stop();
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.deepEqual(serverProcesses(environment.DATA_DIR), []);
  });

  it('saves when the key was last used before it ends', async () => {
    const { keys } = JSON.parse((await catalog('keys', 'list', '--json')).stdout) as {
      keys: { last_used_at: string | null }[];
    };
    assert.equal(keys.length, 1);
    assert.notEqual(keys[0]?.last_used_at, null);
    assert.deepEqual(serverProcesses(environment.DATA_DIR), []);
  });

  it('starts again with its data, and shows no key but a link that signs the demo developer in', async () => {
    const server = await startServer(environment, ['--migrate', '--demo'], { detached: true });
    const link = await eventually('the welcome', () => /^ {2}(\S+)\/sign-in\/link\/(\S+)$/m.exec(server.output.stdout));
    assert.match(server.output.stdout, /make key/);
    assert.doesNotMatch(server.output.stdout, KEY);
    assert.equal(link[1], server.url);
    const { status } = await new Visitor(server.url).post('/sign-in/link', { token: link[2] ?? '' });
    assert.equal(status, 303);
    assert.equal((await send(server.url, '/api/v1/me', bearer(key))).status, 200);
    // What Ctrl-C in a terminal does: PostgreSQL is stopped only when the server needs it no more.
    process.kill(-(server.child.pid ?? assert.fail()), 'SIGINT');
    const { code, stdout } = await server.ended;
    assert.deepEqual([code, /"level":[45]0/.test(stdout)], [0, false]);
  });

  it('applies changes made on the command line from the next request', async () => {
    const server = await startServer(environment);
    const created = JSON.parse((await catalog('keys', 'create', '--demo', '--json')).stdout) as Record<string, string>;
    const second = created.key ?? '';
    assert.equal((await send(server.url, '/api/v1/me', bearer(second))).status, 200);

    assert.equal((await catalog('keys', 'revoke', created.key_prefix ?? '')).code, 0);
    assert.equal((await send(server.url, '/api/v1/me', bearer(second))).status, 401);

    const id = String(created.developer_id);
    assert.equal((await catalog('developers', 'suspend', id)).code, 0);
    assert.equal((await send(server.url, '/api/v1/me', bearer(key))).status, 401);
    assert.equal((await catalog('developers', 'reinstate', id)).code, 0);
    assert.equal((await send(server.url, '/api/v1/me', bearer(key))).status, 200);
    assert.equal((await send(server.url, '/api/v1/me', bearer(second))).status, 401);

    // The commands have come and gone, and the database is still there.
    assert.equal((await send(server.url, '/readyz')).status, 200);
    assert.equal((await server.stop()).code, 0);
    assert.deepEqual(serverProcesses(environment.DATA_DIR), []);
  });

  it('leaves nothing behind when its port is in use', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    const { code, stdout, stderr } = await runProgram(['serve'], { ...environment, PORT: String(port) });
    holder.close();
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `catalog: Cannot listen on HOST 127.0.0.1, PORT ${port}: the port is in use. Stop what uses it, or set PORT to another one.\n`,
    );
    assert.doesNotMatch(stdout, /listening/);
    assert.deepEqual(serverProcesses(environment.DATA_DIR), []);
  });

  it('keeps what it needs in DATA_DIR and nothing else', async () => {
    assert.deepEqual(await readdir(environment.DATA_DIR), ['postgresql']);
  });
});

describe('a server that shuts down', () => {
  let database: TestDatabase;
  let key: string;

  before(async () => {
    database = await createTestDatabase();
    const environment = { DATABASE_URL: database.url };
    key = KEY.exec((await runProgram(['keys', 'create', '--demo'], environment)).stdout)?.[0] ?? assert.fail();
  });

  after(() => database.drop());

  it('lets requests in flight finish, then ends with code 0', async () => {
    const server = await startServer({ DATABASE_URL: database.url });
    const blocker = new pg.Client({ connectionString: database.url });
    await blocker.connect();
    await blocker.query('begin; lock table catalog_counts in access exclusive mode');
    try {
      // One whose end has not arrived yet, and one that waits for the lock inside the database.
      const slow = connect(Number(new URL(server.url).port), '127.0.0.1');
      const answer = readText(slow);
      slow.write(`GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n`);
      const reply = send(server.url, '/api/v1/stats', bearer(key));
      await eventually('the request waits', async () => {
        // A transaction sees the activity as it was at its first look.
        await blocker.query('select pg_stat_clear_snapshot()');
        const { rows } = await blocker.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        );
        return rows.length > 0;
      });
      const ended = server.stop();
      await eventually('no new connection is accepted', () =>
        send(server.url, '/livez').then(
          () => false,
          () => true,
        ),
      );
      // Cut off it never is: its own bound ends it.
      assertProblem(await reply, 'service_unavailable');
      // As long as requests may take.
      await delay(REQUEST_BOUND_MS);
      slow.write('\r\n');
      const text = await answer;
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
      assert.match(text, /^Connection: close\r$/m);
      assert.match(text, /"project_name"/);
      const { code, stdout } = await ended;
      assert.equal(code, 0);
      assert.match(stdout, /"msg":"stopped"}\n$/);
    } finally {
      await blocker.end();
    }
  });

  it('does not wait for idle connections', async () => {
    const server = await startServer({ DATABASE_URL: database.url });
    const agent = new Agent({ keepAlive: true });
    await new Promise((resolve, reject) => {
      get(`${server.url}/livez`, { agent }, (response) => response.resume().once('end', resolve)).once('error', reject);
    });
    const { code, stdout } = await server.stop();
    agent.destroy();
    assert.equal(code, 0);
    assert.match(stdout, /"msg":"stopped"}\n$/);
  });
});
