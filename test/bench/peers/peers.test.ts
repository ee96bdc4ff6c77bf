import assert from 'node:assert/strict';
import { temporaryFolder } from '../../support/temporary-folder.js';
import { addTitles } from '../../support/titles.js';
import { testWorld } from '../../support/world.js';
import { createCases } from '../speed/cases.js';
import { differences } from '../speed/index.js';
import { PEERS, startSubject } from '../speed/servers.js';

describe('the peers of the benchmark', () => {
  const world = testWorld({ redis: true, service: true });

  before(() => addTitles(world.db, 410, 'title'));

  for (const peer of PEERS) {
    it(`return the same data as the service for every measured request: ${peer}`, async () => {
      const stores = { databaseUrl: world.url, redisUrl: world.redis.url, folder: await temporaryFolder() };
      const subject = await startSubject(peer, stores);
      try {
        const cases = await createCases(world.db);
        assert.deepEqual(await differences([world.service.url, subject.url], Object.values(cases)), []);
      } finally {
        await subject.stop();
      }
    });
  }
});
