import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { restartFeed } from '../../src/catalog/restart.js';
import { formatManifest } from '../../src/copies/manifest.js';
import { signInOperator } from '../support/http/operator.js';
import type { Visitor } from '../support/http/visitor.js';
import { send } from '../support/request.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { testWorld } from '../support/world.js';
import { sampleManifest } from './sample-manifest.js';

const DAY_MS = 86_400_000;

describe('the age of the newest published copy', () => {
  const world = testWorld();
  let folder: string;
  let operator: Visitor;
  let metricsUrl: string;

  before(async () => {
    folder = await temporaryFolder();
    const service = await world.startService({
      settings: { METRICS_ADDRESS: '127.0.0.1:0', COPIES_DIR: folder, SITE: 'off' },
    });
    metricsUrl = service.operatorUrl ?? assert.fail('no metrics');
    operator = await signInOperator(service);
  });

  async function shown(): Promise<readonly [metric: number, page: string, refused: string | undefined]> {
    const { text } = await send(metricsUrl, '/metrics');
    const page = (await operator.get('/')).text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
    const copy = / Newest copy (.+?) Feed start /.exec(page)?.[1] ?? page;
    // The feed accepts the position of an old copy for another two weeks.
    const isOld = copy.endsWith('Too old');
    assert.equal(
      page.includes(' Mirrors cannot start from the newest copy once it is 30 days old: what to do '),
      isOld,
      page,
    );
    const isUseless = page.includes(' Mirrors cannot start from the newest copy: what to do ');
    assert.equal(isUseless, !isOld && /[a-z]$/.test(copy), page);
    assert.equal(page.includes(' Everything works. '), !isOld && !isUseless, page);
    return [
      Number(/^catalog_newest_copy_timestamp_seconds (\S+)$/m.exec(text)?.[1]),
      copy,
      /^catalog_newest_copy_refused (\S+)$/m.exec(text)?.[1],
    ];
  }

  async function publish(createdAt: number): Promise<void> {
    const manifest = { ...sampleManifest(), created_at: new Date(createdAt).toISOString() };
    await writeFile(join(folder, 'manifest.json'), formatManifest(manifest));
  }

  it('the metric and the status page show when the newest copy was made, and that it is too old or damaged', async () => {
    assert.deepEqual(await shown(), [0, 'None in COPIES_DIR yet', undefined]);
    const recent = Date.now() - 2 * DAY_MS;
    await publish(recent);
    const [metric, page] = await shown();
    assert.equal(metric, recent / 1_000);
    assert.match(page, /^2 days ago\b(?!.*Too old)/);
    const old = Date.now() - 16 * DAY_MS;
    await publish(old);
    const [oldMetric, oldPage] = await shown();
    assert.equal(oldMetric, old / 1_000);
    assert.match(oldPage, /^(?:2 weeks|16 days) ago\b.*Too old$/);
    await writeFile(join(folder, 'manifest.json'), '{');
    assert.deepEqual(await shown(), [0, 'Unreadable', undefined]);
  });

  it('the metric and the status page show that the feed refuses the newest copy after a restart', async () => {
    await publish(Date.now());
    assert.equal((await shown())[2], '0');
    await restartFeed(world.db);
    const [, page, refused] = await shown();
    assert.equal(refused, '1');
    assert.match(page, /Refused by the feed: publish another$/);
  });
});
