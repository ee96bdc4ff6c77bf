import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { Agent } from 'node:http';
import { connect, createServer, type AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { untilWaiting } from '../support/postgres/until-waiting.js';
import { eventually } from '../support/eventually.js';
import { assertProblem } from '../support/problem.js';
import { PRODUCT_BOUNDS, runProgram, startServer, timesLogged, type Outcome } from '../support/program.js';
import { runCommand } from '../support/programs/command.js';
import { converse } from '../support/http/conversation.js';
import { Visitor } from '../support/http/visitor.js';
import { send, type Reply } from '../support/request.js';
import { serverProcesses } from '../support/programs/server-processes.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';

/** Within this, in milliseconds, every request is answered. */
const REQUEST_BOUND_MS = 1_000;

/** Longer than a test may take: it fails if it waits for the end of such a drain. */
const ENDLESS_SECONDS = '600';

const KEY = /svc_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}/;

describe('the program on its embedded PostgreSQL', () => {
  let environment: { DATA_DIR: string; SITE: string };
  let key: string;

  before(async () => {
    environment = { DATA_DIR: await temporaryFolder(), SITE: 'on' };
  });

  afterEach(() => {
    assert.deepEqual(serverProcesses(environment.DATA_DIR), [], 'PostgreSQL has ended');
  });

  function catalog(...args: string[]): Promise<Outcome> {
    return runCommand(args, environment);
  }

  async function statusOf(url: string, apiKey: string): Promise<number> {
    return (await send(url, '/api/v1/me', { headers: { authorization: `Bearer ${apiKey}` } })).status;
  }

  /** @returns the service that the published copy is of */
  async function copyOf(url: string, apiKey: string): Promise<string> {
    const { json } = await send(url, '/copies/manifest.json', { headers: { authorization: `Bearer ${apiKey}` } });
    return (json as { base_url: string }).base_url;
  }

  it('a server whose port is in use ends with an error and leaves only its data behind, without a key that nobody has seen', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    const { code, stdout, stderr } = await runProgram(['serve', '--migrate', '--demo'], {
      ...environment,
      PORT: String(port),
    });
    holder.close();
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `catalog: Cannot listen on HOST 127.0.0.1, PORT ${port}: the port is in use. Stop what uses it, or set PORT to another one.\n`,
    );
    assert.doesNotMatch(stdout, /listening/);
    assert.deepEqual((await readdir(environment.DATA_DIR)).sort(), ['postgresql', 'server.log']);
  });

  it('the first start fills a demo catalogue and prints a key with calls that succeed', async () => {
    const begin = new Date().toISOString();
    const server = await startServer(environment, ['--migrate', '--demo']);
    const calls = await eventually('the welcome', () => {
      const printed = [...server.output.stdout.matchAll(/^ {2}curl -H "Authorization: (.+)" '(.+)'$/gm)];
      return printed.length === 3 && printed;
    });
    key = KEY.exec(server.output.stdout)?.[0] ?? assert.fail('no key is printed');
    const data = await Promise.all(
      calls.map(async ([, authorization = '', url = '']) => {
        const { origin, pathname, search } = new URL(url);
        assert.equal(origin, server.url.replace('127.0.0.1', 'localhost'));
        const { status, json } = await send(origin, pathname + search, { headers: { authorization } });
        assert.equal(status, 200);
        return (json as { data: unknown }).data;
      }),
    );
    const [stats, changes, title] = data;
    assert.ok(Object.values(stats as object).every((count) => count > 0));
    const stamps = (changes as { updated_at: string }[]).map(({ updated_at: at }) => at);
    const days = new Set(stamps.map((at) => at.slice(0, 10)));
    assert.ok(days.size >= 6 && stamps.every((at) => !at.endsWith('0Z')), 'the changes are spread over the last week');
    assert.ok((stamps.at(-1) ?? '') >= begin, 'the newest keeps its stamp');
    assert.match((await catalog('stats', 'verify')).stdout, /^All counters are correct/);
    assert.equal(await copyOf(server.url, key), server.url.replace('127.0.0.1', 'localhost'));
    assert.equal((title as { title: string }).title, 'Blade Runner');
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
    const { keys } = JSON.parse((await catalog('keys', 'list', '--json')).stdout) as {
      keys: { last_used_at: string | null }[];
    };
    assert.equal(keys.length, 1);
    assert.notEqual(keys[0]?.last_used_at, null, 'the last use is saved at the end');
  });

  it('the next start keeps the data, and prints no key but a link that signs the demo developer in; Ctrl-C ends it without a drain', async () => {
    const settings = { ...environment, DRAIN_SECONDS: ENDLESS_SECONDS };
    const server = await startServer(settings, ['--migrate', '--demo'], { detached: true });
    const link = await eventually('the welcome', () => /^ {2}(\S+)\/sign-in\/link\/(\S+)$/m.exec(server.output.stdout));
    assert.match(server.output.stdout, /make key\b.*make link\b/s);
    const another = JSON.parse((await catalog('developers', 'sign-in-link', '--demo', '--json')).stdout) as {
      url: string;
    };
    assert.equal(new URL(another.url).origin, link[1], 'with the port that the server chose');
    assert.match(server.output.stdout, /^ {2}curl -H "Authorization: Bearer \$CATALOG_API_KEY" 'http:.+\/stats'$/m);
    assert.doesNotMatch(server.output.stdout, KEY);
    assert.equal(link[1], server.url.replace('127.0.0.1', 'localhost'));
    const { status } = await new Visitor(server.url).post('/sign-in/link', { token: link[2] ?? '' });
    assert.equal(status, 303);
    assert.equal(await statusOf(server.url, key), 200);
    // As Ctrl-C in a terminal does: there is no drain. PostgreSQL stops only when the server no longer needs it.
    process.kill(-(server.child.pid ?? assert.fail()), 'SIGINT');
    const { code, stdout } = await server.ended;
    assert.deepEqual([code, /"level":[45]0/.test(stdout)], [0, false]);
  });
});

