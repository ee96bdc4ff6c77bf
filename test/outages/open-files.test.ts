import assert from 'node:assert/strict';
import { connectionsWithin } from '../../src/platform/process/file-descriptors.js';
import { eventually } from '../support/eventually.js';
import { KeptConnections, requestFor, type Tally } from '../support/http/kept-connections.js';
import { startProgram, timesLogged, type ServerProcess } from '../support/program.js';
import { logOf, startWorkers } from '../support/deployments/workers.js';
import { testWorld } from '../support/world.js';

/** What each server process may have open: little, to be used up soon. */
const OPEN_FILES = 160;
const DATABASE_POOL_SIZE = 10;

/** Connections that each server process then has for clients. */
const MOST = connectionsWithin(DATABASE_POOL_SIZE, OPEN_FILES);

/** Connections that are made at the same time. */
const CROWD = 100;

/** Of the first connections, when the others are closed. */
const LEFT_OPEN = 4;

describe('a server that may open few files', () => {
  const world = testWorld({ redis: true });
  let server: ServerProcess;
  let key: string;

  before(async () => ({ key } = await world.newKey()));

  afterEach(() => server.stop());

  function connections(count: number): KeptConnections {
    return new KeptConnections(server.url, count, requestFor('/api/v1/stats', key));
  }

  /** Lines of the log with the number of connections, shortened. */
  function reports(): { msg: string; max_connections: number }[] {
    return (logOf(server) as unknown as { msg: string; max_connections: number | undefined }[]).flatMap(
      ({ msg, max_connections }) =>
        max_connections === undefined ? [] : { msg: msg.replace(/\..*/, ''), max_connections },
    );
  }

  for (const workers of [1, 2]) {
    it(`a server without open files to spare serves the connections that it has (processes: ${workers})`, async () => {
      const environment = { ...world.environment, DATABASE_POOL_SIZE: String(DATABASE_POOL_SIZE) };
      server = await startWorkers(environment, workers, [], { openFiles: OPEN_FILES });
      const room = MOST * workers;
      const clients = connections(room * 3);
      const served = ({ 200: answered = 0 }: Tally): number => answered;

      // Of a crowd, a worker that refuses gets more connections than one that serves: it is done sooner.
      assert.equal(served(await clients.ask(workers === 1 ? CROWD : 1)), room);
      assert.equal(clients.states.open, room);
      const full = { msg: 'connections full', max_connections: MOST };
      await eventually('each has logged it', () => reports().length === workers);
      assert.deepEqual(reports(), Array(workers).fill(full));

      // It can open its own connections again.
      await world.db.raw(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'catalog serve%'",
      );
      await world.redis.restart();
      for (const back of ['redis back', 'announcements back']) {
        await eventually(back, () => timesLogged(server, back) >= workers);
      }
      await eventually('all are served again', async () => served(await clients.ask()) === room);

      clients.close(room - LEFT_OPEN);
      await eventually('there is room again', () => reports().length === workers * 2);
      const free = { msg: 'connections free again', max_connections: MOST };
      assert.deepEqual(reports().slice(workers), Array(workers).fill(free));
      assert.deepEqual(await connections(workers * 4).ask(), { 200: workers * 4 });
      assert.equal(served(await clients.ask()), LEFT_OPEN);

      const { code, stderr } = await server.stop();
      assert.deepEqual([code, stderr], [0, '']);
    });
  }

  it('a server refuses to start when it would have no files left for clients', async () => {
    const { code, stderr } = await startProgram(['serve'], world.environment, { openFiles: 120 }).ended;
    assert.deepEqual(
      [code, stderr],
      [
        1,
        'catalog: This process may open 120 files and needs 116 itself, which leaves too few for clients. ' +
          'Raise the limit to 116 plus one for each connection, such as ulimit -n 1116.\n',
      ],
    );
  });
});
