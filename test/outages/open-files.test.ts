import assert from 'node:assert/strict';
import { connectionsWithin } from '../../src/service/servers/file-descriptors.js';
import { eventually } from '../support/eventually.js';
import { KeptConnections, requestFor, type Tally } from '../support/http/kept-connections.js';
import { logOf, startProgram, startServer, timesLogged, type ServerProcess } from '../support/program.js';
import { testWorld } from '../support/world.js';

/** What the server may have open: little, to be used up soon. */
const OPEN_FILES = 160;
const DATABASE_POOL_SIZE = 10;

/** Connections that it then has for clients. */
const MOST = connectionsWithin({ databasePoolSize: DATABASE_POOL_SIZE, databaseReadUrl: undefined }, OPEN_FILES);

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
    return logOf(server).flatMap(({ msg, max_connections }) =>
      max_connections === undefined ? [] : { msg: msg.replace(/\..*/, ''), max_connections },
    );
  }

  it('a server without open files to spare serves the connections that it has', async () => {
    const environment = { ...world.environment, DATABASE_POOL_SIZE: String(DATABASE_POOL_SIZE) };
    server = await startServer(environment, [], { openFiles: OPEN_FILES });
    const clients = connections(MOST * 3);
    const served = ({ 200: answered = 0 }: Tally): number => answered;

    assert.equal(served(await clients.ask(CROWD)), MOST);
    assert.equal(clients.states.open, MOST);
    const full = { msg: 'connections full', max_connections: MOST };
    await eventually('it has logged that', () => reports().length === 1);
    assert.deepEqual(reports(), [full]);

    // It can open its own connections again.
    await world.db.raw(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'catalog serve%'",
    );
    await world.redis.restart();
    await eventually('Redis is back', () => timesLogged(server, 'redis back') > 0);
    await eventually('the server looks at the announcements', () =>
      world
        .db('pg_stat_activity')
        .where('application_name', 'catalog serve')
        .whereLike('query', '%from caller_changes%')
        .first('pid'),
    );
    await eventually('all are served again', async () => served(await clients.ask()) === MOST);

    clients.close(MOST - LEFT_OPEN);
    await eventually('there is room again', () => reports().length === 2);
    assert.deepEqual(reports()[1], { msg: 'connections free again', max_connections: MOST });
    assert.deepEqual(await connections(4).ask(), { 200: 4 });
    assert.equal(served(await clients.ask()), LEFT_OPEN);

    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
  });

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
