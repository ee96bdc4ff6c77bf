import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from '../support/programs/command.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { startScripted, type ScriptedServer } from './scripted-server.js';

const KEY = 'svc_abcdefgh_0123456789abcdefghijklmnopqrstuvwxyz';

const PAGE = { data: [], meta: { has_more: false, next_since: 1_795_218_005 } };

describe('catalog follow, redirected to another host', () => {
  let other: ScriptedServer;

  before(async () => {
    other = await startScripted([{ body: PAGE }]);
  });

  after(() => other.close());

  for (const status of [301, 302, 303, 307, 308]) {
    it(`by ${status}, asks nothing of it, so it never receives the key`, async () => {
      const location = `${other.url.replace('127.0.0.1', 'localhost')}/api/v1/changes?since=1795218000`;
      const service = await startScripted([{ status, body: '', headers: { Location: location } }]);
      const state = join(await temporaryFolder(), 'mirror.json');
      const { code, stdout, stderr } = await runCommand(
        ['follow', '--base-url', service.url, '--state', state, '--since', '1795218000', '--once'],
        { CATALOG_API_KEY: KEY },
      );
      await service.close();
      assert.deepEqual(other.requests, []);
      assert.deepEqual(
        service.requests.map(({ authorization }) => authorization),
        [`Bearer ${KEY}`],
      );
      assert.deepEqual([code, stdout, existsSync(state)], [1, '', false]);
      assert.ok(
        stderr.endsWith(
          `\ncatalog: The base URL redirects to ${location} (${status}). Give the address of the service itself.\n`,
        ),
        stderr,
      );
      assert.ok(!stderr.includes(KEY.slice(-12)), stderr);
    });
  }
});