describe('a server that shuts down', () => {
  const world = testWorld();

  it('requests in flight finish before the server ends with code 0, and idle connections do not delay it', async () => {
    const { key } = await world.newKey();
    const server = await world.startServer(PRODUCT_BOUNDS);
    const agent = new Agent({ keepAlive: true });
    assert.equal((await send(server.url, '/livez', { agent })).status, 200);
    const blocker = await world.db.transaction();
    try {
      await blocker.raw('lock table catalog_counts in access exclusive mode');
      // One whose end has not arrived yet, and one that waits for the lock inside the database.
      const slow = connect(Number(new URL(server.url).port), '127.0.0.1');
      const answer = readText(slow);
      slow.write(`GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n`);
      const reply = send(server.url, '/api/v1/stats', { headers: { 'x-api-key': key } });
      await untilWaiting('the request waits', world.db);
      const ended = server.stop();
      await eventually('no new connection is accepted', () =>
        send(server.url, '/livez').then(
          () => false,
          () => true,
        ),
      );
      // It is not cut: its own bound ends it.
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
      agent.destroy();
      await blocker.rollback();
    }
  });

  function assertServed({ status, headers: { connection } }: Reply): void {
    assert.deepEqual({ status, connection }, { status: 200, connection: 'close' });
  }

  it('after SIGTERM a server serves while balancers and clients leave, and a second signal ends it at once', async () => {
    const headers = { authorization: `Bearer ${(await world.newKey()).key}` };
    const server = await startServer({ ...world.environment, DRAIN_SECONDS: ENDLESS_SECONDS });
    world.defer(() => server.stop('SIGKILL'));
    const agent = new Agent({ keepAlive: true });
    const kept = await send(server.url, '/api/v1/me', { headers, agent });
    assert.deepEqual([kept.status, kept.headers.connection], [200, 'keep-alive']);

    server.child.kill('SIGTERM');
    await eventually('it is stopping', () => timesLogged(server, 'stopping') > 0);
    const readiness = await send(server.url, '/readyz');
    const { reasons, checks } = readiness.json as { reasons: { code: string }[]; checks: object };
    assert.deepEqual(
      reasons.map(({ code }) => code),
      ['shutting_down'],
    );
    assertProblem(readiness, 'service_unavailable', {
      members: { reasons, checks },
      headers: { connection: 'close', 'retry-after': '2' },
    });
    assertServed(await send(server.url, '/api/v1/stats', { headers }));
    assertServed(await send(server.url, '/livez'));
    assertServed(await send(server.url, '/api/v1/me', { headers, agent }));
    agent.destroy();
    // Of requests that come together, only the last answer closes the connection.
    const request = `GET /api/v1/stats HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\n\r\n`;
    const { received, statuses } = await converse(server.url, request.repeat(5));
    assert.deepEqual(statuses, Array(5).fill(200));
    assert.equal(received.split('Connection: close').length - 1, 1);

    const { code, stderr } = await server.stop('SIGINT');
    assert.deepEqual([code, stderr], [1, '']);
  });
});
