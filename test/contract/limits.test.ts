import assert from 'node:assert/strict';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { startService, type TestService } from '../support/service.js';
import type { Reply } from '../support/request.js';
import { deviationsFrom } from './document/conformance.js';
import { resolve } from './document/document.js';

/** A bound that the contract documents, such as `maxLength`. */
function bound(schema: string, property: string | undefined, keyword: string): number {
  const place = property === undefined ? schema : `${schema}/properties/${property}`;
  const value = resolve({ $ref: `#/components/schemas/${place}` })[keyword];
  if (typeof value !== 'number') throw new Error(`${place} has no ${keyword}`);
  return value;
}

const TITLE = bound('CatalogEntry', 'title', 'maxLength');
const SVC_ID = bound('SvcId', undefined, 'maxLength');
const PAGE = bound('ChangesResponse', 'data', 'maxItems');
const PROJECT_NAME = bound('Account', 'project_name', 'maxLength');
const PLAN_ID = bound('Plan', 'id', 'maxLength');
const PLAN_NAME = bound('Plan', 'name', 'maxLength');
const PER_MINUTE = bound('Plan', 'requests_per_minute', 'maximum');
const PER_DAY = bound('Plan', 'requests_per_day', 'maximum');
const REQUEST_ID = bound('RequestId', undefined, 'maxLength');

/** A character that takes four bytes, two units of UTF-16, and is one to the contract. */
const WIDE = '🎬';

/** What differs from a plan that the database takes. */
const plan = (change: Record<string, unknown>) => ({
  id: 'greatest',
  name: 'Greatest',
  requests_per_minute: 1,
  requests_per_day: 1,
  commercial_use: false,
  ...change,
});

describe('the limits of the contract', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  function assertConforms(operationId: string, reply: Reply): void {
    assert.equal(reply.status, 200, reply.text);
    const { status, headers, text: body } = reply;
    assert.deepEqual(deviationsFrom(operationId, { status, headers, body }), []);
  }

  it('let a title with the longest name and the longest id through whole, and the database takes none longer', async () => {
    const { db } = service;
    const longest = { svc_id: 'x'.repeat(SVC_ID), media_type: 'movie', title: WIDE.repeat(TITLE) };
    await db('titles').insert(longest);
    for (const [title, constraint] of [
      [{ ...longest, svc_id: 'other', title: WIDE.repeat(TITLE + 1) }, 'titles_title_length'],
      [{ ...longest, svc_id: 'x'.repeat(SVC_ID + 1) }, 'titles_svc_id_format'],
    ] as const) {
      await assert.rejects(db('titles').insert(title), { constraint });
    }

    const one = await service.get(`/api/v1/titles/${longest.svc_id}`);
    assertConforms('getTitle', one);
    const { svc_id: id, title: name } = (one.json as { data: typeof longest }).data;
    assert.deepEqual({ id, name }, { id: longest.svc_id, name: longest.title });

    const page = await service.get(`/api/v1/changes?since=${Math.floor(Date.now() / 1000) - 3_600}`);
    assertConforms('getChanges', page);
    const { data } = page.json as { data: (typeof longest)[] };
    assert.deepEqual(
      data.map(({ title }) => title),
      [longest.title],
    );
  });

  it('bound a page of changes, and the next entry waits for the next page', async () => {
    await service.db.raw(
      `insert into titles (svc_id, media_type, title) select 'page-' || n, 'series', ? from generate_series(1, ?::integer) n`,
      [WIDE.repeat(TITLE), PAGE + 1],
    );
    const since = Math.floor(Date.now() / 1000) - 3_600;
    const page = await service.get(`/api/v1/changes?since=${since}`);
    assertConforms('getChanges', page);
    const { data, meta } = page.json as { data: unknown[]; meta: { has_more: boolean } };
    assert.deepEqual([data.length, meta.has_more], [PAGE, true]);
  });

  it('let the longest names and the highest limits of a plan through, and the database takes none beyond', async () => {
    const { db } = service;
    const greatest = plan({
      id: `g${'-'.repeat(PLAN_ID - 1)}`,
      name: WIDE.repeat(PLAN_NAME),
      requests_per_minute: PER_MINUTE,
      requests_per_day: PER_DAY,
    });
    await db('plans').insert(greatest);
    for (const [change, refusal] of [
      [{ id: `g${'-'.repeat(PLAN_ID)}` }, { constraint: 'plans_id_format' }],
      [{ name: WIDE.repeat(PLAN_NAME + 1) }, { constraint: 'plans_name_length' }],
      [{ requests_per_minute: PER_MINUTE + 1 }, { code: '22003' }],
      [{ requests_per_day: PER_DAY + 1 }, { code: '22003' }],
    ] as const) {
      await assert.rejects(db('plans').insert(plan(change)), refusal);
    }
    const developer = { projectName: WIDE.repeat(PROJECT_NAME), attributionRequired: false };
    await assert.rejects(createDeveloper(db, { ...developer, projectName: `${developer.projectName}x` }), {
      constraint: 'developers_project_name_length',
    });
    const { id: developerId } = await createDeveloper(db, developer);
    const { key } = await createKey(db, { developerId, planId: greatest.id });

    const reply = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    assertConforms('getMe', reply);
    const { project_name: projectName, plan: shown } = (reply.json as { data: Record<string, unknown> }).data;
    assert.deepEqual({ projectName, shown }, { projectName: developer.projectName, shown: greatest });
  });

  it('let the longest id of a request through, and replace one that is longer', async () => {
    for (const [length, isKept] of [
      [REQUEST_ID, true],
      [REQUEST_ID + 1, false],
    ] as const) {
      const id = 'id-'.repeat(length).slice(0, length);
      const reply = await service.get('/api/v1/stats', {
        headers: { 'x-api-key': service.key, 'x-request-id': id },
      });
      assertConforms('getStats', reply);
      assert.equal(reply.headers['x-request-id'] === id, isKept);
    }
  });
});
