import assert from 'node:assert/strict';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { runProgram, startProgram, startServer } from '../support/program.js';
import { freePort } from '../support/programs/free-port.js';
import { send } from '../support/request.js';
import { linesOf, logOf, startSurroundings, workersOf, type Surroundings } from '../support/deployments/workers.js';

describe('a server with workers', () => {
  let surroundings: Surroundings;
  let environment: Readonly<Record<string, string>>;
  let admin: pg.Client | undefined;

  before(async () => {
    surroundings = await startSurroundings();
    environment = { ...surroundings.environment, WORKERS: '2' };
  });

  after(async () => {
    await admin?.end();
    await surroundings.stop();
  });

  it('refuses to start without Redis: each process would count limits for itself', async () => {
    const { DATABASE_URL = '' } = environment;
    assert.deepEqual(await runProgram(['serve'], { DATABASE_URL, WORKERS: '2' }), {
      code: 1,
      stdout: '',
      stderr:
        'catalog: These settings cannot be used:\n' +
        '  WORKERS must be 1 without REDIS_URL: each process would count limits for itself, and allow that many times the plan\n',
    });
  });

  it('says once, and as one process does, why it cannot start', async () => {
    const server = await startServer(environment);
    const { port } = new URL(server.url);
    // Metrics may find their address taken as well, which is another matter.
    const again = { ...environment, PORT: port, METRICS_ADDRESS: 'off' };
    const taken = await runProgram(['serve'], again);
    assert.deepEqual(taken, {
      code: 1,
      stdout: '',
      stderr: `catalog: Cannot listen on HOST 127.0.0.1, PORT ${port}: the port is in use. Stop what uses it, or set PORT to another one.\n`,
    });
    assert.deepEqual(await runProgram(['serve'], { ...again, WORKERS: '1' }), taken);
    assert.equal((await server.stop()).code, 0);
  });

  it('ends in order by Ctrl-C while its workers start, which reaches them as well', async () => {
    const server = startProgram(
      ['serve'],
      { ...environment, WORKERS: '8', PORT: '0', METRICS_ADDRESS: 'off' },
      { detached: true },
    );
    // The others have been started by then, and most cannot end in order yet.
    await eventually('the first worker listens', () => linesOf(server, 'worker listening').length > 0);
    process.kill(-(server.child.pid ?? assert.fail()), 'SIGINT');
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
  });

  it('drains after SIGTERM also while further workers start: the first one has clients', async () => {
    const server = startProgram(['serve'], {
      ...environment,
      PORT: '0',
      METRICS_ADDRESS: 'off',
      DRAIN_SECONDS: '1',
    });
    await eventually('the first worker listens', () => linesOf(server, 'worker listening').length > 0);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(server.output.stdout, /"drain_seconds":1,"msg":"stopping"/);
    // It did not wait for the second worker before.
    const messages = logOf(server).map(({ msg }) => msg);
    const before = messages.slice(0, messages.indexOf('stopping'));
    assert.equal(before.filter((message) => message === 'worker listening').length, 1);
  });

  it('serves although a further worker cannot start, and tries again after growing pauses, until it lives', async () => {
    const { pathname } = new URL(surroundings.database.url);
    const name = pathname.slice(1);
    admin = new pg.Client({ connectionString: surroundings.database.url.replace(name, 'postgres') });
    await admin.connect();
    const url = `http://127.0.0.1:${await freePort()}`;
    const server = startProgram(['serve'], { ...environment, PORT: new URL(url).port, METRICS_ADDRESS: 'off' });
    const [first] = await eventually(
      'the first worker listens',
      () => workersOf(server).length > 0 && workersOf(server),
    );
    // Who is connected stays so. The second worker, which has begun to start, is not yet.
    await admin.query(`alter database ${name} allow_connections false`);
    await eventually('the server says that it listens', () => linesOf(server, 'listening').length > 0);
    const pauses = await eventually('several have died', () => {
      const deaths = linesOf(server, 'worker ended').filter(({ signal }) => signal === null);
      return deaths.length >= 4 && deaths.map(({ restart_in_ms: pause }) => pause);
    });
    assert.equal((await send(url, '/readyz')).status, 200);
    await admin.query(`alter database ${name} allow_connections true`);
    // Each twice the one before.
    assert.deepEqual(pauses.slice(0, 4), [0, 100, 200, 400]);
    const [death] = linesOf(server, 'worker ended').filter(({ signal }) => signal === null);
    assert.match(
      death?.reason ?? '',
      /^The database named by DATABASE_URL cannot be reached: .*not currently accepting/,
    );

    await eventually('it has its workers again', () => workersOf(server).length === 2);
    assert.equal(workersOf(server)[0], first);
    assert.equal((await send(url, '/readyz')).status, 200);
    assert.equal(linesOf(server, 'listening').length, 1);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.deepEqual([code, stderr], [0, '']);
  });
});
