import assert from 'node:assert/strict';
import { KeptConnections, requestFor } from '../../support/http/kept-connections.js';
import { startServer } from '../../support/program.js';
import { newKey } from '../../support/deployments/deployment.js';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database.js';
import { send } from '../../support/request.js';

/** As many as fit into a limit of 1,024 open files, on both sides. */
const IDLE = 800;

/** On other connections, meanwhile. */
const OTHERS = 50;

describe('hundreds of idle connections', () => {
  let database: OpenTestDatabase;
  let key: string;

  before(async () => {
    database = await openTestDatabase();
    ({ key } = await newKey(database.db, 'scale'));
  });

  after(() => database.close());

  it('are kept while others are served, can be used again, and are closed in order at the end', async () => {
    const server = await startServer({ DATABASE_URL: database.url });
    const idle = new KeptConnections(server.url, IDLE, requestFor('/api/v1/me', key));
    assert.deepEqual(await idle.ask(), { 200: IDLE });
    for (let i = 0; i < OTHERS; i += 1) {
      const { status } = await send(server.url, '/api/v1/stats', { headers: { authorization: `Bearer ${key}` } });
      assert.equal(status, 200);
    }
    assert.deepEqual(await idle.ask(), { 200: IDLE });

    const { code, stderr } = await server.stop();
    assert.deepEqual([code, stderr], [0, '']);
    assert.deepEqual(await idle.over(), { ended: IDLE });
  });
});
