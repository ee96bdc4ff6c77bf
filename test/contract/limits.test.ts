import assert from 'node:assert/strict';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import type { Reply } from '../support/request.js';
import { startService, type TestService } from '../support/service.js';
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

/** One character to the contract, four bytes and two units of UTF-16. */
const WIDE = '🎬';

/** The largest of each that the contract allows. */
const GREATEST = {
  titles: { svc_id: 'x'.repeat(SVC_ID), media_type: 'movie', title: WIDE.repeat(TITLE) },
  plans: {
    id: `g${'-'.repeat(PLAN_ID - 1)}`,
    name: WIDE.repeat(PLAN_NAME),
    requests_per_minute: PER_MINUTE,
    requests_per_day: PER_DAY,
    commercial_use: false,
  },
  developers: { project_name: WIDE.repeat(PROJECT_NAME), attribution_required: false },
} as const;

/** What the database refuses: a table, the column beyond its bound, its value, and the error. */
const BEYOND = [
  ['titles', 'title', WIDE.repeat(TITLE + 1), { constraint: 'titles_title_length' }],
  ['titles', 'svc_id', 'x'.repeat(SVC_ID + 1), { constraint: 'titles_svc_id_format' }],
  ['plans', 'id', `g${'-'.repeat(PLAN_ID)}`, { constraint: 'plans_id_format' }],
  ['plans', 'name', WIDE.repeat(PLAN_NAME + 1), { constraint: 'plans_name_length' }],
  ['plans', 'requests_per_minute', PER_MINUTE + 1, { code: '22003' }],
  ['plans', 'requests_per_day', PER_DAY + 1, { code: '22003' }],
  ['developers', 'project_name', WIDE.repeat(PROJECT_NAME + 1), { constraint: 'developers_project_name_length' }],
] as const;

describe('the bounds of the contract', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  function assertConforms(operationId: string, { status, headers, text: body }: Reply): void {
    assert.equal(status, 200, body);
    assert.deepEqual(deviationsFrom(operationId, { status, headers, body }), []);
  }

  it("the database refuses what exceeds the contract's bounds", async () => {
    for (const [table, column, value, refusal] of BEYOND) {
      const other = table === 'titles' ? { svc_id: 'other' } : table === 'plans' ? { id: 'other' } : {};
      const row = { ...GREATEST[table], ...other, [column]: value };
      await assert.rejects(service.db(table).insert(row), refusal, `${column} in ${table}`);
    }
  });

  it('titles with the longest name and id are answered whole, at most 200 on a page of changes', async () => {
    const { db } = service;
    const since = Math.floor(Date.now() / 1000) - 3_600;
    await db('titles').insert(GREATEST.titles);
    const one = await service.get(`/api/v1/titles/${GREATEST.titles.svc_id}`);
    assertConforms('getTitle', one);
    const { svc_id, media_type, title } = (one.json as { data: typeof GREATEST.titles }).data;
    assert.deepEqual({ svc_id, media_type, title }, GREATEST.titles);

    await db.raw(
      `insert into titles (svc_id, media_type, title) select 'page-' || n, 'series', ? from generate_series(1, ?::integer) n`,
      [WIDE.repeat(TITLE), PAGE],
    );
    const page = await service.get(`/api/v1/changes?since=${since}`);
    assertConforms('getChanges', page);
    const { data, meta } = page.json as { data: { title: string }[]; meta: { has_more: boolean } };
    assert.deepEqual([data.length, data[0]?.title, meta.has_more], [PAGE, GREATEST.titles.title, true]);
  });

  it('the longest names and the highest limits of a plan are answered whole', async () => {
    const { db } = service;
    await db('plans').insert(GREATEST.plans);
    const projectName = GREATEST.developers.project_name;
    const { id: developerId } = await createDeveloper(db, { projectName, attributionRequired: false });
    const { key } = await createKey(db, { developerId, planId: GREATEST.plans.id });
    const reply = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    assertConforms('getMe', reply);
    const { project_name, plan } = (reply.json as { data: Record<string, unknown> }).data;
    assert.deepEqual({ project_name, plan }, { project_name: projectName, plan: GREATEST.plans });
    assert.equal(reply.headers['ratelimit-policy'], `"minute";q=${PER_MINUTE};w=60, "day";q=${PER_DAY};w=86400`);
  });
});
