import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { MANIFEST_NAME } from '../../../../src/copies/manifest.js';
import { mirrorWorld } from '../mirror-world.js';

/** A title as the first version has published it. It stands here as text, so that no change of the code changes it. */
const ROW =
  '{"svc_id":"blade-runner-1982","media_type":"movie","title":"Blade \\"Runner\\" é","updated_at":"2026-11-20T23:40:05.123456Z","has_bundles":false}';

const COLUMNS = '"columns":["svc_id","media_type","title","updated_at","has_bundles"]';

const PEOPLE =
  '{"kind":"people","name":"people-1795218005123456-9f86d081884c7d65.ndjson.gz","bytes":20,"decoded_bytes":0,"rows":0,"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","columns":["svc_id","name"]}';

/** A published copy: a row, its columns, further members of the manifest and further files. */
interface OtherCopy {
  readonly row: string;
  readonly columns: string;
  readonly members: string;
  readonly files: string;
}

const OLD: OtherCopy = { row: ROW, columns: COLUMNS, members: '', files: PEOPLE };

describe('a mirror and copies of other versions', () => {
  const world = mirrorWorld();

  /** Publishes a copy as another version does. */
  function publish({ row, columns, members, files }: OtherCopy): void {
    const decoded = Buffer.from(`${row}\n`);
    const content = gzipSync(decoded);
    const sha256 = createHash('sha256').update(content).digest('hex');
    const name = `titles-1795218005123456-${sha256.slice(0, 16)}.ndjson.gz`;
    const position = Math.floor(Date.now() / 1000) - 3_600;
    world.host.files.set(name, content);
    world.host.files.set(
      MANIFEST_NAME,
      Buffer.from(
        `{"version":1,"created_at":"2026-11-20T23:40:07.000Z","base_url":"${world.service.url}","position":${position}.123456,${members}` +
          `"files":[{"kind":"titles","name":"${name}","bytes":${content.length},"decoded_bytes":${decoded.length},"rows":1,"sha256":"${sha256}",${columns}},${files}]}`,
      ),
    );
  }

  const LATER: Readonly<Record<string, Partial<OtherCopy>>> = {
    'the first version, which names no feed': {},
    'a later version with a further column': {
      row: ROW.replace('}', ',"original_language":"en","svc":{"id":1}}'),
      columns: COLUMNS.replace(']', ',"original_language","svc"]'),
    },
    'a later version with its columns in another order': {
      row: '{"has_bundles":false,"updated_at":"2026-11-20T23:40:05.123456Z","title":"Blade \\"Runner\\" é","media_type":"movie","svc_id":"blade-runner-1982"}',
      columns: '"columns":["has_bundles","updated_at","title","media_type","svc_id"]',
    },
    'a later version with a further kind, columns of people and members': {
      members: '"studios":{"count":3},"complete_until":1795218005.000001,',
      files: `${PEOPLE.replace('"svc_id","name"', '"id"')},${PEOPLE.replaceAll('people', 'studios')}`,
    },
  };

  for (const [version, copy] of Object.entries(LATER)) {
    it(`a mirror loads a copy of ${version}`, async () => {
      publish({ ...OLD, ...copy });
      assert.match(await world.succeed(), /Loaded the copy of 2026-11-20T23:40:07\.000Z: 1 inserted/);
      const { svc_id: id, ...row } = JSON.parse(ROW) as { svc_id: string };
      const mirrored = await world.mirror.db.withSchema('catalog_mirror').from('titles').select('*');
      assert.deepEqual(mirrored, [{ svc_id: id, ...row }]);
      const verified = await world.run('verify');
      assert.equal(verified.code, 0, verified.stderr);
    });
  }

  it('a mirror refuses a copy without a column that it stores, and names it', async () => {
    publish({ ...OLD, columns: COLUMNS.replace(',"has_bundles"', ''), row: ROW.replace(',"has_bundles":false', '') });
    assert.match(
      await world.fail(),
      /The file titles-\S+\.ndjson\.gz of the published copy has no has_bundles\. Ask the operator of the service to/,
    );
    assert.equal(await world.state(), undefined);
  });
});
