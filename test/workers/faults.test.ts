import assert from 'node:assert/strict';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { runProgram, startProgram, startServer } from '../support/program.js';
import { send } from '../support/request.js';
import { linesOf, startSurroundings, workersOf, type Surroundings } from '../support/deployments/workers.js';

describe('a server with workers', () => {
  let surroundings: Surroundings;
  let environment: Readonly<Record<string, string>>;

  before(async () => {
    surroundings = await startSurroundings();
    environment = { ...surroundings.environment, WORKERS: '2' };
  });

  after(() => surroundings.stop());

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

  it('replaces workers that die again and again after growing pauses, until they live', async () => {
    const { pathname } = new URL(surroundings.database.url);
    const name = pathname.slice(1);
    const server = await startServer(environment);
    const [survivor = 0, victim = 0] = workersOf(server);
    const admin = new pg.Client({ connectionString: surroundings.database.url.replace(name, 'postgres') });
    await admin.connect();
    // Who is connected stays so. A worker that starts now cannot.
    await admin.query(`alter database ${name} allow_connections false`);
    process.kill(victim, 'SIGKILL');
    const pauses = await eventually('several have died', () => {
      const deaths = linesOf(server, 'worker ended').filter(({ signal }) => signal === null);
      return deaths.length >= 4 && deaths.map(({ restart_in_ms: pause }) => pause ?? 0);
    });
    await admin.query(`alter database ${name} allow_connections true`);
    await admin.end();
    // Each twice the one before. The first depends on how long the killed one had lived.
    const [first = 0] = pauses.filter((pause) => pause > 0);
    assert.ok(first === 100 || first === 200, String(first));
    const doubled = pauses.filter((pause) => pause > 0).map((_, i) => first * 2 ** i);
    assert.deepEqual(
      pauses.filter((pause) => pause > 0),
      doubled,
    );
    const [death] = linesOf(server, 'worker ended').filter(({ signal }) => signal === null);
    assert.match(
      death?.reason ?? '',
      /^The database named by DATABASE_URL cannot be reached: .*not currently accepting/,
    );

    await eventually('it has its workers again', () => workersOf(server).length === 2);
    assert.ok(workersOf(server).includes(survivor));
    assert.equal((await send(server.url, '/readyz')).status, 200);
    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
  });
});
