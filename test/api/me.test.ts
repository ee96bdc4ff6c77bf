import assert from 'node:assert/strict';
import { createDeveloper } from '../../src/developers/developers.js';
import { createKey } from '../../src/keys/keys.js';
import { setPlan } from '../../src/limits/plans.js';
import { assertHeaders } from '../support/problem.js';
import { startService, type TestService } from '../support/service.js';

describe('GET /api/v1/me', () => {
  let service: TestService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it('answers what belongs to the key, and lets nobody store it', async () => {
    const { id } = await createDeveloper(service.db, { projectName: 'Ciné & "Film" 映画', attributionRequired: true });
    const { key, prefix } = await createKey(service.db, { developerId: id, planId: 'free', label: 'private remark' });
    const reply = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    assert.equal(reply.status, 200);
    assertHeaders(reply, {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(reply.text)),
      'cache-control': 'no-store',
      etag: undefined,
      vary: 'Authorization, X-API-Key',
      'ratelimit-policy': '"minute";q=60;w=60, "day";q=10000;w=86400',
      ratelimit: '"minute";r=59;t=60, "day";r=9999;t=86400',
    });
    assert.deepEqual(reply.json, {
      data: {
        project_name: 'Ciné & "Film" 映画',
        key_prefix: prefix,
        plan: { id: 'free', name: 'Free', requests_per_minute: 60, requests_per_day: 10000, commercial_use: false },
        attribution_required: true,
      },
    });
  });

  it('answers the longest names and the largest numbers that the contract allows', async () => {
    const [project, name] = ['映'.repeat(200), '画'.repeat(100)];
    const { id } = await createDeveloper(service.db, { projectName: project, attributionRequired: false });
    const most = 2 ** 31 - 1;
    const planId = `p${'_'.repeat(31)}`;
    await setPlan(service.db, planId, { name, requestsPerMinute: most, requestsPerDay: most, commercialUse: true });
    const { key, prefix } = await createKey(service.db, { developerId: id, planId });
    const reply = await service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    const plan = { id: planId, name, requests_per_minute: most, requests_per_day: most, commercial_use: true };
    assert.deepEqual(reply.json, {
      data: { project_name: project, key_prefix: prefix, plan, attribution_required: false },
    });
    assertHeaders(reply, {
      'ratelimit-policy': `"minute";q=${most};w=60, "day";q=${most};w=86400`,
      ratelimit: `"minute";r=${most - 1};t=60, "day";r=${most - 1};t=86400`,
    });
  });

  it('answers a changed plan from the next request on', async () => {
    const { id } = await createDeveloper(service.db, { projectName: 'P', attributionRequired: false });
    await setPlan(service.db, 'gold', { name: 'Gold', requestsPerMinute: 7, requestsPerDay: 70, commercialUse: true });
    const { key, prefix } = await createKey(service.db, { developerId: id, planId: 'gold' });
    const ask = () => service.get('/api/v1/me', { headers: { 'x-api-key': key } });
    const data = (plan: object) => ({
      data: { project_name: 'P', key_prefix: prefix, plan, attribution_required: false },
    });
    assert.deepEqual(
      (await ask()).json,
      data({ id: 'gold', name: 'Gold', requests_per_minute: 7, requests_per_day: 70, commercial_use: true }),
    );
    await setPlan(service.db, 'gold', { requestsPerDay: 71, commercialUse: false });
    assert.deepEqual(
      (await ask()).json,
      data({ id: 'gold', name: 'Gold', requests_per_minute: 7, requests_per_day: 71, commercial_use: false }),
    );
  });
});
