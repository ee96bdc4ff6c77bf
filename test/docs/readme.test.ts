import assert from 'node:assert/strict';
import { GUIDES, readReadme } from '../support/guides.js';
import { send } from '../support/request.js';
import type { TestService } from '../support/service.js';
import { startDemoService } from '../support/catalog/demo-service.js';

/** Replaces what differs from one run to the next. */
function withoutWhatVaries(json: unknown): unknown {
  return JSON.parse(
    JSON.stringify(json)
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '(time)')
      .replace(/svc_\w{8}/g, '(key)')
      .replace(/"request_id":"[^"]+"/g, '"request_id":"(id)"'),
  );
}

describe('README', () => {
  let readme: string;

  before(async () => {
    readme = await readReadme();
  });

  it('the README has at most 150 lines', () => {
    assert.ok(readme.trimEnd().split('\n').length <= 150);
  });

  it('the README links to every guide', () => {
    for (const guide of GUIDES) assert.ok(readme.includes(`(src/site/guides/${guide}.md)`), guide);
  });

  describe('first calls', () => {
    let service: TestService;
    let key: string;

    before(async () => {
      ({ service, key } = await startDemoService());
    });

    after(() => service.stop());

    it('the first calls of the README get the answers that it shows', async () => {
      const calls = [...readme.matchAll(/```sh\ncurl (.*)http:\/\/127\.0\.0\.1:8080(\S+)\n```\n\n```json\n(.+)\n```/g)];
      assert.equal(calls.length, 4);
      for (const [, options = '', path = '', shown = ''] of calls) {
        const header = /^-H "Authorization: Bearer \$KEY" $/.test(options) ? { authorization: `Bearer ${key}` } : {};
        assert.ok(options === '' || 'authorization' in header, options);
        const { json } = await send(service.url, path, { headers: header });
        assert.deepEqual(withoutWhatVaries(json), withoutWhatVaries(JSON.parse(shown)), path);
      }
    });
  });
});
